"""Results of searches as HTML and as Markdown: the table of layers, the scores and the picture."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from typing import Any

from symdsl.diagnostics import RunError
from symdsl.render.cells import Cells, once
from symdsl.render.seeds import COLUMNS, seeds_lines, seeds_sections
from symdsl.render.table import RESULT_COLUMNS, result_sections, score_lines

Columns = Sequence[tuple[str, str]]
"""The title of every column, and the side it is set to."""

_TABLE = "border-collapse: collapse; font-variant-numeric: tabular-nums"
_CELL = "padding: 0.1em 0.7em"
_RULE = "border-top: 1px solid #8888"
_SIDE_BY_SIDE = "display: flex; flex-wrap: wrap; gap: 2em; align-items: flex-start"


def picture_or_warning(draw: Callable[[], bytes]) -> str | None:
    """Return a picture for a notebook, or warn that Graphviz cannot draw, so that the rest is shown."""
    try:
        return draw().decode()
    except RunError as error:
        warnings.warn(str(error), stacklevel=2)
        return None


def result_html(result: Mapping[str, Any], svg: str | None) -> str:
    """Return the layer table and the scores of a result as HTML, with the picture, if there is one, beside them.

    Args:
        result: the parsed `result.json`.
        svg: the picture, a whole file.
    """
    return _html(RESULT_COLUMNS, result_sections(result), score_lines(result), svg)


def seeds_html(content: Mapping[str, Any], svg: str | None) -> str:
    """Return the table over several seeds as HTML, with the picture, if there is one, beside it.

    Args:
        content: the parsed `seeds.json`.
        svg: the picture, a whole file.
    """
    return _html(COLUMNS, seeds_sections(content), seeds_lines(content), svg)


def _html(columns: Columns, sections: Iterable[Sequence[Cells]], lines: Iterable[str], svg: str | None) -> str:
    """A table, the lines below it, and the picture beside them."""
    head = _html_row("th", columns, [title for title, _ in columns], "")
    rows = [
        _html_row("td", columns, cells, "" if number else _RULE)
        for section in sections
        for number, cells in enumerate(once(section))
    ]
    below = "".join(f"<div>{escape(line)}</div>" for line in lines if line)
    table = f'<table style="{_TABLE}"><thead>{head}</thead><tbody>{"".join(rows)}</tbody></table>'
    drawing = "" if svg is None else f"<div>{svg[svg.index('<svg') :]}</div>"  # without the lines that make it a file
    return f'<div style="{_SIDE_BY_SIDE}"><div>{table}{below}</div>{drawing}</div>'


def result_markdown(result: Mapping[str, Any]) -> str:
    """Return the layer table and the scores of a result as Markdown."""
    head = [title for title, _ in RESULT_COLUMNS]
    rule = ["---:" if side == "right" else "---" for _, side in RESULT_COLUMNS]
    rows = [cells for section in result_sections(result) for cells in once(section)]
    lines = (" | ".join(cell.replace("|", "&#124;") for cell in cells) for cells in (head, rule, *rows))
    table = "\n".join(f"| {line} |" for line in lines)
    return f"{table}\n\n" + "\n\n".join(score_lines(result)) + "\n"


def _html_row(tag: str, columns: Columns, cells: Sequence[str], style: str) -> str:
    inside = "".join(
        f'<{tag} style="{_CELL}; text-align: {side}">{escape(cell)}</{tag}>'
        for cell, (_, side) in zip(cells, columns, strict=True)
    )
    return f'<tr style="{style}">{inside}</tr>'
