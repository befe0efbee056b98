"""Pairs of text in and text out: specs that are wrong, with all that is said about them, and specs that are right."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from data.files import write_images
from symdsl.analysis.codes import CODES
from symdsl.analysis.overrides import Override
from symdsl.diagnostics import SpecError, render_text
from symdsl.language.formatter import format_text
from symdsl.language.imports import LARGEST
from symdsl.spec import check, load

FIXTURES = Path(__file__).parent.parent / "fixtures"
BAD = FIXTURES / "bad"
SPECS = Path(__file__).parent.parent.parent / "specs"

ARRAYS = {
    "oblong": ((1, 4, 6), np.arange(4)),
    "turned": ((8, 6, 3), 3 * np.arange(4)),
    "one_hot": ((1, 2, 2), np.eye(4)),
}
"""Shape of an image, and targets, of data files beside the specs."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wrong specs, and what they ask for that is too large, or not text, to be kept beside them."""
    folder = tmp_path_factory.mktemp("fixtures") / "bad"
    shutil.copytree(BAD, folder)
    with (folder / "huge.sym").open("wb") as file:
        file.truncate(LARGEST + 1)
    for name, (shape, y) in ARRAYS.items():
        x = np.zeros((4, *shape), np.float32)
        np.savez(folder / f"{name}.npz", x_train=x, y_train=y, x_test=x, y_test=y)
    names = ("train/cat/1.png", "train/dog/1.png", "test/cat/1.png", "train/dog/2.bmp", "train/dog/3.bmp")
    write_images(folder / "pictures", dict.fromkeys(names, Image.new("L", (4, 4))))
    return folder


def rendered(path: Path) -> str:
    settings = path.with_suffix(".set")
    written = settings.read_text(encoding="utf-8").splitlines() if settings.exists() else []
    overrides = [Override.parse(line, number) for number, line in enumerate(written, start=1)]
    try:
        diagnostics = load(path, {one.key: one for one in overrides}).warnings
    except SpecError as error:
        diagnostics = error.diagnostics
    return render_text(diagnostics) + "\n"


@pytest.mark.parametrize("name", sorted({path.stem for path in BAD.iterdir()}))
def test_what_is_said_about_wrong_specs(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    assert rendered(Path(f"{name}.sym")) == (BAD / f"{name}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("code", sorted(CODES))
def test_every_code_is_shown_by_a_wrong_spec(code: str) -> None:
    shown = [path.name for path in BAD.glob("*.txt") if f"[{code}]" in path.read_text(encoding="utf-8")]
    assert shown, f"no text in {BAD} has {code}"


@pytest.mark.parametrize("path", sorted((FIXTURES / "good").glob("*.sym")), ids=lambda path: path.stem)
def test_nothing_is_said_about_right_specs(path: Path) -> None:
    assert rendered(path) == "\n"
    assert check(path) == ()


@pytest.mark.parametrize("path", sorted(SPECS.rglob("*.sym")), ids=lambda path: path.stem)
def test_shipped_specs_are_in_canonical_layout(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert format_text(text) == text


WHOLE = [path for path in sorted(SPECS.rglob("*.sym")) if path.parent.name != "blocks"]


@pytest.mark.parametrize("path", WHOLE, ids=lambda path: path.stem)
def test_shipped_specs_are_right(path: Path) -> None:
    assert check(path) == ()
