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
    shortened,
    suggest,
    wants_colour,
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
        ("a\u200bb", 3, 4, "a\N{REPLACEMENT CHARACTER}b", "  ^"),
        ("a\u2028b", 3, 4, "a\N{REPLACEMENT CHARACTER}b", "  ^"),
        ("\u1112\u1161\u11ab b", 5, 6, "\u1112\u1161\u11ab b", "   ^"),
        ("\u3042\u0301\tb", 4, 5, "\u3042\u0301  b", "    ^"),
    ],
)
def test_carets_stand_under_the_words(line: str, column: int, end: int, shown: str, marks: str) -> None:
    assert carets(line, column, end) == (shown, marks)


def test_of_a_file_without_text_only_the_place_is_shown() -> None:
    assert render_text([report(Span("a.sym", 1, 1, 1, 1), "")]).split("\n")[1:] == ["  --> a.sym:1:1"]


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
    elsewhere = Span("b.sym", 1, 2, 3, 4)
    fix = Fix("replace by `width`", AT, "width")
    (one,) = json.loads(render_json([report(help="h", notes=[(elsewhere, "defined here")], fix=fix)]))
    place = {"location": {"line": 2, "column": 14}, "end_location": {"line": 2, "column": 18}}
    note = {
        "message": "defined here",
        "filename": "b.sym",
        "location": {"line": 1, "column": 2},
        "end_location": {"line": 3, "column": 4},
    }
    assert one == {
        "code": "E301",
        "severity": "error",
        "message": "unknown name `wdth`",
        "help": "h",
        "filename": "a.sym",
        **place,
        "notes": [note],
        "fix": {"message": "replace by `width`", "filename": "a.sym", "content": "width", **place},
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


def test_an_annotation_about_no_file_says_in_words_where_it_is() -> None:
    collector = Collector()
    collector.report("E310", Span("--set", 2, 7, 2, 9), "unknown")
    assert render_github(collector.diagnostics) == "::error title=E310::--set:2:7: unknown"


@pytest.mark.parametrize(
    ("terminal", "environment", "expected"),
    [
        (True, {}, True),
        (False, {}, False),
        (True, {"NO_COLOR": "1"}, False),
        (True, {"NO_COLOR": ""}, True),
        (True, {"TERM": "dumb"}, False),
        (False, {"FORCE_COLOR": "1"}, True),
        (False, {"FORCE_COLOR": ""}, False),
        (True, {"NO_COLOR": "1", "FORCE_COLOR": "1"}, False),
    ],
)
def test_colours_are_for_terminals(terminal: bool, environment: dict[str, str], expected: bool) -> None:
    assert wants_colour(terminal, environment) is expected


def test_what_is_quoted_from_a_text_cannot_command_the_terminal() -> None:
    one = report(help="\x1b[31mred", label="\u202elabel", text="let width = 4\nlet x = \x1b[31m + wdth")
    shown = render_text([one])
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert "= help: \N{REPLACEMENT CHARACTER}[31mred" in shown


def test_what_is_quoted_from_a_text_is_short() -> None:
    assert shortened("a" * 40) == "a" * 40
    assert shortened("a" * 41) == "a" * 37 + "..."


@pytest.mark.parametrize(
    ("word", "near"), [("widht", "width"), ("konv", "CONV"), ("f-fc", "F-FC"), ("zzz", None), ("", None)]
)
def test_suggestions(word: str, near: str | None) -> None:
    assert suggest(word, ["width", "CONV", "F-FC", "FC"]) == near


def test_listings() -> None:
    assert listing(["a", "b"]) == "`a`, `b`"
