"""Tables for the terminal: what a network is made of, and what was learned about it (table 4 of the paper)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from symdsl.analysis.facts import Candidate, FactorSize, Layer
from symdsl.graph import candidate_curvature_bytes, memory, multiply_adds, parameters, strict_symmetry
from symdsl.graph.build import layers
from symdsl.graph.cost import bias_tensor, tensor_curvature_bytes
from symdsl.render.cells import Cells, add_section, new_table, number_text, percent_text, with_lines

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


def compile_table(graph: nx.DiGraph[str]) -> Group:
    """Per layer and candidate: shapes, parameters, symmetry, curvature factors and cost; then the totals."""
    table = new_table(COMPILE_COLUMNS)
    for layer in layers(graph):
        add_section(table, _compiled(layer))
    return with_lines(table, _totals(graph))


def result_table(result: Mapping[str, Any]) -> Group:
    """Per layer and candidate what a run found: precision, norm, effective parameters, chosen type; then the scores.

    Args:
        result: the parsed `result.json`; numbers that are null are shown as a dash.
    """
    table = new_table(RESULT_COLUMNS)
    for section in result_sections(result):
        add_section(table, section)
    return with_lines(table, score_lines(result))


def result_sections(result: Mapping[str, Any]) -> list[list[Cells]]:
    """The cells under `RESULT_COLUMNS`: one row per candidate, one section per layer."""
    return [[_learned(layer, candidate) for candidate in layer["candidates"]] for layer in result["layers"]]


def size_text(size: int) -> str:
    """A number of bytes in the largest binary unit that leaves at least one, e.g. `1.5 MiB`."""
    value, unit = float(size), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if value < 1024:
            break
        value, unit = value / 1024, larger
    return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"


def _compiled(layer: Layer) -> Iterator[Cells]:
    shape = f"{layer.in_shape} to {layer.out_shape}"
    for number, candidate in enumerate(layer.candidates):
        yield (layer.name, shape if number == 0 else "", *_candidate(candidate))
    bias = bias_tensor(layer)
    factors, size = _factor(bias.left), size_text(tensor_curvature_bytes(bias))
    yield (layer.name, "", "bias", f"{bias.parameters:,}", "everything", factors, size, "")


def _candidate(candidate: Candidate) -> Cells:
    return (
        candidate.name,
        f"{candidate.parameters:,}",
        ", ".join(candidate.preserves) or "nothing",
        ", ".join(f"{_factor(tensor.left)} ⊗ {_factor(tensor.right)}" for tensor in candidate.tensors),
        size_text(candidate_curvature_bytes(candidate)),
        f"{candidate.multiply_adds:,}",
    )


def _factor(factor: FactorSize) -> str:
    return f"{factor.side}" if factor.blocks == 1 else f"{factor.blocks}·{factor.side}"


def _totals(graph: nx.DiGraph[str]) -> list[str]:
    batch = graph.graph["batch"]
    needs = memory(graph, batch)
    return [
        f"{parameters(graph):,} parameters, {multiply_adds(graph):,} multiply-adds per example",
        f"memory: parameters {size_text(needs.parameters)}, activations {size_text(needs.activations)} "
        f"(batch of {batch}), curvature {size_text(needs.curvature)}",
        f"the network, strictly: {strict_symmetry(graph)}",
    ]


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
        _verdict(layer, name),
    )


def _verdict(layer: Mapping[str, Any], name: str) -> str:
    if name == layer["chosen"]:
        return "chosen"
    return "" if name in layer["kept"] else "removed"


def _numbers(values: float | Sequence[float | None] | None) -> str:
    """One number, or one per tensor."""
    return ", ".join(map(number_text, values)) if isinstance(values, Sequence) else number_text(values)


def score_lines(result: Mapping[str, Any]) -> list[str]:
    """How well the network does, and what the run took."""
    train, test = result["train"], result["test"]
    evidence = result["neg_log_evidence_per_example"]
    return [
        f"test: accuracy {percent_text(test['accuracy'])}, NLL {number_text(test['nll'])} nats, "
        f"ECE {number_text(test['ece'])}",
        f"train: accuracy {percent_text(train['accuracy'])}, NLL {number_text(train['nll'])} nats, "
        f"negative log evidence per example {number_text(evidence)} nats",
        f"{result['objective']}, seed {result['seed']}, {result['epochs']} epochs on {result['device']} "
        f"in {number_text(result['wall_s']['total'])} s (evidence {number_text(result['wall_s']['evidence'])} s)",
    ]
