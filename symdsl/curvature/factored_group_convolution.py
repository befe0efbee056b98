"""KFAC factors of the tensors of separable and depthwise GCONV.

A tensor that mixes channels is used at every element and kept position, like that of the full GCONV. One without an
output channel is a single row with a slot per input channel: a use reads one slot and gives one number, so A has a
block per channel, and G is a single number, the mean over all slots. Reduce sums the uses of a slot, which share their
weights; different slots share none. No block is ever densified.

With z[c, h, g, t] = sum_s x[c, h, t + s] w2[c, g^-1 s], which the separable factor mixes by w1:

| tensor | use | reads | gives |
|---|---|---|---|
| separable w1 | (g, t) | z[:, g q, g, t] for every q | y[:, g, t] |
| separable w2 | (c, h, g, t) | the patch of x[c, h] at t, brought back by g^-1 | z[c, h, g, t] |
| depthwise w1 | (c, g, t) | x[c, g q, t] for every q | u[c, g, t] |
| depthwise w2 | (c, g, t) | the patch of u[c, g] at t, brought back by g^-1 | v[c, g, t] |
| depthwise w0 | (g, t) | v[:, g, t] | y[:, g, t] |
"""

from __future__ import annotations

import torch
from torch import Tensor

from symdsl.curvature.convolution import moment_of_sums, patch_moments, patch_sums
from symdsl.curvature.group_convolution import group_gradients, summed, uses
from symdsl.nn.convolution import circular_pad
from symdsl.nn.factored_group_convolution import DepthwiseGroupConv, SeparableGroupConv
from symdsl.nn.group_convolution import GroupPath

# ---------------------------------------------------------------- separable


def mixing_inputs(path: SeparableGroupConv, inputs: Tensor) -> Tensor:
    """A of w1, an element at a time, so that z is never held whole: `[1, C |G|, C |G|]`."""
    padded = circular_pad(inputs, path.kernel)
    moments = (_moment(_rows(path.filtered(padded, g, path.stride))) for g in range(path.order))
    by_element = (moment.unflatten(0, (-1, path.order)).unflatten(2, (-1, path.order)) for moment in moments)
    total = summed(moment[:, back][..., back] for moment, back in zip(by_element, _backs(path.elements), strict=True))
    return total.flatten(2).flatten(0, 1).unsqueeze(0)


def summed_mixing_inputs(path: SeparableGroupConv, inputs: Tensor) -> Tensor:
    """(1/R) sum_n a a^T of w1, a summed over elements and positions: `[1, C |G|, C |G|]`."""
    patches = patch_sums(inputs, path.kernel, path.stride).unflatten(1, (-1, path.order))
    filters = path.w2.flatten(1)[:, path.taps]
    read = (torch.einsum("nchs,cs->nch", patches, filters[:, g]) for g in range(path.order))
    a = summed(one[..., back] for one, back in zip(read, _backs(path.elements), strict=True))
    return moment_of_sums(a.flatten(1), uses(path, inputs))


def filter_inputs(path: SeparableGroupConv, inputs: Tensor) -> Tensor:
    """A of w2, the patches of all planes of a channel, each brought back by every element: `[C, S^2, S^2]`."""
    moments = _patch_moments(path, inputs).sum(1)
    return summed(moments[:, back][..., back] for back in _backs(path.taps))


def summed_filter_inputs(path: SeparableGroupConv, inputs: Tensor) -> Tensor:
    """(1/R) sum_n a a^T of w2, a summed over all planes of a channel, elements and positions: `[C, S^2, S^2]`."""
    patches = patch_sums(inputs, path.kernel, path.stride).unflatten(1, (-1, path.order)).sum(2)
    return _slot_moments(summed(patches[..., back] for back in _backs(path.taps)), path.order * uses(path, inputs))


def filter_gradients(path: SeparableGroupConv, gradients: Tensor) -> Tensor:
    """Mean over slots, planes, elements and positions of sum_n g^2, g the gradient in z: `[1, 1, 1]`.

    That gradient is w1[:, c, q] . y'[:, g, t]: its mean square follows from the moment of y', and z is not needed.
    """
    mixing = path.w1.flatten(1)
    return (mixing * (group_gradients(path, gradients) @ mixing)).sum().reshape(1, 1, 1) / mixing.shape[1]


def summed_filter_gradients(path: SeparableGroupConv, gradients: Tensor) -> Tensor:
    """(1/R) sum_n g^2, g the gradient in z summed over the uses of a slot, mean over slots: `[1, 1, 1]`."""
    by_channel = gradients.unflatten(1, (-1, path.order)).sum((2, 3, 4))
    positions = path.order * gradients.shape[2] * gradients.shape[3]
    return _mean_square(by_channel @ path.w1.sum(2), path.order * positions)


# ---------------------------------------------------------------- depthwise


def channel_inputs(path: DepthwiseGroupConv, inputs: Tensor) -> Tensor:
    """A of w0, over elements and positions: v `[n, C |G|, row, column] -> [1, C, C]`."""
    return _moment(_rows(inputs.unflatten(1, (-1, path.order)))).unsqueeze(0)


def summed_channel_inputs(path: DepthwiseGroupConv, inputs: Tensor) -> Tensor:
    """(1/R) sum_n a a^T of w0, a summed over elements and positions: `[1, C, C]`."""
    by_channel = inputs.unflatten(1, (-1, path.order)).flatten(2)
    return moment_of_sums(by_channel.sum(2), by_channel.shape[2])


def element_inputs(path: DepthwiseGroupConv, inputs: Tensor) -> Tensor:
    """A of w1, the planes of a channel brought back by every element: `[C, |G|, |G|]`."""
    a = inputs.unflatten(1, (-1, path.order)).flatten(3).permute(1, 2, 0, 3).flatten(2)
    moments = a @ a.mT
    return summed(moments[:, back][..., back] for back in _backs(path.elements))


def summed_element_inputs(path: DepthwiseGroupConv, inputs: Tensor) -> Tensor:
    """(1/R) sum_n a a^T of w1, a summed over elements and positions: `[C, |G|, |G|]`."""
    planes = inputs.sum((2, 3)).unflatten(1, (-1, path.order))
    every = path.order * inputs.shape[2] * inputs.shape[3]
    return _slot_moments(summed(planes[..., back] for back in _backs(path.elements)), every)


def space_inputs(path: DepthwiseGroupConv, inputs: Tensor) -> Tensor:
    """A of w2, the patch of element g's plane brought back by g^-1: `[C, S^2, S^2]`."""
    moments = _patch_moments(path, inputs).unbind(1)
    return summed(moment[:, back][..., back] for moment, back in zip(moments, _backs(path.taps), strict=True))


def summed_space_inputs(path: DepthwiseGroupConv, inputs: Tensor) -> Tensor:
    """(1/R) sum_n a a^T of w2, a summed over elements and positions: `[C, S^2, S^2]`."""
    patches = patch_sums(inputs, path.kernel, path.stride).unflatten(1, (-1, path.order)).unbind(2)
    a = summed(one[..., back] for one, back in zip(patches, _backs(path.taps), strict=True))
    return _slot_moments(a, uses(path, inputs))


def slot_gradients(path: DepthwiseGroupConv, gradients: Tensor) -> Tensor:
    """Mean over slots, elements and positions of sum_n g^2, g the gradient in u or v: `[1, 1, 1]`."""
    return gradients.square().sum().reshape(1, 1, 1) * (len(gradients) / gradients.numel())


def summed_slot_gradients(path: DepthwiseGroupConv, gradients: Tensor) -> Tensor:
    """(1/R) sum_n g^2, g summed over the elements and positions of a slot, mean over slots: `[1, 1, 1]`."""
    by_channel = gradients.unflatten(1, (-1, path.order)).flatten(2)
    return _mean_square(by_channel.sum(2), by_channel.shape[2])


# ---------------------------------------------------------------- both


def _backs(moves: Tensor) -> list[Tensor]:
    """For each element the permutation that undoes its move."""
    return [torch.argsort(move) for move in moves]


def _rows(maps: Tensor) -> Tensor:
    """`[n, row, ...] -> [row, n ...]`."""
    return maps.transpose(0, 1).flatten(1)


def _moment(rows: Tensor) -> Tensor:
    return rows @ rows.T


def _patch_moments(path: GroupPath, inputs: Tensor) -> Tensor:
    """sum_{n, t} a a^T over the circular patches of each plane: `[C, |G|, S^2, S^2]`."""
    moments: Tensor = patch_moments(inputs.unsqueeze(2), path.kernel, path.stride).unflatten(0, (-1, path.order))
    return moments


def _slot_moments(sums: Tensor, each: float) -> Tensor:
    """(1/R) sum_n a a^T per slot, of what each example sums over the R uses of a slot: `[n, slot, side]`."""
    a = sums.transpose(0, 1)
    moments: Tensor = a.mT @ a / each
    return moments


def _mean_square(sums: Tensor, each: float) -> Tensor:
    """(1/R) sum_n g^2, mean over slots, of what each example sums over the R uses of a slot: `[n, slot]`."""
    return sums.square().sum().reshape(1, 1, 1) / (each * sums.shape[1])
