"""Places in a text: as offsets, as lines and columns of spans, and as editors count."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable

import attrs

from symdsl.diagnostics import Span

_UNITS: dict[str, Callable[[str], int]] = {
    "utf-8": lambda text: len(text.encode("utf-8", "surrogatepass")),
    "utf-16": lambda text: len(text.encode("utf-16-le", "surrogatepass")) // 2,
    "utf-32": len,
}
_EDITOR_LINE_END = re.compile(r"\r\n|\n|\r")


@attrs.frozen
class Places:
    """Converts between offsets, spans and the positions that editors use, in one text.

    Spans count lines and columns from 1, end lines at `\\n` alone, and count characters. The language server protocol
    counts from 0, ends lines at `\\r` too, and counts the units of an encoding: UTF-16 unless agreed otherwise.

    Attributes:
        text: the text.
        encoding: of the editor's columns: `utf-8`, `utf-16` or `utf-32`.
    """

    text: str
    encoding: str = "utf-16"
    _lines: list[int] = attrs.field(init=False, repr=False)
    _editor_lines: list[int] = attrs.field(init=False, repr=False)

    @_lines.default
    def _(self) -> list[int]:
        return [0, *(match.end() for match in re.finditer("\n", self.text))]

    @_editor_lines.default
    def _(self) -> list[int]:
        return [0, *(match.end() for match in _EDITOR_LINE_END.finditer(self.text))]

    def offset(self, line: int, column: int) -> int:
        """Return the offset of a line and column; the end of the text for places beyond it."""
        start = self._lines[line - 1] if line <= len(self._lines) else len(self.text)
        return min(start + column - 1, len(self.text))

    def reach(self, span: Span) -> tuple[int, int]:
        """Return the start and end offsets of a span."""
        return self.offset(span.line, span.column), self.offset(span.end_line, span.end_column)

    def span(self, source: str, start: int, end: int) -> Span:
        """Return the span between two offsets."""
        return Span(source, *self._line_column(start), *self._line_column(end))

    def _line_column(self, offset: int) -> tuple[int, int]:
        line = bisect_right(self._lines, offset)
        return line, offset - self._lines[line - 1] + 1

    def position(self, offset: int) -> tuple[int, int]:
        """Return an offset as an editor's line and column, both from 0."""
        line = bisect_right(self._editor_lines, offset) - 1
        return line, _UNITS[self.encoding](self.text[self._editor_lines[line] : offset])

    def offset_at(self, line: int, character: int) -> int:
        """Return the offset of an editor's line and column, clipped to the line and the text."""
        if line >= len(self._editor_lines):
            return len(self.text)
        start = self._editor_lines[line]
        match = _EDITOR_LINE_END.search(self.text, start)
        end = match.start() if match else len(self.text)
        units = _UNITS[self.encoding]
        passed = 0
        for offset in range(start, end):
            passed += units(self.text[offset])
            if passed > character:
                return offset
        return end
