"""Graph to torch module: one row per kind and per stage."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, cast

import networkx as nx
import torch
from torch import nn as torch_nn

from symdsl import nn
from symdsl.analysis import facts
from symdsl.analysis.kinds import KINDS, anchor_count
from symdsl.curvature import demand_handlers
from symdsl.diagnostics import RunError
from symdsl.groups import GROUPS, TRIVIAL, Group

if TYPE_CHECKING:
    from symdsl.spec import Spec

PathBuilder = Callable[[facts.Layer, facts.Candidate, float, torch.Generator], nn.Path]


def _grid(shape: facts.Shape) -> tuple[int, int, int]:
    return shape.planes, shape.height, shape.width


def _fully_connected(
    layer: facts.Layer, candidate: facts.Candidate, scale: float, generator: torch.Generator
) -> nn.Path:
    return nn.FullyConnected(_grid(layer.in_shape), _grid(layer.out_shape), scale, generator)


def _factored(layer: facts.Layer, candidate: facts.Candidate, scale: float, generator: torch.Generator) -> nn.Path:
    return nn.FactoredFullyConnected(_grid(layer.in_shape), _grid(layer.out_shape), scale, generator)


def _conv(layer: facts.Layer, candidate: facts.Candidate, scale: float, generator: torch.Generator) -> nn.Path:
    kernel = cast(int, candidate.argument("k"))
    return nn.Conv(layer.in_shape.planes, layer.out_shape.planes, kernel, layer.stride, scale, generator)


GROUP_FACTORS: dict[str, Callable[..., nn.GroupPath]] = {
    "full": nn.GroupConv,
    "separable": nn.SeparableGroupConv,
    "depthwise": nn.DepthwiseGroupConv,
    "pointwise": nn.PointwiseGroupConv,
}
"""The module of each factor of GCONV."""


def _group_conv(layer: facts.Layer, candidate: facts.Candidate, scale: float, generator: torch.Generator) -> nn.Path:
    module = GROUP_FACTORS[cast(str, candidate.argument("factor"))]
    group, kernel = GROUPS[cast(str, candidate.argument("group"))], cast(int, candidate.argument("k"))
    channels, lifted = (layer.in_shape.channels, layer.out_shape.channels), GROUPS[layer.in_shape.group]
    return module(*channels, group, kernel, layer.stride, scale, generator, lifted)


def _factored_group(
    layer: facts.Layer, candidate: facts.Candidate, scale: float, generator: torch.Generator
) -> nn.Path:
    order = layer.in_shape.order
    return nn.FactoredFullyConnected(_grid(layer.in_shape), _grid(layer.out_shape), scale, generator, order)


def _plan(candidate: facts.Candidate, sites: int) -> nn.BasisPlan:
    arguments = dict(candidate.arguments)
    return nn.BasisPlan(
        anchor_count(arguments, sites),
        moves=arguments["anchors"] == "learned",
        scales=arguments["on"] == "lengthscale",
    )


def _sparse(layer: facts.Layer, candidate: facts.Candidate, scale: float, generator: torch.Generator) -> nn.Path:
    return _sparse_over(GROUPS[TRIVIAL], layer, candidate, scale, generator)


def _sparse_group(layer: facts.Layer, candidate: facts.Candidate, scale: float, generator: torch.Generator) -> nn.Path:
    return _sparse_over(GROUPS[layer.in_shape.group], layer, candidate, scale, generator)


def _sparse_over(
    group: Group, layer: facts.Layer, candidate: facts.Candidate, scale: float, generator: torch.Generator
) -> nn.Path:
    outer = _plan(candidate, group.order * layer.out_shape.positions)
    inner = _plan(candidate, group.order * layer.in_shape.positions)
    shapes = _grid(layer.in_shape), _grid(layer.out_shape)
    return nn.SparseFullyConnected(*shapes, outer, inner, group, scale, generator)


def _sparse_conv(layer: facts.Layer, candidate: facts.Candidate, scale: float, generator: torch.Generator) -> nn.Path:
    kernel = cast(int, candidate.argument("k"))
    planes = layer.in_shape.planes, layer.out_shape.planes
    return nn.SparseConv(*planes, kernel, _plan(candidate, kernel**2), layer.stride, scale, generator)


def _sparse_group_conv(
    layer: facts.Layer, candidate: facts.Candidate, scale: float, generator: torch.Generator
) -> nn.Path:
    group, kernel = GROUPS[layer.in_shape.group], cast(int, candidate.argument("k"))
    plan = _plan(candidate, group.order * kernel**2)
    channels = layer.in_shape.channels, layer.out_shape.channels
    return nn.SparseGroupConv(*channels, group, kernel, plan, layer.stride, scale, generator)


PATHS: dict[str, PathBuilder] = {
    "FC": _fully_connected,
    "CONV": _conv,
    "F-FC": _factored,
    "GCONV": _group_conv,
    "S-FC": _sparse,
    "S-CONV": _sparse_conv,
    "F-GFC": _factored_group,
    "S-GFC": _sparse_group,
    "S-GCONV": _sparse_group_conv,
}
"""How each built-in kind becomes a module."""


def path_builder(kind: str) -> PathBuilder:
    """How a kind becomes a module, built in or brought by an installed package.

    Raises:
        RunError: the package's function cannot be imported.
    """
    if kind in PATHS:
        return PATHS[kind]
    module, _, function = KINDS[kind].module.partition(":")
    try:
        builder: PathBuilder = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise RunError(f"the path of the kind `{kind}` cannot be imported: {error}") from error
    return builder


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
            reads = _grid(node.out_shape)
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
    path = path_builder(candidate.kind)(layer, candidate, scale, generator)
    demand_handlers(path, f"{layer.name}.{candidate.name}")
    return path


def check_brought(layers: Iterable[facts.Layer]) -> None:
    """Builds the paths that installed packages bring, and no other, so that what they lack is known.

    Raises:
        RunError: see `compile`.
    """
    for layer in layers:
        for candidate in layer.candidates:
            if candidate.kind not in PATHS:
                _path(layer, candidate, 1.0, torch.Generator())
