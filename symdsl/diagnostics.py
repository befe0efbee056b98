"""Diagnostics: codes, places in the text, rendering. Imports nothing of ours."""

from __future__ import annotations

import copy
import difflib
import json
import os
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from typing import Literal

import attrs

DONE, SPEC_WRONG, FAILED, INTERRUPTED = 0, 1, 3, 130
"""The exit status of a command, and of a process that runs one search of several."""

Severity = Literal["error", "warning"]

_Paint = Callable[[str, str], str]

_TAB = 4
_LONGEST_LINE = 160
_HIDDEN = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"})
"""Categories of characters without a width of their own: controls, joiners, marks of direction, separators of lines."""
_LONGEST_QUOTED = 40
_GUTTER = 4
_MOST_COMPARED = 300
_NO_FILE = ("--", "<")
"""How names of sources begin that are no files: options of the command line, and texts."""
_JAMO = range(0x1160, 0x1200)
"""Vowels and final consonants of Korean, drawn into the syllable before them."""


@attrs.frozen
class Span:
    """A range of a source text; lines and columns count from 1, columns in characters, the end is exclusive."""

    source: str
    line: int
    column: int
    end_line: int
    end_column: int

    def __str__(self) -> str:
        return f"{self.source}:{self.line}:{self.column}"

    @property
    def start(self) -> Span:
        """The empty range at its start."""
        return Span(self.source, self.line, self.column, self.line, self.column)

    @property
    def end(self) -> Span:
        """The empty range at its end."""
        return Span(self.source, self.end_line, self.end_column, self.end_line, self.end_column)

    def until(self, end: Span) -> Span:
        """Return the range from the start of this span to the end of another."""
        return Span(self.source, self.line, self.column, end.end_line, end.end_column)


NOWHERE = Span("", 1, 1, 1, 1)
"""The place of what no text holds."""


@attrs.frozen
class Place:
    """A span together with the source line it starts on and what to write under it."""

    span: Span
    line: str
    label: str = ""


@attrs.frozen
class Fix:
    """An edit that would remove the cause: put `content` where `span` is."""

    message: str
    span: Span
    content: str


@attrs.frozen
class Diagnostic:
    """One finding about a spec.

    Attributes:
        code: key of `CODES`.
        message: one sentence.
        place: the words at fault.
        help: what to do about it, or nothing.
        notes: further places that have a part in it.
        fix: an edit that would help, where one is near.
    """

    code: str
    message: str
    place: Place
    help: str = ""
    notes: tuple[Place, ...] = ()
    fix: Fix | None = None

    @property
    def severity(self) -> Severity:
        """The word `error`, for what prevents a search, or `warning`."""
        return "error" if self.code.startswith("E") else "warning"

    @property
    def span(self) -> Span:
        """The place of the words at fault."""
        return self.place.span


class SpecError(Exception):
    """Raised when a spec has errors; `diagnostics` lists them.

    Attributes:
        diagnostics: everything that was found, errors and warnings, in the order of the text.
    """

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        """Keep the diagnostics; the text of the exception is their rendering."""
        self.diagnostics = tuple(diagnostics)
        super().__init__(render_text(self.diagnostics))

    def __reduce__(self) -> tuple[type[SpecError], tuple[tuple[Diagnostic, ...]]]:
        """The arguments that recreate the error in another process."""
        return type(self), (self.diagnostics,)

    def _render_traceback_(self) -> list[str]:
        """Return what IPython shows instead of a traceback: the spec is at fault, not the code that read it."""
        return [render_text(self.diagnostics, wants_colour(True, os.environ))]


class NumericalError(Exception):
    """Raised when a loss, gradient or eigenvalue is not finite, or cannot be used for another reason."""


class RunError(Exception):
    """Raised when data, a run, a device or a file cannot be used; the message says in one line what to do."""


def not_a_spec(given: object) -> TypeError:
    """Return the error of a function that takes a spec, and was given something else, such as the path of one."""
    return TypeError(f"`spec` (={str(given)!r}) must be a Spec: `symdsl.load(path)` reads one from a file")


class Collector:
    """Collects the diagnostics of one check, and looks up the source lines they point at.

    Attributes:
        reports: how often `report` was called on this collector or view, repetitions included.
    """

    def __init__(self) -> None:
        """Start with no source and nothing to say."""
        self._lines: dict[str, list[str]] = {}
        self._found: dict[tuple[str, Span], Diagnostic] = {}
        self._always: tuple[tuple[Span, str], ...] = ()
        self.reports = 0

    def noting(self, span: Span, label: str) -> Collector:
        """Return a view of this collector that adds a note with another place to each diagnostic."""
        view = copy.copy(self)
        view._always = (*self._always, (span, label))
        return view

    def add_source(self, source: str, text: str) -> None:
        """Register a text, so that places in it can be shown; diagnostics are reported in this order of texts."""
        self._lines[source] = text.split("\n")

    def report(
        self,
        code: str,
        span: Span,
        message: str,
        *,
        label: str = "",
        help: str = "",
        notes: Iterable[tuple[Span, str]] = (),
        fix: Fix | None = None,
    ) -> None:
        """Add a diagnostic; a second one with the same code and place is dropped."""
        places = tuple(self._place(where, words) for where, words in (*notes, *self._always))
        diagnostic = Diagnostic(code, message, self._place(span, label), help, places, fix)
        self._found.setdefault((code, span), diagnostic)
        self.reports += 1

    def knows(self, code: str, span: Span) -> bool:
        """Return whether a diagnostic with this code and place has been reported."""
        return (code, span) in self._found

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """All diagnostics so far, in the order of the text."""
        order = {source: index for index, source in enumerate(self._lines)}
        found = sorted(
            self._found.values(),
            key=lambda one: (order.get(one.span.source, len(order)), one.span.line, one.span.column, one.code),
        )
        return tuple(found)

    @property
    def count(self) -> int:
        """The number of diagnostics so far."""
        return len(self._found)

    @property
    def failed(self) -> bool:
        """Whether one of them is an error."""
        return any(one.severity == "error" for one in self._found.values())

    def raise_errors(self) -> None:
        """Raise a `SpecError` with all diagnostics if one of them is an error.

        Raises:
            SpecError: carrying errors and warnings.
        """
        if self.failed:
            raise SpecError(self.diagnostics)

    def _place(self, span: Span, label: str) -> Place:
        lines = self._lines.get(span.source, [])
        line = lines[span.line - 1] if span.line <= len(lines) else ""
        return Place(span, line.removesuffix("\r"), label)


def suggest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word nearest to a misspelt one, or nothing if none is near."""
    words = sorted(sorted(set(known), key=lambda other: abs(len(other) - len(word)))[:_MOST_COMPARED])
    lowered = {other.lower(): other for other in reversed(words)}
    near = difflib.get_close_matches(word.lower(), list(lowered), n=1, cutoff=0.6)
    return lowered[near[0]] if near else None


def listing(words: Iterable[str]) -> str:
    """Return words in backticks, separated by commas."""
    return ", ".join(f"`{word}`" for word in words)


def shortened(text: str, most: int = _LONGEST_QUOTED, end: str = "...") -> str:
    """Return a text of any origin, shortened to so many letters, by default to be quoted in a sentence."""
    return text if len(text) <= most else f"{text[: most - len(end)]}{end}"


# ---------------------------------------------------------------- rendering


def wants_colour(terminal: bool, environment: Mapping[str, str]) -> bool:
    """Return whether to print in colour: on terminals, unless `NO_COLOR` or `FORCE_COLOR` says otherwise.

    Args:
        terminal: whether the output is one.
        environment: variables of the process; an empty one counts as none.
    """
    if environment.get("NO_COLOR"):
        return False
    if environment.get("FORCE_COLOR"):
        return True
    return terminal and environment.get("TERM") != "dumb"


def render_text(diagnostics: Iterable[Diagnostic], colour: bool = False) -> str:
    """Return diagnostics as a terminal shows them.

    Args:
        diagnostics: what to show.
        colour: whether to use ANSI colours.

    Returns:
        The text, without a newline at its end.
    """
    paint = _painted if colour else _plain
    return "\n\n".join(_render_one(one, paint) for one in diagnostics)


def render_json(diagnostics: Iterable[Diagnostic]) -> str:
    """Return diagnostics as a JSON array of records."""
    return json.dumps([record(one) for one in diagnostics], indent=2, ensure_ascii=False)


def record(diagnostic: Diagnostic) -> dict[str, object]:
    """Return a diagnostic as a dictionary of plain values."""
    return {
        "code": diagnostic.code,
        "severity": diagnostic.severity,
        "message": diagnostic.message,
        "help": diagnostic.help or None,
        "filename": diagnostic.span.source,
        **_location(diagnostic.span),
        "notes": [
            {"message": note.label, "filename": note.span.source, **_location(note.span)} for note in diagnostic.notes
        ],
        "fix": _fix_record(diagnostic.fix),
    }


def render_github(diagnostics: Iterable[Diagnostic]) -> str:
    """Return diagnostics as annotations of a GitHub workflow, one a line."""
    return "\n".join(_annotation(one) for one in diagnostics)


def _location(span: Span) -> dict[str, dict[str, int]]:
    return {
        "location": {"line": span.line, "column": span.column},
        "end_location": {"line": span.end_line, "column": span.end_column},
    }


def _fix_record(fix: Fix | None) -> dict[str, object] | None:
    if fix is None:
        return None
    return {
        "message": fix.message,
        "filename": fix.span.source,
        "content": fix.content,
        **_location(fix.span),
    }


def _annotation(one: Diagnostic) -> str:
    span = one.span
    message = f"{one.message}. {one.help}" if one.help else one.message
    if span.source.startswith(_NO_FILE):
        return f"::{one.severity} title={one.code}::{_escape(f'{span}: {message}')}"
    file = _escape(span.source).replace(":", "%3A").replace(",", "%2C")
    where = f"file={file},line={span.line},col={span.column}"
    end = f"endLine={span.end_line},endColumn={span.end_column}"
    return f"::{one.severity} {where},{end},title={one.code}::{_escape(message)}"


def _escape(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


_COLOURS = {"error": "\x1b[1;31m", "warning": "\x1b[1;33m", "gutter": "\x1b[1;34m", "note": "\x1b[1;36m"}


def _plain(style: str, text: str) -> str:
    return text


def _painted(style: str, text: str) -> str:
    return f"{_COLOURS[style]}{text}\x1b[0m" if text else text


def _render_one(one: Diagnostic, paint: _Paint) -> str:
    lines = [f"{paint(one.severity, f'{one.severity}[{one.code}]')}: {_visible(one.message)}"]
    lines += _render_place(one.place, "-->", "^", one.severity, paint)
    for note in one.notes:
        lines += _render_place(note, ":::", "-", "note", paint)
    if one.help:
        lines.append(f"{' ' * (_GUTTER + 1)}{paint('gutter', '=')} help: {_visible(one.help)}")
    return "\n".join(lines)


def _render_place(place: Place, arrow: str, mark: str, style: str, paint: _Paint) -> list[str]:
    where = f"  {paint('gutter', arrow)} {_visible(str(place.span))}"
    if not place.line and not place.label:
        return [where]
    shown, before, under = _excerpt(place)
    number = paint("gutter", f"{place.span.line:>{_GUTTER}} |")
    bar = paint("gutter", f"{'':>{_GUTTER}} |")
    label = f" {_visible(place.label)}" if place.label else ""
    return [where, f"{number} {shown}".rstrip(), f"{bar} {' ' * before}{paint(style, mark * under)}{label}"]


def _excerpt(place: Place) -> tuple[str, int, int]:
    """The source line as shown, the columns of screen before the words at fault, and the columns under them."""
    span, line = place.span, place.line
    start = min(span.column - 1, len(line))
    end = min(span.end_column - 1, len(line)) if span.end_line == span.line else len(line)
    skipped = 0
    if len(line) > _LONGEST_LINE:
        skipped = max(0, min(start - _LONGEST_LINE // 4, len(line) - _LONGEST_LINE))
        line = line[skipped : skipped + _LONGEST_LINE]
    before = _visible(line[: start - skipped])
    words = _visible(line[start - skipped : end - skipped], _width(before))
    rest = _visible(line[end - skipped :], _width(before + words)) if end > start else _visible(line[start - skipped :])
    shown = before + words + rest if end > start else before + rest
    return shown, _width(before), max(1, _width(words))


def _visible(text: str, column: int = 0) -> str:
    """The text with tabs as spaces, and a mark for every character that a terminal does not show or obeys."""
    shown = ""
    for character in text:
        if character == "\t":
            shown += " " * (_TAB - (column + _width(shown)) % _TAB)
        else:
            hidden = unicodedata.category(character) in _HIDDEN
            shown += "\N{REPLACEMENT CHARACTER}" if hidden else character
    return shown


def _width(text: str) -> int:
    """How many columns of a terminal a text takes."""
    return sum(_character_width(character) for character in text)


def _character_width(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me") or ord(character) in _JAMO:
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1
