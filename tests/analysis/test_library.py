"""Libraries: files that only hold what others import."""

from __future__ import annotations

from pathlib import Path

import pytest

from symdsl.diagnostics import SpecError
from symdsl.spec import check, load

RIGHT = """
let kernel = 3
let heads = [FC, CONV(kernel)]

network pyramid(candidates, width = 4) {
  input image(channels, 16, 16)
  repeat [(1, 1), (2, 2)] as (m, s) {
    layer: candidates + CONV(kernel) -> m*width stride s |> relu
  }
  repeat candidates as one {
    layer: one -> classes
  }
  flatten
  layer h1: FC -> classes
}
"""


def said(tmp_path: Path, text: str) -> list[str]:
    path = tmp_path / "library.sym"
    path.write_text(text)
    return [f"{one.code} {one.span.line}" for one in check(path)]


@pytest.mark.parametrize("text", [RIGHT, "let a = 1", "network one(a) {\n  input image(a, 1, 1)\n  flatten\n}\n"])
def test_a_right_library_is_accepted(tmp_path: Path, text: str) -> None:
    assert said(tmp_path, text) == []


@pytest.mark.parametrize(
    ("right", "wrong", "expected"),
    [
        ("|> relu", "|> rlu", ["E306 8"]),
        ("+ CONV(kernel)", "+ KONV(kernel)", ["E302 8"]),
        ("+ CONV(kernel)", '+ CONV("3")', ["E401 8"]),
        ("m*width", "m*widht", ["E301 8"]),
        ("m*width", "-m*width", ["E402 8"]),
        ("as (m, s)", "as (m, s, t)", ["E403 7", "E403 7"]),
        ("width = 4", "width = 4, width", ["E308 5"]),
        ("channels, 16, 16", "chanels, 16, 16", ["E301 6"]),
        ("FC, CONV", "FC, CNV", ["E301 3"]),
        ("let kernel = 3", "let kernel = kernel", ["E309 2"]),
        ("flatten", "lift p5", ["E305 13"]),
        ("flatten", "flatten // 2", ["W107 13"]),
        ("-> m*width", "-> 16 // m stride 2 |> relu", ["W107 8"]),
        ("-> m*width", "-> 16 //(width)|> relu", ["W107 8"]),
        ("-> m*width", "-> 16 // 2 * m", ["W107 8"]),
        ("-> m*width", "-> 16 // m, as in the paper", []),
        ("-> m*width", "-> 16 // 2 of them", []),
        ("network pyramid(", "network pyramid(a) { input image(1, 1, 1) flatten }\nnetwork pyramid(", ["E308 6"]),
    ],
)
def test_what_is_wrong_whatever_the_parameters_is_said(
    tmp_path: Path, right: str, wrong: str, expected: list[str]
) -> None:
    assert right in RIGHT
    assert said(tmp_path, RIGHT.replace(right, wrong)) == expected


@pytest.mark.parametrize(
    "more", ["search {\n  epochs = 3\n}\n", "network n = pyramid([FC])\n", "network n {\n  input image(1, 2, 2)\n}\n"]
)
def test_what_is_to_be_built_or_trained_is_no_library(tmp_path: Path, more: str) -> None:
    assert said(tmp_path, RIGHT + more).count("E311 2") == 1


def test_a_library_cannot_be_loaded(tmp_path: Path) -> None:
    path = tmp_path / "library.sym"
    path.write_text(RIGHT)
    with pytest.raises(SpecError, match=r"(?s)there is no `data` to learn from.*there is no network to build"):
        load(path)


@pytest.mark.parametrize("text", ["", "// nothing\n"])
def test_nothing_is_no_library(tmp_path: Path, text: str) -> None:
    assert said(tmp_path, text) == ["E311 1"]


@pytest.mark.parametrize("call", ["p(2)", "p(w = 2)", "p(2, 3)"])
def test_a_wrong_default_is_reported_also_where_the_call_needs_none(tmp_path: Path, call: str) -> None:
    network = """
network p(w: whole = 2.5, v: whole = w + 1) {
  input image(1, 8, 8)
  layer a: CONV(3) -> w + v
  flatten
  layer h: FC -> 10
}
"""
    assert said(tmp_path, f"data digits\n{network}\nnetwork q = {call}\n") == ["E401 3"]
    for right in ("w: whole = 2, v: whole = w + 1", "w: whole = 3, v: whole = w / 2", "w: whole = 0, v: whole = 4 / w"):
        text = network.replace("w: whole = 2.5, v: whole = w + 1", right)
        assert said(tmp_path, f"data digits\n{text}\nnetwork q = {call}\n") == []
