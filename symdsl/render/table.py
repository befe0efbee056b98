"""Tables for the terminal: what a network is made of, and what was learned about it (table 4 of the paper)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from symdsl.analysis.averages import averages, copies, insensitive_to, range_words
from symdsl.analysis.facts import Candidate, FactorSize, Layer, Node
from symdsl.analysis.joins import joins
from symdsl.catalog.searches import FEW_EXAMPLES, LEAST_STEPS
from symdsl.graph import memory, multiply_adds, parameters, strict_symmetry
from symdsl.graph.build import chain, layers
from symdsl.graph.cost import EVIDENCE_SHARE, biases, evidence_interval, joint_columns
from symdsl.render.cells import Cells, add_section, is_unlearned, new_table, number_text, percent_text, with_lines

if TYPE_CHECKING:
    import networkx as nx
    from rich.console import Group

COMPILE_COLUMNS = (
    ("layer", "left"),
    ("shape", "left"),
    ("candidate", "left"),
    ("parameters", "right"),
    ("keeps strictly", "left"),
    ("factors (blocks·side)", "left"),
    ("curvature", "right"),
    ("mult-adds", "right"),
)
RESULT_COLUMNS = (
    ("layer", "left"),
    ("candidate", "left"),
    ("parameters", "right"),
    ("precision", "right"),
    ("‖θ‖²", "right"),
    ("effective", "right"),
    ("normalised", "right"),
    ("relative", "right"),
    ("", "left"),
)


_SHOWN_TARGETS = 8
"""Targets of a regression whose errors are listed below its table."""


def compile_table(graph: nx.DiGraph[str]) -> Group:
    """Return a table of candidates: shapes, parameters, symmetry, curvature factors and cost; then totals."""
    table = new_table(COMPILE_COLUMNS)
    times = copies(chain(graph))
    for layer in layers(graph):
        add_section(table, _compiled(layer, times[layer.name]))
    return with_lines(table, _totals(graph))


def result_table(result: Mapping[str, Any]) -> Group:
    """Return a table of a run's candidates: precision, norm, effective parameters, share; then the scores.

    Args:
        result: the parsed `result.json`; numbers that are null are shown as a dash.
    """
    table = new_table(RESULT_COLUMNS)
    for section in result_sections(result):
        add_section(table, section)
    return with_lines(table, score_lines(result))


def result_sections(result: Mapping[str, Any]) -> list[list[Cells]]:
    """Return the cells of the result table: one row per candidate, one section per layer."""
    return [[_learned(layer, candidate) for candidate in layer["candidates"]] for layer in result["layers"]]


def size_text(size: int) -> str:
    """Return bytes in the largest binary unit that is at least one, e.g. `1.5 MiB`."""
    value, unit = float(size), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if value < 1024:
            break
        value, unit = value / 1024, larger
    return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"


def _compiled(layer: Layer, times: int) -> Iterator[Cells]:
    shape = f"{layer.in_shape} to {layer.out_shape}"
    for number, candidate in enumerate(layer.candidates):
        yield (layer.name, shape if number == 0 else "", *_candidate(candidate, times))
    for bias in biases(layer):
        factors, size = _factor(bias.left), size_text(bias.curvature_bytes)
        yield (layer.name, "", "bias", f"{bias.parameters:,}", "everything", factors, size, "")


def _candidate(candidate: Candidate, times: int) -> Cells:
    return (
        candidate.name,
        f"{candidate.parameters:,}",
        ", ".join(candidate.preserves) or "nothing",
        ", ".join(f"{_factor(tensor.left)} ⊗ {_factor(tensor.right)}" for tensor in candidate.tensors)
        or "none: fixed weights",
        size_text(candidate.curvature_bytes),
        f"{times * candidate.multiply_adds:,}",
    )


def _factor(factor: FactorSize) -> str:
    return f"{factor.side}" if factor.blocks == 1 else f"{factor.blocks}·{factor.side}"


def _totals(graph: nx.DiGraph[str]) -> list[str]:
    batch = graph.graph["batch"]
    needs = memory(graph, batch)
    ends = [body[-1].name for _, body in joins(chain(graph))]
    return [
        *([f"residual blocks, each of which leaves if its last layer does: {', '.join(ends)}"] if ends else []),
        *(
            f"`{begin.name}` of {begin.samples} copies around {', '.join(_names(body))}: at its start roughly "
            f"invariant to {insensitive_to(begin)}{'' if begin.fixed else '; the search learns the range'}"
            for begin, body in averages(chain(graph))
        ),
        f"{parameters(graph):,} parameters, {multiply_adds(graph):,} multiply-adds per example",
        f"memory: parameters {size_text(needs.parameters)}, activations {size_text(needs.activations)} "
        f"(batch of {batch}), curvature {size_text(needs.curvature)}",
        f"evidence: {_evidence(graph)}",
        f"the network, strictly: {strict_symmetry(graph)}",
    ]


def _names(body: Iterable[Node]) -> list[str]:
    return [node.name for node in body if isinstance(node, Layer)]


def _evidence(graph: nx.DiGraph[str]) -> str:
    """How often a search estimates the evidence, and from how many examples."""
    examples, batch, every = (graph.graph[key] for key in ("examples", "batch", "every"))
    if graph.graph.get("objective") == "elbo":
        return "the variational bound, in every training step"
    if every is not None:
        steps = "training step" if every == 1 else f"{every:,} training steps"
        return f"{examples:,} examples every {steps}"
    columns = joint_columns(graph.graph["data"])
    joint, kfac = (
        evidence_interval(chain(graph), curvature, examples, batch, columns) for curvature in ("joint", "kfac-reduce")
    )
    return (
        f"{examples:,} examples every {joint:,} training steps, or {kfac:,} beyond {FEW_EXAMPLES:,} training examples, "
        f"about {EVIDENCE_SHARE:.0%} of the time, "
        f"and {LEAST_STEPS} times a run at least"
    )


def _learned(layer: Mapping[str, Any], candidate: Mapping[str, Any]) -> Cells:
    name = candidate.get("name", candidate["kind"])
    return (
        layer["name"],
        name,
        f"{candidate['parameters']:,}",
        _numbers(candidate["precision"]),
        _numbers(candidate["weight_norm_sq"]),
        number_text(candidate["effective"]),
        number_text(candidate["normalised"]),
        percent_text(candidate["relative"]),
        _verdict(layer, name, candidate),
    )


def _verdict(layer: Mapping[str, Any], name: str, candidate: Mapping[str, Any]) -> str:
    if name == layer["chosen"]:
        return "chosen"
    if name in layer["kept"]:
        return ""
    return "below 1 %" if layer["chosen"] is not None and not candidate.get("pruned", True) else "removed"


def _numbers(values: float | Sequence[float | None] | None) -> str:
    """One number, or one per tensor."""
    return ", ".join(map(number_text, values)) if isinstance(values, Sequence) else number_text(values)


def unlearned_words(result: Mapping[str, Any]) -> list[str]:
    """Return a line which says that a search has learned no prior, or nothing if it has."""
    return (
        ["no prior was learned: the evidence never exceeded that of constant outputs"] if is_unlearned(result) else []
    )


def score_lines(result: Mapping[str, Any]) -> list[str]:
    """Return lines with the metrics of a run and the time it took."""
    evidence = result["neg_log_evidence_per_example"]
    seconds = result["wall_s"]
    phases = [name for name in ("loading", "evidence", "posterior") if name in seconds]  # training is the rest
    parts = ", ".join(f"{name} {number_text(seconds[name])} s" for name in phases)
    noise = [f"noise: standard deviation {number_text(result['noise_std'])}"] if "noise_std" in result else []
    return [
        f"test: {metrics_text(result['test'])}",
        f"train: {metrics_text(result['train'])}, negative log evidence per example {number_text(evidence)} nats",
        *unlearned_words(result),
        *noise,
        *_target_lines(result.get("targets", ())),
        *map(ranges_words, result.get("averages", ())),
        f"{result['objective']}, seed {result['seed']}, {result['epochs']} epoch{'s' * (result['epochs'] > 1)} "
        f"on {result['device']} in {number_text(seconds['total'])} s ({parts})",
    ]


def _target_lines(targets: Sequence[Mapping[str, Any]]) -> list[str]:
    """The error and the noise of each target, of many those of the first."""
    lines = [
        f"target {one['name']}: test RMSE {number_text(one['test_rmse'])}, noise {number_text(one['noise_std'])}"
        for one in targets[:_SHOWN_TARGETS]
    ]
    more = len(targets) - len(lines)
    return [*lines, f"and {more:,} more target{'s' * (more > 1)} in result.json"] if more else lines


def ranges_words(average: Mapping[str, Any]) -> str:
    """Return the ranges of an average, and those that it began with, in words."""
    found, start = average["ranges"], average["start"]
    words = (f"{name} ±{range_words(name, found[name])} (from {range_words(name, start[name])})" for name in found)
    return f"{average['name']} around {', '.join(average['layers'])}: {', '.join(words)}"


METRICS: dict[str, tuple[str, Callable[[float | None], str], str]] = {
    "accuracy": ("accuracy", percent_text, ""),
    "rmse": ("RMSE", number_text, ""),
    "r2": ("R²", number_text, ""),
    "nll": ("NLL", number_text, "nats"),
    "ece": ("ECE", number_text, ""),
}
"""Every metric in the order of its place: what it is called, how its value is written, and its unit."""


def metrics_text(metrics: Mapping[str, Any]) -> str:
    """Return metrics with their names and units, as text."""
    shown = ((called, text(metrics[key]), unit) for key, (called, text, unit) in METRICS.items() if key in metrics)
    return ", ".join(f"{called} {value} {unit}".rstrip() for called, value, unit in shown)
