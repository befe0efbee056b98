"""The tables of `symdsl data`: what each step makes of the data, and how the labels or targets are spread."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from symdsl.render.cells import Cells, add_section, new_table, number_text

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table

STEP_COLUMNS = (
    ("step", "left"),
    ("part", "left"),
    ("examples", "right"),
    ("shape", "left"),
    ("mean", "right"),
    ("spread", "right"),
)
LABEL_COLUMNS = (("class", "left"), ("", "left"), ("training", "right"), ("test", "right"), ("", "left"))
TARGET_COLUMNS = (
    ("target", "left"),
    ("part", "left"),
    ("mean", "right"),
    ("spread", "right"),
    ("least", "right"),
    ("most", "right"),
)
MOST_LABELS = 40
MOST_CHANNELS = 6
_BAR = 24
_ROUND_OFF = 1e-6
_PARTS = {"train": "training", "test": "test"}


def data_tables(content: Mapping[str, Any]) -> Group:
    """Return tables of the data: counts, shapes and channel statistics after every step, then labels or targets.

    Args:
        content: `Inspection.content`, see `symdsl.data.inspect`.
    """
    from rich.console import Group

    steps = new_table(STEP_COLUMNS)
    for number, step in enumerate(content["steps"]):
        lead = "" if number == 0 else "|> "
        add_section(steps, [_step(f"{lead}{step['step']}", part, step[part]) for part in _PARTS])
    outcomes = _labels(content["labels"]) if "labels" in content else _targets(content["targets"])
    return Group(steps, *outcomes)


def _step(title: str, part: str, found: Mapping[str, Any]) -> Cells:
    shape = "x".join(map(str, found["shape"]))
    return (title, _PARTS[part], f"{found['examples']:,}", shape, _channels(found["mean"]), _channels(found["spread"]))


def _channels(values: Sequence[float]) -> str:
    """One number per channel, or the range of many; what is zero but for round-off is zero."""
    if len(values) > MOST_CHANNELS:
        return " to ".join(dict.fromkeys(_channels([end]) for end in (min(values), max(values))))
    return ", ".join(map(_number, values))


def _number(value: float) -> str:
    size = abs(value)
    if size < _ROUND_OFF or 1e-3 <= size < 1e5:
        return f"{value:.3f}".replace("-0.000", "0.000")
    return number_text(value)


def _labels(labels: Sequence[Mapping[str, Any]]) -> Iterator[Table | str]:
    if len(labels) > MOST_LABELS:
        counts = [f"{part} {_range([one[key] for one in labels])}" for key, part in _PARTS.items()]
        yield f"{len(labels)} classes; examples of each: {', '.join(counts)}"
        return
    table = new_table(LABEL_COLUMNS)
    most = max(one["train"] for one in labels)
    for one in labels:
        name = "" if one["name"] == str(one["label"]) else one["name"]
        bar = "█" * round(_BAR * one["train"] / most)
        add_section(table, [(str(one["label"]), name, f"{one['train']:,}", f"{one['test']:,}", bar)])
    yield table


def _range(counts: Sequence[int]) -> str:
    return f"{min(counts):,} to {max(counts):,}" if min(counts) < max(counts) else f"{counts[0]:,}"


def _targets(targets: Sequence[Mapping[str, Any]]) -> Iterator[Table | str]:
    table = new_table(TARGET_COLUMNS)
    for one in targets[:MOST_LABELS]:
        add_section(table, [_target(str(one["target"]), part, one[part]) for part in _PARTS])
    yield table
    if len(targets) > MOST_LABELS:
        yield f"and {len(targets) - MOST_LABELS} targets more"


def _target(title: str, part: str, found: Mapping[str, float]) -> Cells:
    return (title, _PARTS[part], *(number_text(found[key]) for key in ("mean", "spread", "min", "max")))
