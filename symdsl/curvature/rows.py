"""Rows: the gradient of every single example in a tensor.

The Gauss-Newton block of a tensor is the sum of their outer products; their inner products bound its determinant.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import torch
from torch import Tensor

from symdsl.curvature.convolution import patches
from symdsl.curvature.group_convolution import summed
from symdsl.nn import DepthwiseGroupConv, GroupConv, PointwiseGroupConv, SeparableGroupConv, SparseGroupConv

Formed = Callable[[Any, Tensor, Tensor], Tensor]
Slotted = Callable[[Any, Tensor, Tensor], tuple[Tensor, Tensor]]


@attrs.frozen
class Rows:
    """What is known of a tensor's rows, one for each example: `(owner, inputs, gradients)` gives

    Attributes:
        squares: their squared norms, `[n]`.
        gram: their inner products, `[n, n]`.
    """

    squares: Formed
    gram: Formed

    @classmethod
    def formed(cls, rows: Formed) -> Rows:
        """Of a tensor whose uses add up.

        Args:
            rows: `(owner, inputs, gradients) -> [n, ...]`: the gradient of every example in the tensor.
        """
        return cls(
            lambda owner, inputs, gradients: rows(owner, inputs, gradients).flatten(1).square().sum(1),
            lambda owner, inputs, gradients: _gram(rows(owner, inputs, gradients).flatten(1)),
        )

    @classmethod
    def slotted(cls, uses: Slotted) -> Rows:
        """Of a tensor whose uses each have a slot of their own, so that no two of them add up and no row is formed.

        Args:
            uses: `(owner, inputs, gradients)` gives what each use reads, `[n, slot, a]`, and the gradient in what it
                gives, `[n, slot, g]`.
        """

        def squares(owner: Any, inputs: Tensor, gradients: Tensor) -> Tensor:
            a, g = uses(owner, inputs, gradients)
            return (a.square().sum(2) * g.square().sum(2)).sum(1)

        def gram(owner: Any, inputs: Tensor, gradients: Tensor) -> Tensor:
            a, g = uses(owner, inputs, gradients)
            return (_gram(a.transpose(0, 1)) * _gram(g.transpose(0, 1))).sum(0)

        return cls(squares, gram)


def _gram(rows: Tensor) -> Tensor:
    products: Tensor = rows @ rows.mT
    return products


def filter_rows(inputs: Tensor, gradients: Tensor, kernel: int, stride: int) -> Tensor:
    """The gradient of every example in the filters of a convolution, summed over positions.

    Args:
        inputs: `[n, C, row, column]`, aligned to the sampled phase.
        gradients: in the output, `[n, C', row, column]`.
        kernel: odd side S of the filters.
        stride: distance of kept positions.

    Returns:
        `[n, C', C, S^2]`.
    """
    rows = gradients.flatten(2) @ patches(inputs, kernel, stride).flatten(1, 2).mT
    by_channel: Tensor = rows.unflatten(2, (inputs.shape[1], -1))
    return by_channel


def group_filter_rows(path: GroupConv | SparseGroupConv, inputs: Tensor, gradients: Tensor) -> Tensor:
    """As `filter_rows` for the whole filters of a group convolution, brought back by g^-1: `[n, C', C, |G| S^2]`."""
    moved = zip(_moved(path, inputs, gradients), path.move, strict=True)
    return summed(one[..., torch.argsort(move)] for one, move in moved)


def pointwise_rows(path: PointwiseGroupConv, inputs: Tensor, gradients: Tensor) -> Tensor:
    """As `filter_rows` for the pointwise factor: `[n, C', C, S^2]`."""
    planes, by_element = (maps.unflatten(1, (-1, path.order)) for maps in (inputs, gradients))
    own = (filter_rows(planes[:, :, g], by_element[:, :, g], path.kernel, path.stride) for g in range(path.order))
    return summed(one[..., torch.argsort(taps)] for one, taps in zip(own, path.taps, strict=True))


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


def channel_rows(path: DepthwiseGroupConv, inputs: Tensor, gradients: Tensor) -> Tensor:
    """The gradient in w0 of the depthwise factor, from v and the gradient in y: `[n, C', C]`."""
    v, y = (maps.unflatten(1, (-1, path.order)).flatten(2) for maps in (inputs, gradients))
    rows: Tensor = y @ v.mT
    return rows


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
