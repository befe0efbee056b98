"""The table of a search with several seeds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from symdsl.render.cells import Cells, add_section, new_table, number_text, percent_text, unfinished, with_lines
from symdsl.render.table import METRICS, ranges_words

if TYPE_CHECKING:
    from rich.console import Group

COLUMNS = (
    ("layer", "left"),
    ("candidate", "left"),
    ("chosen", "right"),
    ("share", "right"),
    ("spread", "right"),
    ("least", "right"),
    ("most", "right"),
)
_SHARES = frozenset({"test.accuracy", "train.accuracy"})
_METRICS = {
    **{
        f"{part}.{key}": f"{part} {called}" + (f", {unit}" if unit else "")
        for part in ("test", "train")
        for key, (called, _, unit) in METRICS.items()
    },
    "noise_std": "noise, standard deviation",
    "neg_log_evidence_per_example": "negative log evidence per example, nats",
    "wall_s.total": "time, s",
}


def seeds_table(content: Mapping[str, Any]) -> Group:
    """Return a table over seeds: how often each candidate was chosen, its share, the metrics, and failures.

    Args:
        content: the parsed `seeds.json`; numbers that are null are shown as a dash.
    """
    shown = new_table(COLUMNS)
    for section in seeds_sections(content):
        add_section(shown, section)
    return with_lines(shown, seeds_lines(content))


def seeds_sections(content: Mapping[str, Any]) -> list[list[Cells]]:
    """Return the rows of the table over seeds, layer by layer, without the lines below it."""
    finished = content["finished"]
    return [[_candidate(layer, one, finished) for one in layer["candidates"]] for layer in content["layers"]]


def seeds_lines(content: Mapping[str, Any]) -> list[str]:
    """Return what is said below the table over seeds: the metrics, how far the seeds agree, and failures."""
    others = [unfinished(f"seed {one['seed']}", one) for one in content["seeds"] if one["status"] != "finished"]
    ranges = map(ranges_words, content.get("averages", ()))
    return [*_metrics(content), *ranges, "", *_agreement(content), *others]


def _candidate(layer: Mapping[str, Any], one: Mapping[str, Any], finished: int) -> Cells:
    figures = (percent_text(one[key]) for key in ("relative", "spread", "min", "max"))
    return (layer["name"], one["kind"], f"{one['chosen']} of {finished}", *figures)


def _metrics(content: Mapping[str, Any]) -> Iterator[str]:
    for name, found in content["metrics"].items():
        text = percent_text if name in _SHARES else number_text
        spread = "" if found["spread"] is None else f" ± {text(found['spread'])}"
        yield f"{_METRICS[name]}: {text(found['mean'])}{spread} ({text(found['min'])} to {text(found['max'])})"


def _agreement(content: Mapping[str, Any]) -> Iterator[str]:
    finished, layers = content["finished"], content["layers"]
    yield f"{content['objective']}, {finished} of {len(content['seeds'])} seeds finished"
    if unlearned := content.get("unlearned"):
        yield f"no prior was learned in {unlearned} of them: the networks fit too little"
    if finished > 1:
        agreed = sum(_agreed([one["chosen"] for one in layer["candidates"]], finished) for layer in layers)
        yield f"all of them chose the same type in {agreed} of {len(layers)} layers"


def _agreed(chosen: Sequence[int], finished: int) -> bool:
    """Whether all runs chose the same candidate, or all of them none since they removed the block around it."""
    return max(chosen) == finished or not any(chosen)
