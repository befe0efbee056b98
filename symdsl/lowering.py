"""Graph to torch module: one row per kind and per stage."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import networkx as nx
import torch
from torch import nn as torch_nn

from symdsl import nn
from symdsl.analysis import facts
from symdsl.evidence.weight_use import demand_weight_uses
from symdsl.kinds import KINDS

if TYPE_CHECKING:
    from symdsl.spec import Spec


def compile(spec: Spec | nx.DiGraph[str], seed: int | None = None) -> nn.Network:
    """Builds the network of a spec, or of its graph.

    Args:
        spec: a spec or the graph of one.
        seed: of the initial weights; the spec's own (0 for a graph) when left out. Weights are drawn on the CPU, path
            by path, so that a seed gives the same network on every device.

    Returns:
        A module `[example, channel, row, column] -> [example, output]`.

    Raises:
        RunError: the path of an installed package cannot be imported, or has a parameter without curvature.
    """
    graph = spec if isinstance(spec, nx.DiGraph) else spec.graph()
    if seed is None:
        seed = 0 if isinstance(spec, nx.DiGraph) else spec.facts.search.seed
    records = [graph.nodes[name]["record"] for name in nx.topological_sort(graph)]
    return build(tuple(records), seed)


def build(nodes: tuple[facts.Node, ...], seed: int) -> nn.Network:
    """Builds a network from its nodes, input first; see `compile`."""
    generator = torch.Generator().manual_seed(seed)
    stages: dict[str, torch_nn.Module] = {}
    incoming: tuple[str, ...] = ()
    reads = None
    for node in nodes:
        stages.update(_stages(node, incoming, generator))
        if isinstance(node, facts.Layer):
            incoming = node.activations
        elif isinstance(node, facts.Input):
            reads = node.out_shape.grid
    return nn.Network(stages, reads)


def _stages(
    node: facts.Node, incoming: tuple[str, ...], generator: torch.Generator
) -> Iterator[tuple[str, torch_nn.Module]]:
    match node:
        case facts.Layer():
            yield node.name, _relaxed(node, incoming, generator)
            if node.activations:
                yield f"{node.name}:activation", nn.Activation(node.activations)
        case facts.Lift():
            yield node.name, nn.Lift(node.out_shape.order)
        case facts.Project():
            yield node.name, nn.Project(node.in_shape.order, node.reduction)
        case facts.Pool():
            yield node.name, nn.Pool(node.reduction)
        case facts.Flatten():
            yield node.name, nn.Flatten()


def _relaxed(layer: facts.Layer, incoming: tuple[str, ...], generator: torch.Generator) -> nn.RelaxedLayer:
    gain, mean = nn.gain(incoming) * _widening(layer), nn.mean_share(incoming)
    paths = {one.name: _path(layer, one, gain * one.init_scale, generator) for one in layer.candidates}
    for path in paths.values():
        path.expect_mean(mean)
    return nn.RelaxedLayer(paths, layer.out_shape.channels, layer.out_shape.order, layer.stride)


def _widening(layer: facts.Layer) -> float:
    """Factor on all of a layer's initial weights: what the mean over candidates takes from the widest of them."""
    scales = [one.init_scale for one in layer.candidates]
    return math.sqrt(len(scales)) * max(scales) / math.hypot(*scales)


def _path(layer: facts.Layer, candidate: facts.Candidate, scale: float, generator: torch.Generator) -> nn.Path:
    kind = KINDS[candidate.kind]
    path: nn.Path = kind.imported(kind.module)(layer, candidate, scale, generator)
    path.weight_uses = kind.imported(kind.weight_use)(path)
    demand_weight_uses(path, f"{layer.name}.{candidate.name}")
    return path


def check_brought(layers: Iterable[facts.Layer]) -> None:
    """Builds the paths that installed packages bring, and no other, so that what they lack is known.

    Raises:
        RunError: see `compile`.
    """
    for layer in layers:
        for candidate in layer.candidates:
            if candidate.kind not in KINDS.built_in:
                _path(layer, candidate, 1.0, torch.Generator())
