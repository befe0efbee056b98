"""Every code is documented, and every example has what it says."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import symdsl
from analysis.specs import codes, framed
from data.files import write_images
from symdsl.analysis.codes import CODES
from symdsl.analysis.explanations import explanation, page
from symdsl.analysis.names import LIMITS
from symdsl.diagnostics import RunError

OF_FILES = {"E101", "E102", "E103", "E106", "E107"}
OF_COMMANDS = {"E310"}
FILES = {
    "mine": ((8, 8), np.arange(4) % 2),
    "wide": ((4, 6), np.arange(4) % 2),
    "gaps": ((8, 8), 5 * np.arange(4)),
    "one_hot": ((8, 8), np.eye(4)),
    "channels_last": ((8, 8, 1), np.arange(4) % 2),
}
"""Shape of an image, and targets, of the data files that the examples name."""

HARMLESS = {"W102", "W104"}


@pytest.mark.parametrize("code", sorted(CODES.keys() - OF_FILES - OF_COMMANDS))
def test_the_examples_have_what_they_say(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, (shape, y) in FILES.items():
        x = np.zeros((4, *shape), np.float32)
        np.savez(f"{name}.npz", x_train=x, y_train=y, x_test=x, y_test=y)
    grey = Image.new("L", (8, 8))
    for name, more in {"photos": {}, "mixed": {"train/cat/2.bmp": grey}}.items():
        files = {f"{part}/{animal}/1.png": grey for part in ("train", "test") for animal in ("cat", "dog")}
        write_images(tmp_path / name, files | more)
    assert code in codes(framed(CODES[code].bad))
    assert set(codes(framed(CODES[code].good))) <= HARMLESS - {code}


def test_every_code_in_the_sources_is_documented_and_the_other_way_round() -> None:
    package = Path(symdsl.__file__).parent
    sources = [path for part in ("language", "analysis", "kinds") for path in (package / part).rglob("*.py")]
    text = "".join(path.read_text(encoding="utf-8") for path in sources if path.name != "codes.py")
    assert set(re.findall(r'"([EW]\d{3})"', text)) == set(CODES)


def test_an_explanation_has_title_paragraph_and_examples() -> None:
    text = explanation("e203")
    assert text.startswith("E203: a group kind on a map of another group\n\nA group convolution acts on")
    assert "Wrong:\n\n    input image(1, 8, 8)\n" in text
    assert "Right:\n\n    input image(1, 8, 8)\n    lift p4\n" in text


def test_the_limits_that_are_explained_are_those_that_hold() -> None:
    explained = CODES["E405"].paragraph
    assert [f"{most:,}" for most in LIMITS.values() if f"{most:,} " not in explained] == []


def test_the_committed_page_is_the_generated_one() -> None:
    shipped = Path(__file__).parents[2] / "docs" / "diagnostics.md"
    assert shipped.read_text(encoding="utf-8") == page(), "run `python -m symdsl.analysis.explanations` again"


def test_an_overlong_line_shows_both_ends_only() -> None:
    (line,) = (line for line in explanation("E105").split("\n") if "..." in line)
    assert len(line) == 4 + 101
    assert line.strip().startswith("let a = (1, (1, ")
    assert line.endswith("))))")


def test_an_unknown_code_gets_a_suggestion() -> None:
    with pytest.raises(RunError, match="no diagnostic `E2O3`: did you mean `E2"):
        explanation("E2O3")
    with pytest.raises(RunError, match="no diagnostic `nonsense`: there are `E101`"):
        explanation("nonsense")


NESTED = "data digits\nlet many = [{}]\nnetwork n {{\ninput image(1, 8, 8)\n{}{}\nflatten\nlayer h: FC -> classes\n}}"


@pytest.mark.parametrize(
    ("values", "items"),
    [
        ("1, 1, 1, 1, 1, 1, 1, 1, 1, 1", "repeat many as i {" * 30 + "}" * 30),
        ("FC, " * 11_000, "layer: many -> 1"),
        ("FC, " * 200, "repeat [" + "1, " * 200 + "] as i { layer: many -> 1 }"),
    ],
)
def test_what_would_take_long_is_refused_soon(values: str, items: str) -> None:
    assert "E405" in codes(NESTED.format(values, items, ""))


CHAIN = 3000


def test_long_chains_of_lets_are_no_trouble() -> None:
    forwards = "\n".join(f"let a{i} = a{i + 1} + 1" for i in range(CHAIN))
    used = f"data digits(size = a0 - {CHAIN})\n" + NESTED.format("", "", "").partition("\nlet many = []\n")[2]
    assert codes(f"{forwards}\nlet a{CHAIN} = 8\n{used}") == []
    assert codes(f"{forwards}\nlet a{CHAIN} = a0\n{used}") == ["E309"]


@pytest.mark.parametrize(
    "text",
    [
        "data digits(size = classes)\n",
        "let a = classes\ndata digits(size = a)\n",
        "data digits(size = b)\nlet b = channels\n",
    ],
)
def test_data_defined_by_themselves(text: str) -> None:
    assert set(codes(text + "network n {\ninput image(1, 8, 8)\nflatten\nlayer h: FC -> 10\n}")) == {"E309"}
