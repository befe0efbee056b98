"""Tables for the terminal and what stands in their cells."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table

Cells = tuple[str, ...]

UNKNOWN = "–"
_STATES = {"waiting": "has not begun", "running": "is going on", "interrupted": "was interrupted", "failed": "failed"}
WIDTH = 160  # of tables that no terminal limits
_LONG = 40  # letters of a first column there, beyond which a table is wider
_UNLIMITED = 1 << 16

_LEAST_WIDTH = 12
"""Letters of words that stand side by side however narrow a terminal is; numbers are never cut."""

_BETWEEN = 3  # blanks between columns where there is room


def new_table(columns: Sequence[tuple[str, Any]]) -> Table:
    """Return an empty table with the title and the alignment of every column."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for title, justify in columns:
        table.add_column(title, justify=justify, no_wrap=justify == "right", overflow="fold")
    return table


def once(section: Iterable[Cells]) -> list[Cells]:
    """Return the rows of a section, whose first cells say the same, with that of the first row alone."""
    return [("" if number else cells[0], *cells[1:]) for number, cells in enumerate(section)]


def add_section(table: Table, section: Iterable[Cells]) -> None:
    """Add rows as a group; what their first cells say is shown once."""
    from rich.text import Text

    for cells in once(section):
        table.add_row(*map(Text, cells))


def with_lines(table: Table, lines: Sequence[str]) -> Group:
    """Return a table with lines of text below it."""
    from rich.console import Group
    from rich.text import Text

    return Group(table, *(Text(line) for line in lines))


def table_text(shown: Group | Table, terminal: bool = False) -> str:
    """Return a table as text: plain and wide for a file, as wide as the terminal and styled for one.

    In a file the first column is never broken into lines: a path can be found and copied there.
    On a terminal that is too narrow for all numbers lines are longer than it.
    """
    from io import StringIO

    from rich.console import Console

    text = StringIO()
    console = Console(file=text, width=None if terminal else WIDTH, force_terminal=terminal, force_jupyter=False)
    unlimited = console.options.update_width(_UNLIMITED)
    for table in _tables(shown):
        table.columns[0].no_wrap |= not terminal
        for column in table.columns:
            cells = (column.header, *column.cells)
            longest = max(console.measure(cell, options=unlimited).maximum for cell in cells)
            if column is table.columns[0] and not terminal:
                console.width = max(console.width, WIDTH + longest - _LONG)
            column.min_width = longest if column.no_wrap else min(longest, _LEAST_WIDTH)
        least = sum(column.min_width or 0 for column in table.columns)
        if least + _BETWEEN * len(table.columns) > console.width:
            table.padding = (0, 0)
            console.width = max(console.width, least + len(table.columns) + 1)
    console.print(shown, crop=False)
    return "".join(f"{line.rstrip()}\n" for line in text.getvalue().splitlines())


def _tables(shown: Any) -> Iterator[Table]:
    """All tables in what is to be shown."""
    from rich.console import Group
    from rich.table import Table

    if isinstance(shown, Table):
        yield shown
    for one in shown.renderables if isinstance(shown, Group) else ():
        yield from _tables(one)


def is_unlearned(result: Mapping[str, Any]) -> bool:
    """Return whether a search learned no prior, by its result or its row of a sweep."""
    return result.get("objective") != "map" and result.get("priors_learned") is False


def unfinished(name: str, run: Mapping[str, Any]) -> str:
    """Return what has become of a run that is not finished, by its `status`, and its `reason` if it has one."""
    return f"{name} {_STATES[run['status']]}" + (f": {run['reason']}" if run["reason"] else "")


def number_text(value: float | None) -> str:
    """Return four digits of a number, or a dash if there is none."""
    return UNKNOWN if value is None else f"{value:.4g}"


def percent_text(value: float | None) -> str:
    """Return a fraction as a percentage, or a dash if there is none."""
    return UNKNOWN if value is None else f"{100 * value:.2f} %"
