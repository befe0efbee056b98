"""Diagnostics: how they look on a terminal, as records and as annotations."""

from __future__ import annotations

import json

import pytest

from symdsl.diagnostics import (
    Collector,
    Diagnostic,
    Fix,
    Span,
    SpecError,
    listing,
    render_github,
    render_json,
    render_text,
    suggest,
)

TEXT = "let width = 4\nlet\tx = 漢字 + wdth // é\nlast"
AT = Span("a.sym", 2, 14, 2, 18)


def report(span: Span = AT, text: str = TEXT, **parts: object) -> Diagnostic:
    collector = Collector()
    collector.add_source("a.sym", text)
    collector.report("E301", span, "unknown name `wdth`", **parts)  # type: ignore[arg-type]
    (only,) = collector.diagnostics
    return only


def test_a_diagnostic_shows_place_line_caret_label_note_and_help() -> None:
    notes = [(Span("a.sym", 1, 5, 1, 10), "defined here")]
    shown = render_text([report(label="not known", help="did you mean `width`?", notes=notes)])
    assert shown == (
        "error[E301]: unknown name `wdth`\n"
        "  --> a.sym:2:14\n"
        "   2 | let x = 漢字 + wdth // é\n"
        "     |                ^^^^ not known\n"
        "  ::: a.sym:1:5\n"
        "   1 | let width = 4\n"
        "     |     ----- defined here\n"
        "     = help: did you mean `width`?"
    )


def carets(line: str, column: int, end: int) -> tuple[str, str]:
    _, _, shown, marks = render_text([report(Span("a.sym", 1, column, 1, end), line)]).split("\n")
    return shown[7:], marks.removeprefix("     | ")


@pytest.mark.parametrize(
    ("line", "column", "end", "shown", "marks"),
    [
        ("\ta = b", 6, 7, "    a = b", "        ^"),
        ("a\tb", 3, 4, "a   b", "    ^"),
        ("漢字 b", 4, 5, "漢字 b", "     ^"),
        ("a 漢字", 3, 5, "a 漢字", "  ^^^^"),
        ("e\u0301 b", 4, 5, "e\u0301 b", "  ^"),
        ("a", 2, 3, "a", " ^"),
        ("a\x1bb", 3, 4, "a\N{REPLACEMENT CHARACTER}b", "  ^"),
        ("", 1, 2, "", "^"),
    ],
)
def test_carets_stand_under_the_words(line: str, column: int, end: int, shown: str, marks: str) -> None:
    assert carets(line, column, end) == (shown, marks)


def test_of_a_long_line_only_the_part_with_the_words_is_shown() -> None:
    shown, marks = carets("a" * 5000 + " wrong " + "b" * 5000, 5002, 5007)
    assert len(shown) == 160
    assert shown[marks.index("^") : marks.rindex("^") + 1] == "wrong"


def test_what_goes_over_lines_is_underlined_to_the_end_of_the_first() -> None:
    shown = render_text([report(Span("a.sym", 1, 5, 3, 2))])
    assert shown.endswith("     |     ^^^^^^^^^")


def test_windows_line_ends_do_not_show() -> None:
    assert "\r" not in render_text([report(Span("a.sym", 1, 1, 1, 2), "let\r\nx")])


def test_colour_is_there_only_if_asked_for() -> None:
    one = report(help="x")
    assert "\x1b" not in render_text([one])
    assert render_text([one], colour=True).startswith("\x1b[1;31merror[E301]\x1b[0m: unknown")


def test_diagnostics_come_in_the_order_of_files_and_places_each_once() -> None:
    collector = Collector()
    collector.add_source("b", "1\n2")
    collector.add_source("a", "1\n2")
    for source, line in (("a", 1), ("b", 2), ("b", 1), ("b", 1)):
        collector.report("W102", Span(source, line, 1, line, 2), "unused")
    assert [(one.span.source, one.span.line) for one in collector.diagnostics] == [("b", 1), ("b", 2), ("a", 1)]


def test_only_errors_are_raised() -> None:
    collector = Collector()
    collector.report("W102", AT, "unused")
    collector.raise_errors()
    collector.report("E301", AT, "unknown")
    with pytest.raises(SpecError, match=r"error\[E301\]: unknown") as raised:
        collector.raise_errors()
    assert [one.severity for one in raised.value.diagnostics] == ["error", "warning"]


def test_records() -> None:
    (one,) = json.loads(render_json([report(help="h", fix=Fix("replace by `width`", AT, "width"))]))
    place = {"location": {"line": 2, "column": 14}, "end_location": {"line": 2, "column": 18}}
    fix = {"message": "replace by `width`", "filename": "a.sym", "content": "width", **place}
    assert one == {
        "code": "E301",
        "severity": "error",
        "message": "unknown name `wdth`",
        "help": "h",
        "filename": "a.sym",
        **place,
        "fix": fix,
    }
    assert json.loads(render_json([])) == []
    assert json.loads(render_json([report()]))[0]["fix"] is None


def test_annotations_escape_what_would_end_them() -> None:
    span = Span("a:b,c%.sym", 1, 2, 3, 4)
    collector = Collector()
    collector.report("W102", span, "50%\nunused", help="drop")
    assert render_github(collector.diagnostics) == (
        "::warning file=a%3Ab%2Cc%25.sym,line=1,col=2,endLine=3,endColumn=4,title=W102::50%25%0Aunused. drop"
    )


@pytest.mark.parametrize(
    ("word", "near"), [("widht", "width"), ("konv", "CONV"), ("f-fc", "F-FC"), ("zzz", None), ("", None)]
)
def test_suggestions(word: str, near: str | None) -> None:
    assert suggest(word, ["width", "CONV", "F-FC", "FC"]) == near


def test_listings() -> None:
    assert listing(["a", "b"]) == "`a`, `b`"
