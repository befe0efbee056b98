"""Convert a learned network to plain modules: shared weights are written out, and paths of one form added up."""

from __future__ import annotations

import copy
import math
from collections import OrderedDict
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from symdsl.analysis.facts import Candidate, Layer
from symdsl.diagnostics import RunError
from symdsl.export import plain
from symdsl.kinds import KINDS
from symdsl.kinds.dense.module import FactoredFullyConnected
from symdsl.kinds.features.module import RandomFeatures
from symdsl.kinds.sparse.module import SparseFullyConnected
from symdsl.nn import Average, Join, Mean, Network, Path, RelaxedLayer, read_by
from symdsl.nn.average import kernel
from symdsl.nn.network import Activation

ACTIVATIONS: dict[str, type[nn.Module]] = {
    "relu": nn.ReLU,
    "gelu": nn.GELU,
    "tanh": nn.Tanh,
    "sigmoid": nn.Sigmoid,
    "silu": nn.SiLU,
    "elu": nn.ELU,
    "leaky_relu": nn.LeakyReLU,
    "softplus": nn.Softplus,
    "identity": nn.Identity,
}
"""PyTorch's own module of each activation."""

_AT_A_TIME = 64
"""Unit inputs that a path is asked about at a time."""


def plain_network(net: Network, records: Iterable[Layer]) -> nn.Sequential:
    """Return the same function as plain PyTorch modules, `[n, c, h, w] -> [n, output]`, float32.

    Every path that learns is linear, so that what it makes of unit inputs is its weight. It is computed in double
    precision.

    Args:
        net: a learned network.
        records: of its layers.

    Raises:
        RunError: a path of an installed package keeps a symmetry in a way that cannot be written out.
    """
    wide = copy.deepcopy(net).double().eval()
    by_name = {one.name: one for one in records}
    stages: OrderedDict[str, nn.Module] = OrderedDict()
    shortcuts, ends = wide.shortcuts(), {"": 0}
    taken = set(dir(nn.Sequential()))
    own = {name: _free(name, taken) for name in by_name}  # first, so that layers keep their names
    for name, stage in wide.active():
        if isinstance(stage, RelaxedLayer):
            stages[own[name]] = _layer(stage, by_name[name])
        elif isinstance(stage, Activation):
            layer = name.partition(":")[0]
            for number, activation in enumerate(stage.names):
                stages[_free(f"{layer}_{activation}{number or ''}", taken)] = ACTIVATIONS[activation]()
        elif isinstance(stage, Average):
            stages[_free(name, taken)] = _copies(wide, stage)
        elif isinstance(stage, Mean):
            stages[_free(f"{stage.since}_mean", taken)] = plain.Mean(wide.average(stage.since).samples)
        elif isinstance(stage, Join):
            body = list(stages.items())[ends[shortcuts[name]] :]
            for key, _ in body:
                del stages[key]
            stages[_free(name, taken)] = plain.Residual(OrderedDict(body))
        else:
            stages[_free(name, taken)] = stage
        ends[name] = len(stages)
    stages[_free("outputs", taken)] = nn.Flatten()
    return nn.Sequential(stages).float().eval()


def _free(key: str, taken: set[str]) -> str:
    """A key that no other module has, nor a method of modules; it is taken from now on."""
    while key in taken:
        key += "_"
    taken.add(key)
    return key


@torch.no_grad()
def _copies(net: Network, stage: Average) -> plain.Copies:
    """The transformations of the evaluation on maps of the size that the stage reads."""
    assert net.reads is not None, "a network of a spec knows its input"
    height, width = read_by(net, stage, torch.zeros(1, *net.reads, dtype=torch.float64)).shape[2:]
    found = plain.Copies(stage.samples, height, width).double()
    shape = [stage.samples, 1, height, width]
    found.grid.copy_(functional.affine_grid(stage.matrices(height, width), shape, align_corners=False))
    found.kernel.copy_(kernel(found.kernel))
    return found


@torch.no_grad()
def _layer(layer: RelaxedLayer, record: Layer) -> plain.Sum:
    candidates = {one.name: one for one in record.candidates}
    for name, path in layer.active():
        if KINDS[candidates[name].kind].fixed is not None and not isinstance(path, RandomFeatures):
            raise RunError(f"`{record.name}.{name}` cannot be exported: of kinds with fixed weights only `RFF` can")
    terms: list[nn.Module] = []
    sampled = [_filters(path, candidates[name], record) for name, path in layer.active() if path.samples]
    if sampled:
        terms.append(_convolution(sampled, record.strides, layer.scale))
    others = [path for _, path in layer.active() if not path.samples]
    terms += [_factored(path, record, layer.scale) for path in others if isinstance(path, _FACTORED)]
    terms += [_random_features(path, record) for path in others if isinstance(path, RandomFeatures)]
    whole = [path for path in others if not isinstance(path, (*_FACTORED, RandomFeatures))]
    if whole:
        terms.append(_fully_connected(whole, record, layer.scale))
    found = plain.Sum(record.out_shape.grid, *terms).double()
    found.bias.copy_(layer.bias.repeat_interleave(layer.order))
    return found


def _filters(path: Path, candidate: Candidate, record: Layer) -> Tensor:
    """The filters of the plain convolution that a path is, `[out plane, in plane, row, column]`."""
    side = dict(candidate.arguments).get("k")
    if not isinstance(side, int) or isinstance(side, bool):
        raise RunError(
            f"`{record.name}.{candidate.name}` cannot be exported: the kind has no `k`, the side of a filter"
        )
    units = torch.eye(record.in_shape.planes, dtype=torch.float64)[:, :, None, None]
    middle = functional.pad(units, _around(record.in_shape.sides(side)))
    responses = torch.cat([path.fine(some) for some in middle.split(_AT_A_TIME)])
    return responses.flip(2, 3).transpose(0, 1)


def _around(sides: tuple[int, int]) -> tuple[int, int, int, int]:
    """The margins that put one number in the middle of so many rows and columns, as `functional.pad` takes them."""
    rows, columns = sides[0] // 2, sides[1] // 2
    return columns, columns, rows, rows


def _convolution(filters: Sequence[Tensor], stride: tuple[int, int], scale: float) -> plain.Convolution:
    rows, columns = (max(one.shape[dim] for one in filters) for dim in (2, 3))
    wide = [functional.pad(one, _around((rows - one.shape[2], columns - one.shape[3]))) for one in filters]
    total = torch.stack(wide).sum(0)
    found = plain.Convolution(total.shape[1], total.shape[0], (rows, columns), stride).double()
    found.weight.copy_(scale * total)
    return found


_FACTORED = (FactoredFullyConnected, SparseFullyConnected)


def _factored(path: FactoredFullyConnected | SparseFullyConnected, record: Layer, scale: float) -> plain.Factored:
    if isinstance(path, SparseFullyConnected):
        outer, inner = path.u1 @ path.phi1(), path.u2 @ path.phi2()
    else:
        outer, inner = path.w1, path.w2
    found = plain.Factored(inner.shape[1], inner.shape[2], len(inner), outer.shape[2], record.out_shape.grid).double()
    found.outer.copy_(scale * outer)
    found.inner.copy_(inner)
    return found


def _random_features(path: RandomFeatures, record: Layer) -> plain.RandomFeatures:
    found = plain.RandomFeatures(record.in_shape.grid, record.out_shape.grid).double()
    found.weight.copy_(path.w)
    found.phase.copy_(path.phase)
    return found


def _fully_connected(paths: Sequence[Path], record: Layer, scale: float) -> plain.FullyConnected:
    shape, out_shape = record.in_shape.grid, record.out_shape.grid
    found = plain.FullyConnected(shape, out_shape).double()
    units = torch.eye(math.prod(shape), dtype=torch.float64).unflatten(1, shape)
    for path in paths:
        rows = torch.cat([path(some).flatten(1) for some in units.split(_AT_A_TIME)])
        found.weight.add_(scale * rows.T)
    return found
