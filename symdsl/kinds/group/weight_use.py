"""How GCONV uses its weights: at every element g and kept position t, so that R = |G| T.

A tensor that mixes channels is one block; one without an output channel has a block per input channel, whose uses give
one number each. With z[c, h, g, t] = sum_s x[c, h, t + s] w2[c, g^-1 s], which the separable factor mixes by w1:

| tensor | use | reads | gives |
|---|---|---|---|
| full w | (g, t) | the patch of all planes at t, brought back by g^-1 | y[:, g, t] |
| pointwise w | (g, t) | the patch of all x[:, g] at t, brought back by g^-1 | y[:, g, t] |
| separable w1 | (g, t) | z[:, g q, g, t] for every q | y[:, g, t] |
| separable w2 | c: (h, g, t) | the patch of x[c, h] at t, brought back by g^-1 | z[c, h, g, t] |
| depthwise w1 | c: (g, t) | x[c, g q, t] for every q | u[c, g, t] |
| depthwise w2 | c: (g, t) | the patch of u[c, g] at t, brought back by g^-1 | v[c, g, t] |
| depthwise w0 | (g, t) | v[:, g, t] | y[:, g, t] |
"""

from __future__ import annotations

from functools import reduce
from operator import add

import torch
from torch import Tensor

from symdsl.evidence.weight_use import WeightUse
from symdsl.kinds.convolution.weight_use import patch_moment, patches
from symdsl.kinds.group.module import (
    DepthwiseGroupConv,
    GroupConv,
    GroupPath,
    PointwiseGroupConv,
    SeparableGroupConv,
)
from symdsl.nn import Path, circular_pad


def group_conv(path: Path) -> dict[str, WeightUse]:
    """Return how GCONV uses its weights, by its factor."""
    return _FACTORS[type(path)]


def _filter_inputs(path: GroupConv, x: Tensor) -> Tensor:
    """Return what full filters read: `[n, 1, |G| T, C |G| S^2]`."""
    read = _by_element(path, patches(x, path.kernel, path.stride)).flatten(2, 3)
    return _mixed(torch.stack([read[:, :, back] for back in _backs(path.move)], 1))


def _filter_moment(path: GroupConv, x: Tensor) -> Tensor:
    """Return sum_g P_g A_e P_g^T, `[1, C |G| S^2, C |G| S^2]`, where P_g brings a patch back by g^-1."""
    shared = patch_moment(x, path.kernel, path.stride)
    return reduce(add, (_brought_back(shared, back) for back in _backs(path.move)))


def _brought_back(moment: Tensor, back: Tensor) -> Tensor:
    """The moment of what every channel reads, `[1, C S, C S]`, once it is brought back."""
    by_channel = moment[0].unflatten(0, (-1, len(back))).unflatten(2, (-1, len(back)))
    moved: Tensor = by_channel[:, back][..., back]
    return moved.flatten(2).flatten(0, 1).unsqueeze(0)


def _by_channel(path: GroupPath, read: Tensor, y: Tensor) -> Tensor:
    """Return the gradient in all output channels of an element and position: `[n, 1, |G| T, C']`."""
    return _by_element(path, y).flatten(2).mT.unsqueeze(1)


def _pointwise_inputs(path: PointwiseGroupConv, x: Tensor) -> Tensor:
    read = _by_element(path, patches(x, path.kernel, path.stride))
    return _mixed(torch.stack([read[:, :, g, back] for g, back in enumerate(_backs(path.taps))], 1))


def _pointwise_moment(path: PointwiseGroupConv, x: Tensor) -> Tensor:
    planes = _by_element(path, x)
    moments = (patch_moment(planes[:, :, g], path.kernel, path.stride) for g in range(path.order))
    return reduce(add, map(_brought_back, moments, _backs(path.taps)))


def _mixing_inputs(path: SeparableGroupConv, x: Tensor) -> Tensor:
    padded = circular_pad(x, path.kernel)
    z = (_by_element(path, path.filtered(padded, g, path.stride).flatten(2)) for g in range(path.order))
    return _mixed(torch.stack([one[:, :, back] for one, back in zip(z, _backs(path.elements), strict=True)], 1))


def _shared_filter_inputs(path: SeparableGroupConv, x: Tensor) -> Tensor:
    read = _by_element(path, patches(x, path.kernel, path.stride))
    moved = torch.stack([read[:, :, :, back] for back in _backs(path.taps)], 3)
    return moved.mT.flatten(2, 4)


def _plane_moments(path: GroupPath, x: Tensor) -> Tensor:
    """sum_{n, t} a a^T over the patches a of every plane: `[C, |G|, S^2, S^2]`."""
    read = patches(x, path.kernel, path.stride)
    moments: Tensor = (read @ read.mT).sum(0).unflatten(0, (-1, path.order))
    return moments


def _shared_filter_moment(path: SeparableGroupConv, x: Tensor) -> Tensor:
    moment = _plane_moments(path, x).sum(1)
    return reduce(add, (moment[:, back][..., back] for back in _backs(path.taps)))


def _shared_filter_gradients(path: SeparableGroupConv, x: Tensor, y: Tensor) -> Tensor:
    by_element = _by_element(path, y.flatten(2))
    z: Tensor = torch.einsum("ndgt,dcgh->nchgt", by_element, path.w1[:, :, path.elements])
    return z.flatten(2).unsqueeze(3)


def _element_inputs(path: DepthwiseGroupConv, x: Tensor) -> Tensor:
    read = _by_element(path, x.flatten(2))
    return torch.stack([read[:, :, back] for back in _backs(path.elements)], 2).mT.flatten(2, 3)


def _space_inputs(path: DepthwiseGroupConv, u: Tensor) -> Tensor:
    read = _by_element(path, patches(u, path.kernel, path.stride))
    return torch.stack([read[:, :, g, back] for g, back in enumerate(_backs(path.taps))], 2).mT.flatten(2, 3)


def _space_moment(path: DepthwiseGroupConv, u: Tensor) -> Tensor:
    moments = _plane_moments(path, u)
    return reduce(add, (moments[:, g, back][..., back] for g, back in enumerate(_backs(path.taps))))


def _slot_gradients(path: DepthwiseGroupConv, read: Tensor, given: Tensor) -> Tensor:
    """The gradient in one number for each channel, element and position: `[n, C, |G| T, 1]`."""
    return _by_element(path, given).flatten(2).unsqueeze(3)


def _by_element(path: GroupPath, maps: Tensor) -> Tensor:
    """`[n, C |G|, ...] -> [n, C, |G|, ...]`."""
    by_element: Tensor = maps.unflatten(1, (-1, path.order))
    return by_element


def _mixed(read: Tensor) -> Tensor:
    """Return what all channels read by element and position: `[n, |G|, C, ..., T] -> [n, 1, |G| T, C ...]`."""
    return read.flatten(2, -2).mT.flatten(1, 2).unsqueeze(1)


def _backs(moves: Tensor) -> list[Tensor]:
    """Return the permutation that undoes the move of each element."""
    return [torch.argsort(move) for move in moves]


FILTERS = WeightUse(_filter_inputs, _by_channel, _filter_moment)
"""How full filters are used, `[C, |G| S^2]` for each output channel."""

_FACTORS: dict[type[Path], dict[str, WeightUse]] = {
    GroupConv: {"w": FILTERS},
    PointwiseGroupConv: {"w": WeightUse(_pointwise_inputs, _by_channel, _pointwise_moment)},
    SeparableGroupConv: {
        "w1": WeightUse(_mixing_inputs, _by_channel),
        "w2": WeightUse(_shared_filter_inputs, _shared_filter_gradients, _shared_filter_moment),
    },
    DepthwiseGroupConv: {
        "w0": WeightUse(lambda path, v: _by_channel(path, v, v), _by_channel),
        "w1": WeightUse(_element_inputs, _slot_gradients),
        "w2": WeightUse(_space_inputs, _slot_gradients, _space_moment),
    },
}
