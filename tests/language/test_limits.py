"""Whatever asks for too much ends in a diagnostic; what is bounded is counted, not timed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hostile import IMPORTS, TEXTS, bomb
from symdsl.diagnostics import Collector
from symdsl.language.parser import parse_program
from symdsl.language.words import DEEPEST, MOST_WORDS
from symdsl.spec import check


def codes(path: Path) -> list[str]:
    return [one.code for one in check(path)]


@pytest.mark.parametrize("name", TEXTS)
def test_a_text_that_asks_for_too_much_is_refused(name: str, tmp_path: Path) -> None:
    text, code = TEXTS[name]
    path = tmp_path / "spec.sym"
    path.write_text(text(), encoding="utf-8")
    assert code in codes(path)


@pytest.mark.parametrize("name", IMPORTS)
def test_imports_that_ask_for_too_much_are_refused(name: str, tmp_path: Path) -> None:
    assert codes(bomb(tmp_path, name)) == ["E103"]


def test_a_diamond_of_imports_reads_each_file_once(tmp_path: Path) -> None:
    for level in range(9):
        (tmp_path / f"d{level}.sym").write_text(f'import "d{level + 1}.sym"\n' * 9)
    (tmp_path / "d9.sym").write_text("let a = 1")
    assert codes(tmp_path / "d0.sym") == []


def test_what_is_not_a_regular_file_is_not_read(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    assert codes(fifo) == codes(Path("/dev/zero")) == codes(tmp_path) == ["E101"]
    main = tmp_path / "main.sym"
    main.write_text('import "fifo"\nimport "/dev/zero"\nimport "."')
    assert [code for code in codes(main) if code != "E311"] == ["E101", "E106", "E101"]


def parsed(text: str) -> bool:
    collector = Collector()
    collector.add_source("t", text)
    return parse_program(text, "t", collector) is not None and not collector.failed


@pytest.mark.parametrize(
    ("of", "most"),
    [
        (lambda count: "let a = [" + "1," * count + "1]", (MOST_WORDS - 6) // 2),
        (lambda count: "// a\n" * count, MOST_WORDS),
        (lambda count: "let a = " + "[" * count + "1" + "]" * count, DEEPEST - 2),
        (lambda count: "let a = " + "-" * count + "1", DEEPEST - 2),
        (lambda count: f"let {'a' * count} = 1", 200),
        (lambda count: f'let a = "{"a" * count}"', 4096),
        (lambda count: f"let a = 0.{'9' * count}", 39),
    ],
    ids=["words", "comments", "brackets", "signs", "name", "text", "number"],
)
def test_the_limits_are_where_they_are_said_to_be(of, most) -> None:  # type: ignore[no-untyped-def]
    assert parsed(of(most))
    assert not parsed(of(most + 1))
