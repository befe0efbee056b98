"""The summary of a network that `symdsl compile --emit json` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from symdsl.analysis.averages import averages, copies, insensitive_to
from symdsl.analysis.facts import Average, Candidate, FactorSize, Join, Layer, Node, ParameterTensor, Shape
from symdsl.analysis.joins import joins
from symdsl.graph import cost
from symdsl.graph.build import chain, layers
from symdsl.graph.serial import content_hash
from symdsl.graph.symmetry import strict_symmetry

if TYPE_CHECKING:
    import networkx as nx


def summary_json(graph: nx.DiGraph[str], batch: int) -> dict[str, Any]:
    """Return shapes, parameters, symmetries, factor sizes and costs of a network, as values for JSON.

    Args:
        graph: the network.
        batch: examples per batch, for the memory of the activations.

    Raises:
        ValueError: `batch` is not positive.
    """
    memory = cost.memory(graph, batch)
    symmetry, times = strict_symmetry(graph), copies(chain(graph))
    return {
        "name": graph.graph["name"],
        "network": graph.graph["network"],
        "task": graph.graph["task"],
        "hash": content_hash(graph),
        "input": _shape(chain(graph)[0].out_shape),
        "parameters": cost.parameters(graph),
        "multiply_adds": cost.multiply_adds(graph),
        "preserves": {
            "invariant_to": list(symmetry.invariant),
            "equivariant_to": list(symmetry.equivariant),
            "lost": [{"movement": movement, "reason": reason} for movement, reason in symmetry.lost],
            "text": str(symmetry),
        },
        "layers": [_layer(layer, times[layer.name]) for layer in layers(graph)],
        "residuals": [_residual(join, body) for join, body in joins(chain(graph))],
        "averages": [_average(begin, body) for begin, body in averages(chain(graph))],
        "totals": {"batch": batch, **{f"{name}_bytes": size for name, size in attrs.asdict(memory).items()}},
    }


def _residual(join: Join, body: tuple[Node, ...]) -> dict[str, Any]:
    """A residual block: its name, what it reads, and the layers of its body."""
    inside = [node.name for node in body if isinstance(node, Layer)]
    return {"name": join.name, "reads": join.since, "shape": _shape(join.out_shape), "layers": inside}


def _average(begin: Average, body: tuple[Node, ...]) -> dict[str, Any]:
    """An average: its name, the ranges it starts with, what it is roughly invariant to there, and its layers."""
    return {
        "name": begin.name,
        "shape": _shape(begin.out_shape),
        "samples": begin.samples,
        "fixed": begin.fixed,
        "ranges": dict(begin.ranges),
        "insensitive_to": insensitive_to(begin),
        "layers": [node.name for node in body if isinstance(node, Layer)],
    }


def _layer(layer: Layer, times: int) -> dict[str, Any]:
    biases = cost.biases(layer)
    return {
        "name": layer.name,
        "in_shape": _shape(layer.in_shape),
        "out_shape": _shape(layer.out_shape),
        "stride": layer.stride,
        "activations": list(layer.activations),
        "candidates": [_candidate(candidate, times) for candidate in layer.candidates],
        "bias": {
            "parameters": sum(bias.parameters for bias in biases),
            "factors": [_factors(bias) for bias in biases],
            "curvature_bytes": sum(one.curvature_bytes for one in biases),
        },
        "curvature_bytes": cost.layer_curvature_bytes(layer),
    }


def _candidate(candidate: Candidate, times: int) -> dict[str, Any]:
    return {
        "name": candidate.name,
        "kind": candidate.kind,
        "parameters": candidate.parameters,
        "multiply_adds": times * candidate.multiply_adds,
        "equivariant_to": list(candidate.preserves),
        "factors": [_factors(tensor) for tensor in candidate.tensors],
        "curvature_bytes": candidate.curvature_bytes,
    }


def _factors(tensor: ParameterTensor) -> dict[str, Any]:
    return {"tensor": tensor.name, "left": _factor(tensor.left), "right": _factor(tensor.right)}


def _factor(factor: FactorSize) -> list[int]:
    return [factor.side, factor.blocks]


def _shape(shape: Shape) -> list[int]:
    """`[C]` of a vector, `[C, H, W]` of a plain map, `[C, |G|, H, W]` of a lifted one."""
    if shape.flat:
        return [shape.channels]
    lifted = [] if shape.order == 1 else [shape.order]
    return [shape.channels, *lifted, shape.height, shape.width]
