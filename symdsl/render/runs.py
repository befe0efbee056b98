"""The table of `symdsl runs`: a line for every run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from symdsl.render.cells import Cells, new_table, number_text, percent_text, with_lines

if TYPE_CHECKING:
    from rich.console import Group

COLUMNS = (
    ("run", "left"),
    ("status", "left"),
    ("spec", "left"),
    ("objective", "left"),
    ("seed", "right"),
    ("epochs", "right"),
    ("accuracy", "right"),
    ("RMSE", "right"),
    ("R²", "right"),
    ("NLL", "right"),
    ("-log evidence", "right"),
    ("time", "right"),
)
RESUMABLE = "resumable"
_OF_REGRESSION = frozenset({"RMSE", "R²"})


def runs_table(runs: Sequence[Mapping[str, Any]]) -> Group:
    """Return a table of runs: status, spec, seed, test metrics, evidence and time; below, which can be resumed.

    Args:
        runs: the runs, as `symdsl runs --json` prints them; columns of regression appear only if there is one.
    """
    from rich.text import Text

    rows = [_cells(run) for run in runs]
    kept = [
        number
        for number, (title, _) in enumerate(COLUMNS)
        if title not in _OF_REGRESSION or any(row[number] for row in rows)
    ]
    table = new_table([COLUMNS[number] for number in kept])
    for row in rows:
        table.add_row(*(Text(row[number]) for number in kept))
    notes = [
        f"{run['folder']}: {run['reason'].removeprefix(run['folder']).lstrip('/: ')}" for run in runs if run["reason"]
    ]
    commands = {"map" if run["objective"] == "map" else "search" for run in runs if run["resumable"]}
    if commands:
        listed = " or ".join(f"`symdsl {command} --resume RUN`" for command in sorted(commands, reverse=True))
        notes.append(f"{listed} continues a run that is resumable.")
    return with_lines(table, notes)


def _cells(run: Mapping[str, Any]) -> Cells:
    known = {key: "" if value is None else str(value) for key, value in run.items()}
    return (
        known["folder"],
        f"{run['status']}, {RESUMABLE}" if run["resumable"] else run["status"],
        *(known[key] for key in ("spec", "objective", "seed")),
        f"{run['epoch']}/{run['epochs']}" if run["epochs"] and run["status"] != "finished" else known["epoch"],
        _if_known(percent_text, run["accuracy"]),
        *(_if_known(number_text, run[key]) for key in ("rmse", "r2", "nll", "neg_log_evidence_per_example")),
        _if_known(time_text, run["wall_s"]),
    )


def _if_known(text: Any, value: float | None) -> str:
    return "" if value is None else str(text(value))


def time_text(seconds: float) -> str:
    """Return seconds as people write them: `7.3 s`, `12 min 5 s`, `3 h 4 min`."""
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
