"""The table of a sweep on the terminal: a line for every choice of settings, averaged over its seeds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

from symdsl.render.cells import (
    UNKNOWN,
    Cells,
    is_unlearned,
    new_table,
    number_text,
    percent_text,
    unfinished,
    with_lines,
)
from symdsl.render.runs import time_text

if TYPE_CHECKING:
    from rich.console import Group

Row = Mapping[str, Any]

_FIGURES: tuple[tuple[str, str, Callable[[Any], str]], ...] = (
    ("test accuracy", "test.accuracy", percent_text),
    ("test RMSE", "test.rmse", number_text),
    ("test NLL", "test.nll", number_text),
    ("-log evidence", "neg_log_evidence_per_example", number_text),
    ("time", "wall_s.total", time_text),
)


def sweep_table(rows: Sequence[Row], axes: Sequence[str]) -> Group:
    """Return what was set, how many runs are finished, and the means over their seeds; below, what is not finished.

    Args:
        rows: of the table of a sweep.
        axes: the keys that were set.
    """
    from rich.text import Text

    shown = [one for one in _FIGURES if any(row[one[1]] is not None for row in rows)]
    said = ["spec", *axes, "objective"]
    table = new_table([*((name, "left") for name in said), ("runs", "right"), *((one[0], "right") for one in shown)])
    by_choice: dict[Cells, list[Row]] = {}
    for row in rows:
        by_choice.setdefault(tuple(str(UNKNOWN if row[name] is None else row[name]) for name in said), []).append(row)
    for choice, alike in by_choice.items():
        table.add_row(*(Text(cell) for cell in (*choice, *_figures(alike, shown))))
    done = sum(row["status"] == "finished" for row in rows)
    others = [unfinished(row["run"], row) for row in rows if row["status"] != "finished"]
    unlearned = sum(map(is_unlearned, rows))
    count = f"{unlearned} run{'s' * (unlearned != 1)}"
    said_of = [f"no prior was learned in {count}: the networks fit too little"] if unlearned else []
    return with_lines(table, [f"{done} of {len(rows)} runs finished", *said_of, *others])


def _figures(alike: Sequence[Row], shown: Sequence[tuple[str, str, Callable[[Any], str]]]) -> Iterator[str]:
    yield f"{sum(row['status'] == 'finished' for row in alike)} of {len(alike)}"
    for _, key, text in shown:
        values = [row[key] for row in alike if row[key] is not None]
        if not values:
            yield UNKNOWN
            continue
        yield text(fmean(values)) + (f" ± {text(stdev(values))}" if len(values) > 1 else "")
