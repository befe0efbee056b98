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

from collections.abc import Callable
from functools import reduce
from operator import add
from typing import Any

import torch
from torch import Tensor

from symdsl.evidence.weight_use import WeightUse, in_parts
from symdsl.kinds.convolution.weight_use import patch_moment, patch_sums, patches
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


def by_element(path: Any, maps: Tensor) -> Tensor:
    """Return the planes of a map by channel and element: `[n, C |G|, ...] -> [n, C, |G|, ...]`."""
    apart: Tensor = maps.unflatten(1, (-1, path.order))
    return apart


def _patches(path: GroupPath, x: Tensor) -> Tensor:
    """The patches of every plane, `[n, C, |G|, S^2, T]`."""
    return by_element(path, patches(x, path.kernel, path.stride))


def _patch_sums(path: GroupPath, x: Tensor) -> Tensor:
    """The sums of all patches of every plane, `[n, C, |G|, S^2, 1]`."""
    return by_element(path, patch_sums(x, path.kernel, path.stride)).unsqueeze(4)


def _backs(moves: Tensor) -> Tensor:
    """The permutations that undo the moves of every element, `[|G|, point]`."""
    return moves.argsort(1)


def _own(path: GroupPath, patches: Tensor) -> Tensor:
    """The patches of the planes of every element, brought back by it: `[n, C, |G|, S^2, T]`."""
    elements = torch.arange(path.order, device=patches.device)[:, None]
    return patches[:, :, elements, _backs(path.taps)]


def mixed(read: Tensor) -> Tensor:
    """Return what all channels read by element and position: `[n, C, |G|, point, T] -> [n, 1, |G| T, C point]`."""
    return read.permute(0, 2, 4, 1, 3).flatten(3).flatten(1, 2).unsqueeze(1)


def _apart(read: Tensor) -> Tensor:
    """What every channel reads by element and position: `[n, C, ..., point, T] -> [n, C, ... T, point]`."""
    return read.mT.flatten(2, -2)


def _in_channels(path: GroupPath, read: Tensor, y: Tensor) -> Tensor:
    """The gradient in all output channels of an element and position: `[n, 1, |G| T, C']`."""
    return by_element(path, y).flatten(2).mT.unsqueeze(1)


def _in_slots(path: GroupPath, read: Tensor, y: Tensor) -> Tensor:
    """The gradient in one number for each channel, element and position: `[n, C, |G| T, 1]`."""
    return by_element(path, y).flatten(2).unsqueeze(3)


def of_patches(
    arranged: Callable[[Any, Tensor], Tensor],
    gradients: Callable[[Any, Tensor, Tensor], Tensor],
    moment: Callable[[Any, Tensor], Tensor],
) -> WeightUse:
    """Return the use of filters whose inputs are patches, arranged alike at every position, or summed over them."""
    return WeightUse(
        lambda path, x: arranged(path, _patches(path, x)),
        gradients,
        moment,
        lambda path, x: arranged(path, _patch_sums(path, x)).sum(2),
    )


def _mixing_inputs(path: SeparableGroupConv, x: Tensor) -> Tensor:
    padded = circular_pad(x, path.kernel)
    z = (by_element(path, path.filtered(padded, g, path.stride).flatten(2)) for g in range(path.order))
    return mixed(torch.stack([one[:, :, back] for one, back in zip(z, _backs(path.elements), strict=True)], 2))


def _shared_filter_gradients(path: SeparableGroupConv, x: Tensor, y: Tensor) -> Tensor:
    written = by_element(path, y.flatten(2))
    z: Tensor = torch.einsum("ndgt,dcgh->nchgt", written, path.w1[:, :, path.elements])
    return z.flatten(2).unsqueeze(3)


def _brought_back(moment: Tensor, back: Tensor) -> Tensor:
    """The moment of what every channel reads, `[1, C S, C S]`, once it is brought back."""
    by_channel = moment[0].unflatten(0, (-1, len(back))).unflatten(2, (-1, len(back)))
    moved: Tensor = by_channel[:, back][..., back]
    return moved.flatten(2).flatten(0, 1).unsqueeze(0)


def filter_moment(path: Any, x: Tensor) -> Tensor:
    """Return sum_g P_g A_e P_g^T, `[1, C |G| S^2, C |G| S^2]`, where P_g brings a patch back by g^-1.

    Args:
        path: GCONV with full filters, or another whose filters move as whole ones do.
        x: what it reads.
    """
    shared = patch_moment(x, path.kernel, path.stride)
    return reduce(add, (_brought_back(shared, back) for back in _backs(path.move)))


def _pointwise_moment(path: PointwiseGroupConv, x: Tensor) -> Tensor:
    planes = by_element(path, x)
    moments = (patch_moment(planes[:, :, g], path.kernel, path.stride) for g in range(path.order))
    return reduce(add, map(_brought_back, moments, _backs(path.taps)))


def _slot_moment(path: GroupPath, x: Tensor) -> Tensor:
    """The sum over elements g of the moments of a channel's patches, `[C, S^2, S^2]`, each brought back by g^-1.

    Separable filters read the planes of all elements at each g, depthwise ones those of g.
    """
    numbers = x.shape[1:].numel() * path.size
    read = (patches(part, path.kernel, path.stride) for (part,) in in_parts(numbers, x))
    moments: Tensor = reduce(add, ((one @ one.mT).sum(0) for one in read)).unflatten(0, (-1, path.order))
    if isinstance(path, SeparableGroupConv):
        moments = moments.sum(1, keepdim=True).expand_as(moments)
    return reduce(add, (moments[:, g, back][..., back] for g, back in enumerate(_backs(path.taps))))


FILTERS = of_patches(
    lambda path, patches: mixed(patches.flatten(2, 3)[:, :, _backs(path.move)]), _in_channels, filter_moment
)
"""How full filters are used, `[C, |G| S^2]` for each output channel."""

_FACTORS: dict[type[Path], dict[str, WeightUse]] = {
    GroupConv: {"w": FILTERS},
    PointwiseGroupConv: {
        "w": of_patches(lambda path, patches: mixed(_own(path, patches)), _in_channels, _pointwise_moment)
    },
    SeparableGroupConv: {
        "w1": WeightUse(_mixing_inputs, _in_channels),
        "w2": of_patches(
            lambda path, patches: _apart(patches[:, :, :, _backs(path.taps)]), _shared_filter_gradients, _slot_moment
        ),
    },
    DepthwiseGroupConv: {
        "w0": WeightUse(lambda path, v: _in_channels(path, v, v), _in_channels),
        "w1": WeightUse(lambda path, x: _apart(by_element(path, x.flatten(2))[:, :, _backs(path.elements)]), _in_slots),
        "w2": of_patches(lambda path, patches: _apart(_own(path, patches)), _in_slots, _slot_moment),
    },
}
