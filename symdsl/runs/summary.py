"""A summary of several runs of the same spec: how often each type was chosen, means and spreads."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from symdsl.render.cells import is_unlearned

Result = Mapping[str, Any]

METRICS: tuple[tuple[str, ...], ...] = (
    *(("test", name) for name in ("accuracy", "rmse", "r2", "nll", "ece")),
    *(("train", name) for name in ("accuracy", "rmse", "r2", "nll")),
    ("noise_std",),
    ("neg_log_evidence_per_example",),
    ("wall_s", "total"),
)
"""Where `result.json` has numbers that runs are compared by, each named by its path with dots."""


def summary(results: Sequence[Result]) -> dict[str, Any]:
    """Summarise several results: how often each type was chosen, means and spreads.

    Returns:
        `finished`: how many there are. `unlearned`: how many of them have learned no prior, if any. `metrics`: by name,
        such as `test.accuracy`, `mean`, `spread` (the standard deviation between seeds, None for fewer than two),
        `min`, `max` and the `values` of the runs that have it.
        `layers`: for each its `name`, the type `chosen` most often (None where more than half of the runs removed the
        residual block around it), the candidates `kept` by half of the runs or more,
        and for every candidate how often it was `chosen` and `kept`, and the mean of its share (`relative`) with
        `spread`, `min` and `max`. `averages`, where there are any: as of a run, with the mean of every range.
    """
    measured = {
        ".".join(path): [value for result in results if (value := value_at(result, path)) is not None]
        for path in METRICS
    }
    depth = len(results[0]["layers"]) if results else 0
    return {
        "finished": len(results),
        **({"unlearned": unlearned} if (unlearned := sum(map(is_unlearned, results))) else {}),
        "metrics": {name: {**moments(values), "values": values} for name, values in measured.items() if values},
        "layers": [_layer([one["layers"][number] for one in results]) for number in range(depth)],
        **({"averages": averages} if (averages := _averages(results)) else {}),
    }


def moments(values: Sequence[float]) -> dict[str, float | None]:
    """Return mean, standard deviation between the values (n - 1), minimum and maximum."""
    return {
        "mean": statistics.fmean(values),
        "spread": statistics.stdev(values) if len(values) > 1 else None,
        "min": min(values),
        "max": max(values),
    }


def value_at(result: Result, path: Sequence[str]) -> Any:
    """Return what a result has under the keys of a path; None where it has nothing."""
    value: Any = result
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _layer(layers: Sequence[Result]) -> dict[str, Any]:
    """One layer of all runs."""
    candidates = [_candidate(layers, number) for number in range(len(layers[0]["candidates"]))]
    often = max(candidates, key=lambda one: (one["chosen"], one["relative"]))
    kept = [one["kind"] for one in candidates if 2 * one["kept"] >= len(layers) or one is often]
    removed = 2 * sum(not layer["kept"] for layer in layers) > len(layers)
    return {
        "name": layers[0]["name"],
        "chosen": None if removed else often["kind"],
        "kept": [] if removed else kept,
        "candidates": candidates,
    }


def _averages(results: Sequence[Result]) -> list[dict[str, Any]]:
    """The averages of all runs that have them, those of one name as one."""
    named: dict[str, list[Result]] = {}
    for one in (average for result in results for average in result.get("averages", ())):
        named.setdefault(one["name"], []).append(one)
    return [
        {**ones[0], "ranges": {key: statistics.fmean(one["ranges"][key] for one in ones) for key in ones[0]["ranges"]}}
        for ones in named.values()
    ]


def _candidate(layers: Sequence[Result], number: int) -> dict[str, Any]:
    ones = [layer["candidates"][number] for layer in layers]
    kind = ones[0]["kind"]
    share = moments([one["relative"] for one in ones])
    return {
        "kind": kind,
        "parameters": ones[0]["parameters"],
        "chosen": sum(layer["chosen"] == kind for layer in layers),
        "kept": sum(kind in layer["kept"] for layer in layers),
        "relative": share["mean"],
        "spread": share["spread"],
        "min": share["min"],
        "max": share["max"],
    }
