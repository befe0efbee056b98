"""Build the torch module of a network from its graph."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import attrs
import networkx as nx
import torch
from torch import Tensor
from torch import nn as torch_nn

from symdsl import nn
from symdsl.analysis import facts
from symdsl.analysis.joins import joins
from symdsl.diagnostics import RunError, not_a_spec
from symdsl.graph.build import chain
from symdsl.kinds import KINDS, Site

if TYPE_CHECKING:
    from symdsl.spec import Spec


_ALIKE = 1e-3
"""Difference of two maps in float32, as a share of the largest number, that is taken to be round-off."""

BRANCHES = 0.1
"""The share that all residual blocks in a row add at first to the second moment of their map.

Branches that start small keep the scale of activations at any depth (Zhang et al. 2019, "Fixup initialization").
"""


@attrs.frozen
class Initial:
    """The initial state of a node.

    Attributes:
        reads: moments of the map that it reads.
        std: standard deviation of what a layer writes, before its activations.
    """

    reads: nn.Moments
    std: float


def initial_scales(nodes: Sequence[facts.Node]) -> dict[str, Initial]:
    """Return how every node starts: layers write numbers of variance one, except at the end of residual blocks."""
    branches = _branches(nodes)
    found: dict[str, Initial] = {}
    writes: dict[str, nn.Moments] = {}
    reads = nn.Moments()
    for node in nodes:
        since, share = branches.get(node.name, (None, 1.0))
        std = 1.0 if since is None else math.sqrt(share * writes[since].second)
        found[node.name] = Initial(reads, std)
        if isinstance(node, facts.Layer):
            reads = _written(node, std)
        elif isinstance(node, facts.Join):
            reads = writes[node.since].plus(reads)
        writes[node.name] = reads
    return found


def _written(layer: facts.Layer, std: float) -> nn.Moments:
    """The moments of what a layer writes."""
    fixed = KINDS[layer.candidates[0].kind].fixed
    if fixed is None:
        return nn.moments(layer.activations, std)
    return nn.moments(layer.activations, math.sqrt(fixed(Site(layer.in_shape, layer.out_shape))))


def _branches(nodes: Sequence[facts.Node]) -> dict[str, tuple[str, float]]:
    """For the last layer of every residual block: what the block reads, and the share of its second moment to add."""
    blocks = list(joins(nodes))
    inside = ((join, one) for join, body in blocks for one in body if isinstance(one, facts.Join))
    leading = {one.name for join, one in inside if one.since == join.since}  # reads what the block around it reads
    first: dict[str, str] = {}
    for join, _ in blocks:
        first[join.name] = join.name if join.name in leading else first.get(join.since, join.name)
    lengths = Counter(first.values())
    return {body[-1].name: (join.since, BRANCHES / lengths[first[join.name]]) for join, body in blocks}


@torch.inference_mode(False)
def compile(spec: Spec | nx.DiGraph[str], seed: int | None = None) -> nn.Network:
    """Build the network of a spec, or of its graph.

    Args:
        spec: a spec or the graph of one.
        seed: of the initial weights; the spec's own (0 for a graph) when left out. Weights are drawn on the CPU, path
            by path, so that a seed gives the same network on every device.

    Returns:
        A module `[example, channel, row, column] -> [example, output]`.

    Raises:
        RunError: if the kind of an installed package cannot be imported, maps to another shape or does not describe the
            use of a parameter, or describes it wrongly.
        TypeError: `spec` is something else, such as the path of one.
    """
    if not hasattr(spec, "graph"):
        raise not_a_spec(spec)
    graph = spec if isinstance(spec, nx.DiGraph) else spec.graph()
    if seed is None:
        seed = 0 if isinstance(spec, nx.DiGraph) else spec.facts.search.seed
    with torch.device("cpu"):  # also where torch's default device is another
        net = build(chain(graph), seed)
    if graph is not spec:  # a graph that was stored has been checked before
        for layer, candidate in _of_packages(chain(graph)):
            _check_uses(dict(net.layer(layer.name).active())[candidate.name], layer, candidate)
    return net


def build(nodes: tuple[facts.Node, ...], seed: int) -> nn.Network:
    """Build a network from its nodes, input first; see `compile`."""
    generator = torch.Generator().manual_seed(seed)
    stages: dict[str, torch_nn.Module] = {}
    ends: dict[str, str] = {}
    initial = initial_scales(nodes)
    reads = None
    for node in nodes:
        stages.update(_stages(node, initial[node.name], ends, generator))
        ends[node.name] = next(reversed(stages), "")
        if isinstance(node, facts.Input):
            reads = node.out_shape.grid
    return nn.Network(stages, reads)


def _stages(
    node: facts.Node, initial: Initial, ends: Mapping[str, str], generator: torch.Generator
) -> Iterator[tuple[str, torch_nn.Module]]:
    match node:
        case facts.Layer():
            yield node.name, _relaxed(node, initial, generator)
            if node.activations:
                yield f"{node.name}:activation", nn.Activation(node.activations)
        case facts.Join():
            yield node.name, nn.Join(ends[node.since])
        case facts.Average():
            yield node.name, nn.Average(dict(node.ranges), node.samples, node.fixed)
        case facts.Mean():
            yield node.name, nn.Mean(node.since)
        case facts.Lift():
            yield node.name, nn.Lift(node.out_shape.order)
        case facts.Project():
            yield node.name, nn.Project(node.in_shape.order, node.reduction)
        case facts.Pool():
            yield node.name, nn.Pool(node.reduction)
        case facts.Flatten():
            yield node.name, nn.Flatten()


def _relaxed(layer: facts.Layer, initial: Initial, generator: torch.Generator) -> nn.RelaxedLayer:
    scales = [one.init_scale for one in layer.candidates]
    # On all of the layer's initial weights: what the mean over candidates takes from the widest of them.
    widening = math.sqrt(len(scales)) * max(scales) / math.hypot(*scales)
    scale = initial.reads.gain * widening * initial.std
    paths = {
        one.name: _path(layer, one, one.init_scale * (1.0 if KINDS[one.kind].fixed else scale), generator)
        for one in layer.candidates
    }
    for path in paths.values():
        path.expect_mean(initial.reads.share)
    shape = layer.out_shape
    return nn.RelaxedLayer(paths, shape.channels, shape.order, layer.strides, biased=layer.bias is not None)


def _path(layer: facts.Layer, candidate: facts.Candidate, scale: float, generator: torch.Generator) -> nn.Path:
    kind = KINDS[candidate.kind]
    build, place = kind.imported(kind.module), f"{layer.name}.{candidate.name}"
    path: nn.Path
    if candidate.kind in KINDS.built_in:
        path = build(layer, candidate, scale, generator)
    else:
        path = _brought(build, kind.module, place, layer, candidate, scale, generator)
    path.weight_use = kind.imported(kind.weight_use)
    try:
        uses = set(path.weight_uses)
    except Exception as error:
        raise RunError(f"`{kind.weight_use}` fails for `{place}`: {type(error).__name__}: {error}") from error
    for tensor, parameter in path.named_parameters():
        if parameter.requires_grad and tensor not in uses:  # said before training, not after
            missing = f"no weight use for parameter `{tensor}` of {type(path).__name__}"
            raise RunError(f"`{place}.{tensor}` cannot be searched over: {missing}")
    return path


def _of_packages(nodes: Iterable[facts.Node]) -> Iterator[tuple[facts.Layer, facts.Candidate]]:
    """Yield the candidates whose kinds installed packages bring, each with its layer."""
    layers = (node for node in nodes if isinstance(node, facts.Layer))
    yield from ((layer, one) for layer in layers for one in layer.candidates if one.kind not in KINDS.built_in)


def _check_uses(path: nn.Path, layer: facts.Layer, candidate: facts.Candidate) -> None:
    """Refuse a path of a package that maps otherwise than its layer needs, or has another curvature than described."""
    from symdsl.evidence import check_weight_uses  # only kinds of packages need it

    tensors = [*path.parameters(), *path.buffers()]
    if any(one.is_meta for one in tensors):
        return
    x = torch.randn(2, *layer.in_shape.grid, generator=torch.Generator().manual_seed(0), device="cpu")
    x = x.to(next((one for one in tensors if one.is_floating_point()), x))
    kind, place = KINDS[candidate.kind], f"{layer.name}.{candidate.name}"
    try:
        _check_outputs(path, layer, x)
    except Exception as error:
        raise RunError(f"`{kind.module}` computes `{place}` wrongly: {type(error).__name__}: {error}") from error
    if not any(one.requires_grad for one in path.parameters()) or any(one.is_inference() for one in tensors):
        return  # there is nothing to differentiate
    try:
        check_weight_uses(path, x)
    except Exception as error:
        wrong = f"`{kind.weight_use}` describes `{place}` wrongly"
        raise RunError(f"{wrong}: {type(error).__name__}: {error}") from error


@torch.no_grad()
def _check_outputs(path: nn.Path, layer: facts.Layer, x: Tensor) -> None:
    with nn.evaluation_mode(path), torch.random.fork_rng(devices=[]):
        y, expected = path(x), [len(x), *layer.out_shape.grid]
        if list(y.shape) != expected:
            raise ValueError(f"it writes {list(y.shape)}, expected {expected}")
        down, right = layer.strides
        if not path.samples or down == right == 1:
            return
        kept = path.fine(x)[:, :, ::down, ::right]
    if kept.shape != y.shape or not torch.allclose(kept, y, rtol=0, atol=_ALIKE * float(y.abs().max())):
        raise ValueError("its `forward` does not keep every `stride`-th position of `fine`")


def _brought(
    build: Callable[..., object],
    module: str,
    place: str,
    layer: facts.Layer,
    candidate: facts.Candidate,
    scale: float,
    generator: torch.Generator,
) -> nn.Path:
    """Return the path that a package builds, which has the tensors that its record declares."""
    try:
        path = build(layer, candidate, scale, generator)
    except Exception as error:
        raise RunError(f"`{module}` cannot build `{place}`: {type(error).__name__}: {error}") from error
    if not isinstance(path, nn.Path):
        raise RunError(f"`{module}` must build `{place}` as a `symdsl.nn.Path`, found `{type(path).__name__}`")
    if strange := set(path.linear_in) - {name for name, _ in path.named_parameters()}:
        raise RunError(f"`linear_in` of `{place}` names `{min(strange)}`, which is none of its tensors")
    declared = [(tensor.name, tuple(tensor.shape)) for tensor in candidate.tensors]
    built = [(name, tuple(tensor.shape)) for name, tensor in path.named_parameters() if tensor.requires_grad]
    if sorted(built) != sorted(declared):
        raise RunError(f"`{place}` has the tensors {dict(built)}, but its kind declares {declared}")
    return path


def check_brought(layers: Iterable[facts.Layer]) -> None:
    """Build only the paths that installed packages bring, so that a missing part is reported early.

    Raises:
        RunError: see `compile`.
    """
    for layer, candidate in _of_packages(layers):
        _check_uses(_path(layer, candidate, 1.0, torch.Generator()), layer, candidate)
