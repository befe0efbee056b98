"""How GCONV uses its weights: at every group element and kept position (R = |G| T).

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

from collections.abc import Callable, Iterable
from functools import reduce
from operator import add
from typing import Any

import torch
from torch import Tensor

from symdsl.evidence.rows import Formed, Rows
from symdsl.evidence.weight_use import Factors, Handler
from symdsl.kinds.convolution.weight_use import (
    filter_uses,
    moment_of_sums,
    patch_moment,
    patch_moments,
    patch_sums,
    patches,
    plane_gradients,
    summed_plane_gradients,
)
from symdsl.kinds.group.module import (
    DepthwiseGroupConv,
    GroupConv,
    GroupPath,
    PointwiseGroupConv,
    SeparableGroupConv,
)
from symdsl.kinds.sparse.module import SparseGroupConv
from symdsl.nn import Path, circular_pad


def group_inputs(path: GroupConv, inputs: Tensor) -> Tensor:
    """A = sum_g P_g A_e P_g^T: one unfold serves all elements, P_g brings a patch back by g^-1.

    Returns:
        `[1, C |G| S^2, C |G| S^2]`, summed over examples, elements and positions.
    """
    size = path.order * path.kernel**2
    shared = patch_moment(inputs, path.kernel, path.stride).unflatten(0, (-1, size)).unflatten(2, (-1, size))
    total = summed(shared[:, back][..., back] for back in map(torch.argsort, path.move))
    return total.flatten(2).flatten(0, 1).unsqueeze(0)


def pointwise_inputs(path: PointwiseGroupConv, inputs: Tensor) -> Tensor:
    """A of the pointwise factor: the patch of element g's own planes, turned back by g^-1.

    Returns:
        `[1, C S^2, C S^2]`, summed over examples, elements and positions.
    """
    taps = path.kernel**2
    by_element = inputs.unflatten(1, (-1, path.order)).transpose(1, 2)
    moments = patch_moments(by_element, path.kernel, path.stride).unflatten(1, (-1, taps)).unflatten(3, (-1, taps))
    backs = map(torch.argsort, path.taps)
    total = summed(moment[:, back][..., back] for moment, back in zip(moments, backs, strict=True))
    return total.flatten(2).flatten(0, 1).unsqueeze(0)


def group_gradients(path: GroupPath, gradients: Tensor) -> Tensor:
    """Mean over elements and positions of sum_n g g^T: `[n, C' |G|, row, column] -> [1, C', C']`."""
    return plane_gradients(_by_channel(path, gradients))


def summed_group_inputs(path: GroupConv, inputs: Tensor) -> Tensor:
    """(1/R) sum_n a a^T, a the sum of an example's patches over elements and positions, each brought back by g^-1.

    Returns:
        `[1, C |G| S^2, C |G| S^2]`.
    """
    shared = patch_sums(inputs, path.kernel, path.stride).unflatten(1, (-1, path.order)).flatten(2)
    a = summed(shared[..., torch.argsort(move)] for move in path.move)
    return moment_of_sums(a.flatten(1), uses(path, inputs))


def summed_pointwise_inputs(path: PointwiseGroupConv, inputs: Tensor) -> Tensor:
    """As `summed_group_inputs` for the pointwise factor, `[1, C S^2, C S^2]`."""
    by_element = patch_sums(inputs, path.kernel, path.stride).unflatten(1, (-1, path.order))
    a = summed(by_element[:, :, g, torch.argsort(move)] for g, move in enumerate(path.taps))
    return moment_of_sums(a.flatten(1), uses(path, inputs))


def summed_group_gradients(path: GroupPath, gradients: Tensor) -> Tensor:
    """(1/R) sum_n g g^T, g summed over elements and positions: `[n, C' |G|, row, column] -> [1, C', C']`."""
    return summed_plane_gradients(_by_channel(path, gradients))


def summed(terms: Iterable[Tensor]) -> Tensor:
    """The sum of at least one tensor."""
    return reduce(add, terms)


def _by_channel(path: GroupPath, gradients: Tensor) -> Tensor:
    n, _, rows, columns = gradients.shape
    return gradients.reshape(n, -1, path.order * rows, columns)


def uses(path: GroupPath, inputs: Tensor) -> float:
    """|G| T: elements times kept positions."""
    return path.order * inputs.shape[2] * inputs.shape[3] / path.stride**2


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


def pointwise_uses(path: PointwiseGroupConv, inputs: Tensor, gradients: Tensor) -> tuple[Tensor, Tensor]:
    """As `filter_uses` for the pointwise factor, where every element reads its own planes by its own taps."""
    planes, by_element = (maps.unflatten(1, (-1, path.order)) for maps in (inputs, gradients))
    read = patches(planes.transpose(1, 2).flatten(0, 1), path.kernel, path.stride).unflatten(0, (-1, path.order))
    moved = torch.stack([read[:, g, :, torch.argsort(taps)] for g, taps in enumerate(path.taps)], 1)
    a = moved.permute(0, 1, 4, 2, 3).flatten(3).flatten(1, 2)
    return a, by_element.flatten(3).permute(0, 2, 3, 1).flatten(1, 2)


def pointwise_rows(path: PointwiseGroupConv, inputs: Tensor, gradients: Tensor) -> Tensor:
    """The gradient of every example in the pointwise factor, one element after the other: `[n, C', C S^2]`."""
    planes, by_element = (maps.unflatten(1, (-1, path.order)) for maps in (inputs, gradients))
    rows = []
    for g, taps in enumerate(path.taps):
        a, given = filter_uses(planes[:, :, g], by_element[:, :, g], path.kernel, path.stride)
        rows.append((given.mT @ a).unflatten(2, (-1, len(taps)))[..., torch.argsort(taps)])
    return summed(rows).flatten(2)


def group_filter_rows(path: GroupConv | SparseGroupConv, inputs: Tensor, gradients: Tensor) -> Tensor:
    """The gradient of every example in the whole filters of a group convolution, each brought back by g^-1.

    Args:
        path: the group convolution.
        inputs: `[n, C |G|, row, column]`, aligned to the sampled phase.
        gradients: in the output, `[n, C' |G|, row, column]`.

    Returns:
        `[n, C', C, |G| S^2]`.
    """
    moved = zip(_moved(path, inputs, gradients), path.move, strict=True)
    return summed(one[..., torch.argsort(move)] for one, move in moved)


def separable_rows(path: SeparableGroupConv, inputs: Tensor, gradients: Tensor) -> Tensor:
    """The gradient of every example in the product w1[c', c, q] w2[c, s]: `[n, C', C, |G|, S^2]`."""
    apart = (one.unflatten(3, (path.order, -1)) for one in _moved(path, inputs, gradients))
    moves = zip(apart, path.elements, path.taps, strict=True)
    return summed(one[..., torch.argsort(q), :][..., torch.argsort(taps)] for one, q, taps in moves)


def mixture_rows(path: SeparableGroupConv, inputs: Tensor, gradients: Tensor) -> Tensor:
    """The gradient in w1 of the separable factor: `[n, C', C, |G|]`."""
    return torch.einsum("ndcqs,cs->ndcq", separable_rows(path, inputs, gradients), path.w2.flatten(1))


def shared_filter_rows(path: SeparableGroupConv, inputs: Tensor, gradients: Tensor) -> Tensor:
    """The gradient in w2 of the separable factor: `[n, C, S^2]`."""
    return torch.einsum("ndcqs,dcq->ncs", separable_rows(path, inputs, gradients), path.w1)


def channel_uses(path: DepthwiseGroupConv, inputs: Tensor, gradients: Tensor) -> tuple[Tensor, Tensor]:
    """Of w0 of the depthwise factor, v and the gradient in y of every element and position: `[n, use, C]`, C' for y."""
    v, y = (maps.unflatten(1, (-1, path.order)).flatten(2).mT for maps in (inputs, gradients))
    return v, y


def element_rows(path: DepthwiseGroupConv, inputs: Tensor, gradients: Tensor) -> Tensor:
    """The gradient in w1 of the depthwise factor, from x and the gradient in u: `[n, C, |G|]`."""
    x, u = (maps.unflatten(1, (-1, path.order)).flatten(3) for maps in (inputs, gradients))
    pairs = u @ x.mT
    return summed(pairs[:, :, g, torch.argsort(move)] for g, move in enumerate(path.elements))


def space_rows(path: DepthwiseGroupConv, inputs: Tensor, gradients: Tensor) -> Tensor:
    """The gradient in w2 of the depthwise factor, from u and the gradient in v: `[n, C, S^2]`."""
    read = patches(inputs, path.kernel, path.stride) @ gradients.flatten(2).unsqueeze(3)
    by_element = read.squeeze(3).unflatten(1, (-1, path.order))
    return summed(by_element[:, :, g, torch.argsort(taps)] for g, taps in enumerate(path.taps))


def _moved(path: GroupConv | SparseGroupConv | SeparableGroupConv, inputs: Tensor, gradients: Tensor) -> list[Tensor]:
    """What each element contributes to the gradient of its own copy of the filters, `[n, C', C, |G| S^2]` each."""
    read = patches(inputs, path.kernel, path.stride).flatten(1, 2).mT
    by_element = gradients.flatten(2).unflatten(1, (-1, path.order))
    channels = inputs.shape[1] // path.order
    return [(by_element[:, :, g] @ read).unflatten(2, (channels, -1)) for g in range(path.order)]


Right = Callable[[Any, Tensor], Tensor]


def _mixing(expand: Right, reduce: Right, rows: Rows) -> Handler:
    """The handler of a tensor of a group convolution that gives all output channels of an element and position."""
    return Handler(
        expand=Factors(expand, lambda path, inputs, gradients: group_gradients(path, gradients)),
        reduce=Factors(reduce, lambda path, inputs, gradients: summed_group_gradients(path, gradients)),
        rows=rows,
    )


def _slotted(expand: Right, reduce: Right, rows: Formed) -> Handler:
    """The handler of a tensor of a group convolution that gives one number of a channel of its own."""
    return Handler(
        expand=Factors(expand, lambda path, inputs, gradients: slot_gradients(path, gradients)),
        reduce=Factors(reduce, lambda path, inputs, gradients: summed_slot_gradients(path, gradients)),
        rows=Rows.formed(rows),
    )


_GROUP_CONV: dict[type[Path], dict[str, Handler]] = {
    GroupConv: {"w": _mixing(group_inputs, summed_group_inputs, Rows.formed(group_filter_rows))},
    PointwiseGroupConv: {
        "w": _mixing(pointwise_inputs, summed_pointwise_inputs, Rows.shared("w", pointwise_uses, pointwise_rows))
    },
    SeparableGroupConv: {
        "w1": _mixing(mixing_inputs, summed_mixing_inputs, Rows.formed(mixture_rows)),
        "w2": Handler(
            expand=Factors(filter_inputs, lambda path, inputs, gradients: filter_gradients(path, gradients)),
            reduce=Factors(
                summed_filter_inputs, lambda path, inputs, gradients: summed_filter_gradients(path, gradients)
            ),
            rows=Rows.formed(shared_filter_rows),
        ),
    },
    DepthwiseGroupConv: {
        "w0": _mixing(channel_inputs, summed_channel_inputs, Rows.shared("w0", channel_uses)),
        "w1": _slotted(element_inputs, summed_element_inputs, element_rows),
        "w2": _slotted(space_inputs, summed_space_inputs, space_rows),
    },
}


def group_conv(path: Path) -> dict[str, Handler]:
    """What the curvature of GCONV needs, by its factor."""
    return _GROUP_CONV[type(path)]
