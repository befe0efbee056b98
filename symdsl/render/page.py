"""The result of a search as HTML and as Markdown: the table of layers, the scores and the picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from symdsl.render.cells import Cells
from symdsl.render.table import RESULT_COLUMNS, result_sections, score_lines

_TABLE = "border-collapse: collapse; font-variant-numeric: tabular-nums"
_CELL = "padding: 0.1em 0.7em"
_RULE = "border-top: 1px solid #8888"
_COLUMNS = "display: flex; flex-wrap: wrap; gap: 2em; align-items: flex-start"


def result_html(result: Mapping[str, Any], svg: str) -> str:
    """Return the layer table and the scores of a result as HTML, with the picture beside them.

    Args:
        result: the parsed `result.json`.
        svg: the picture, a whole file.
    """
    head = _html_row("th", [title for title, _ in RESULT_COLUMNS], "")
    rows = [
        _html_row("td", cells, _RULE if first else "")
        for section in result_sections(result)
        for first, cells in _once(section)
    ]
    scores = "".join(f"<div>{escape(line)}</div>" for line in score_lines(result))
    table = f'<table style="{_TABLE}"><thead>{head}</thead><tbody>{"".join(rows)}</tbody></table>'
    drawing = svg[svg.index("<svg") :]  # without the lines that make a file of it
    return f'<div style="{_COLUMNS}"><div>{table}{scores}</div><div>{drawing}</div></div>'


def result_markdown(result: Mapping[str, Any]) -> str:
    """Return the layer table and the scores of a result as Markdown."""
    head = [title for title, _ in RESULT_COLUMNS]
    rule = ["---:" if side == "right" else "---" for _, side in RESULT_COLUMNS]
    rows = [cells for section in result_sections(result) for _, cells in _once(section)]
    lines = (" | ".join(cell.replace("|", "&#124;") for cell in cells) for cells in (head, rule, *rows))
    table = "\n".join(f"| {line} |" for line in lines)
    return f"{table}\n\n" + "\n\n".join(score_lines(result)) + "\n"


def _once(section: Sequence[Cells]) -> list[tuple[bool, Cells]]:
    """The rows of a layer, each with whether it is the first; only the first one names the layer."""
    return [(number == 0, cells if number == 0 else ("", *cells[1:])) for number, cells in enumerate(section)]


def _html_row(tag: str, cells: Sequence[str], style: str) -> str:
    sides = (side for _, side in RESULT_COLUMNS)
    inside = "".join(
        f'<{tag} style="{_CELL}; text-align: {side}">{escape(cell)}</{tag}>'
        for cell, side in zip(cells, sides, strict=True)
    )
    return f'<tr style="{style}">{inside}</tr>'
