"""Where names lead."""

from __future__ import annotations

from pathlib import Path

import pytest

from editor.marks import MARK, PYRAMID, SPEC, marked
from symdsl.editor.definition import define


def led(before: str, text: str = SPEC, path: Path | None = None) -> list[str]:
    """Where the word that begins after the first `before` is defined: line, column and what stands there."""
    assert before in text, before
    reading, offset = marked(text.replace(before, before + MARK, 1), path)
    return [_shown(span.source, span.line, span.column, span.end_column, text) for span in define(reading, offset)]


def _shown(source: str, line: int, column: int, end: int, text: str) -> str:
    lines = (Path(source).read_text() if Path(source).exists() else text).split("\n")
    return f"{Path(source).name}:{line}:{column} {lines[line - 1][column - 1 : end - 1]}".strip()


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("4*", ["<text>:1:5 width"]),
        ("layer l1: ", ["<text>:3:5 both"]),
        ("-> m*", ["<text>:1:5 width"]),
        ("CONV(3) -> ", ["<text>:10:31 m"]),
        ("stride ", ["<text>:10:34 s"]),
        ("prior {\n  ", ["<text>:9:9 l1"]),
        ("let ", ["<text>:1:5 width"]),
        ("layer ", ["<text>:9:9 l1"]),
        ("network ", ["<text>:7:9 net"]),
        ("data ", []),
        ("|> ", []),
        ("-> classes\n", []),
    ],
)
def test_a_name_leads_to_its_definition(before: str, expected: list[str]) -> None:
    assert led(before) == expected


def test_a_pattern_leads_to_every_layer_it_matches() -> None:
    text = SPEC.replace("l1.CONV", "l*.CONV")
    assert led("prior {\n  ", text) == ["<text>:9:9 l1", "<text>:11:12 F-FC"]
    assert led("prior {\n  l", text) == led("prior {\n  ", text)


def test_a_layer_of_a_text_with_errors_is_found_by_name() -> None:
    assert led("prior {\n  ", SPEC.replace("data digits", "data ")) == ["<text>:9:9 l1"]


def test_a_value_of_another_repeat_is_another() -> None:
    text = "network n {\n repeat [1] as i { layer: FC -> i }\n repeat [2] as i { layer: FC -> i + 0 }\n}"
    assert led("{ layer: FC -> ", text) == ["<text>:2:16 i"]
    assert led("as i { layer: FC -> i }\n repeat [2] as i { layer: FC -> ", text) == ["<text>:3:16 i"]


def test_imports_lead_to_files_and_names_into_them(tmp_path: Path) -> None:
    (tmp_path / "pyramid.sym").write_text(PYRAMID)
    path = tmp_path / "main.sym"
    text = (
        'import "pyramid.sym"\nimport "../out.sym"\nimport "not.sym"\nlet w = 3\ndata digits(size = 16)\n'
        "network net = pyramid([CONV(3)], width = w)\nprior { h1.FC ~ normal(1)\n}"
    )
    assert led('import "', text, path) == ["pyramid.sym:1:1"]
    assert led('import "../', text, path) == []
    assert led('import "not', text, path) == []
    assert led("net = ", text, path) == ["pyramid.sym:1:9 pyramid"]
    assert led("(3)], ", text, path) == ["pyramid.sym:1:29 width"]
    assert led("width = ", text, path) == ["main.sym:4:5 w"]
    assert led("prior { ", text, path) == ["pyramid.sym:5:9 h1"]


def test_imports_in_a_circle_end(tmp_path: Path) -> None:
    (tmp_path / "one.sym").write_text('import "two.sym"\nlet a = 1\n')
    (tmp_path / "two.sym").write_text('import "one.sym"\nlet b = a\n')
    assert led("c = ", 'import "one.sym"\nlet c = b', tmp_path / "main.sym") == ["two.sym:2:5 b"]


def test_a_comment_leads_nowhere() -> None:
    assert led("// ", "let a = 1\n// a") == []


WORDS = """\
let size = 16
let lr = 0.01
let h = 1
let digits = 2
let epochs = 20
data digits(size = size) |> standardize
network digits {
  input image(1, 16, 16)
  flatten
  layer h: FC -> classes
}
profile small {
  epochs = 3
}
search {
  epochs = epochs
  optimizer = adam(lr = lr)
}
"""


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("data ", []),
        ("data digits(", []),
        ("size = s", ["<text>:1:5 size"]),
        ("adam(", []),
        ("adam(lr = ", ["<text>:2:5 lr"]),
        ("layer ", ["<text>:10:9 h"]),
        ("search {\n  ", []),
        ("search {\n  epochs = ", ["<text>:5:5 epochs"]),
        ("profile small {\n  ", ["<text>:5:5 epochs"]),
    ],
)
def test_a_word_of_the_language_is_no_name_that_is_spelled_alike(before: str, expected: list[str]) -> None:
    assert led(before, WORDS) == expected


def test_a_name_in_a_default_or_among_values_is_the_one_outside() -> None:
    text = "let w = 4\nlet m = [1, 2]\nblock b(w: whole = w, v = w) {\n  repeat m as m { layer: FC -> m*w }\n}\n"
    assert led("whole = ", text) == ["<text>:1:5 w"]
    assert led("v = ", text) == ["<text>:3:9 w"]
    assert led("repeat ", text) == ["<text>:2:5 m"]
    assert led("as ", text) == ["<text>:4:15 m"]
    assert led("FC -> ", text) == ["<text>:4:15 m"]


def test_a_key_of_a_profile_leads_to_the_parameter_of_the_network() -> None:
    text = "network pyramid(width: whole) { flatten }\nnetwork small = pyramid(3)\nprofile p {\n  width = 2\n}\n"
    assert led("profile p {\n  ", text) == ["<text>:1:17 width"]


def test_imports_that_no_file_can_have_lead_nowhere(tmp_path: Path) -> None:
    (tmp_path / "loop.sym").symlink_to("loop.sym")
    for name in ("loop.sym", "a" * 400 + ".sym"):
        assert led('import "', f'import "{name}"\nlet a = 1\n', tmp_path / "main.sym") == []
        assert led("b = ", f'import "{name}"\nlet a = 1\nlet b = a\n', tmp_path / "main.sym") == ["main.sym:2:5 a"]
