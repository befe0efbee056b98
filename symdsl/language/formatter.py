"""Canonical layout of a text, comments kept."""

from __future__ import annotations

import re
from collections.abc import Sequence

import attrs

from symdsl.diagnostics import Collector, Span
from symdsl.language import ast
from symdsl.language.parser import parse_program
from symdsl.language.printer import INDENT, WIDTH, Braced, Line, head_lines, inside_of, parts, statement_lines

_WIDE = re.compile(r" {2,}(?=(?:=|~|->|\|>|\+) )")
_TIGHT = re.compile(r"(?<![\w-])\(\d+(?:,\d+)+\)")

_Node = Line | Braced
_Place = tuple[int, int]


def format_text(text: str, source: str = "<text>") -> str:
    """Return a spec in the canonical layout, with its comments.

    One statement, item, rule or setting a line; comments stay before, or at the end of the line of, what they were
    written at; single blank lines are kept, and so are columns: wider gaps before an operator or a comment, in a
    line that is canonical otherwise, and tuples of numbers without blanks. Formatting twice changes nothing more.

    Args:
        text: a spec.
        source: its name in diagnostics.

    Raises:
        SpecError: if it cannot be parsed.
    """
    collector = Collector()
    collector.add_source(source, text)
    program = parse_program(text, source, collector)
    collector.raise_errors()
    assert program is not None, "without a tree there is an error"
    layout = _Layout(list(program.comments), text.split("\n"))
    layout.nodes(program.statements, "", None)
    layout.flush("", None)
    return "".join(f"{line}\n" for line in layout.lines)


@attrs.define
class _Layout:
    """Writes lines in the order of the text.

    Attributes:
        comments: those not written yet.
        source: the lines of the text.
        lines: those written.
        reached: the line of the source up to which everything is written.
    """

    comments: list[ast.Comment]
    source: list[str]
    lines: list[str] = attrs.field(factory=list)
    reached: int | None = None

    def nodes(self, nodes: Sequence[_Node], indent: str, end: _Place | None) -> None:
        following = [*(_start(node.span) for node in nodes), end][1:]
        for node, limit in zip(nodes, following, strict=True):
            self.flush(indent, _start(node.span))
            if isinstance(node, Braced):
                self._block(node, indent)
            elif not self._broken(node, indent):
                self.flush(indent, _end(node.span))
                self._whole(statement_lines(node, WIDTH - len(indent)), node.span, indent)
            self._trail(node.span.end_line, limit)

    def flush(self, indent: str, limit: _Place | None) -> None:
        """Write the comments that stand before a place, each on its own line."""
        while self.comments and (limit is None or _start(self.comments[0].span) < limit):
            comment = self.comments.pop(0)
            self._gap(comment.span.line)
            self.lines.append(indent + comment.text)
            self.reached = comment.span.line

    def _block(self, node: Braced, indent: str) -> None:
        if not self._broken(node, indent):
            self.flush(indent, _start(node.brace))
            self._whole(head_lines(node, WIDTH - len(indent)), node.span, indent)
        inside = inside_of(node)
        self._trail(node.brace.line, _start(inside[0].span) if inside else _end(node.span))
        self.nodes(inside, indent + INDENT, _end(node.span))
        self.flush(indent + INDENT, _end(node.span))
        self.lines.append(indent + "}")

    def _broken(self, node: _Node, indent: str) -> bool:
        """Write the parts of a node a line each, with the comments that stand between them, if some do."""
        broken = parts(node)
        if broken:
            self.flush(indent, _start(broken[0].span))
        if not broken or not self.comments or _start(self.comments[0].span) >= _start(broken[-1].span):
            return False
        self._gap(node.span.line)
        for index, part in enumerate(broken):
            self.flush(indent + (INDENT if index else ""), _start(part.span))
            self.lines.append(indent + part.text)
            if index + 1 < len(broken):
                self._trail(part.span.end_line, _start(broken[index + 1].span))
        return True

    def _whole(self, lines: list[str], span: Span, indent: str) -> None:
        """Write the lines of a node that has no comments inside."""
        self._gap(span.line)
        self.lines += [indent + line for line in self._columned(lines, span)]

    def _trail(self, line: int, limit: _Place | None) -> None:
        """Put a comment of this line, if one stands before `limit`, after what was written last."""
        self.reached = line
        if not self.comments:
            return
        span = self.comments[0].span
        if span.line == line and (limit is None or _start(span) < limit):
            before = self.source[line - 1][: span.column - 1]
            column = len(before) if before.endswith("   ") else 2  # from 0, if it was set off in a column
            self.lines[-1] = f"{self.lines[-1]:<{column - 2}}  {self.comments.pop(0).text}"

    def _columned(self, canonical: list[str], span: Span) -> list[str]:
        """The canonical lines of what begins at a place, or its one line as written if only columns tell them apart."""
        written = self.source[span.line - 1][span.column - 1 :]
        end = len(written) if span.end_line > span.line else span.end_column - span.column
        written = written[:end].rstrip()
        without_columns = _TIGHT.sub(lambda tuple: tuple[0].replace(",", ", "), _WIDE.sub(" ", written))
        return [written] if canonical == [without_columns] else canonical

    def _gap(self, line: int) -> None:
        """Keep one blank line where the source has some."""
        skipped = [] if self.reached is None else self.source[self.reached : line - 1]
        if not all(map(str.strip, skipped)) and not self.lines[-1].endswith("{"):
            self.lines.append("")
        self.reached = line


def _start(span: Span) -> _Place:
    return (span.line, span.column)


def _end(span: Span) -> _Place:
    return (span.end_line, span.end_column)
