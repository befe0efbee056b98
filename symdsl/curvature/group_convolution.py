"""KFAC factors of GCONV: W is used at every group element and kept position (R = |G| T)."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from operator import add

import torch
from torch import Tensor

from symdsl.curvature.convolution import (
    moment_of_sums,
    patch_moment,
    patch_moments,
    patch_sums,
    plane_gradients,
    summed_plane_gradients,
)
from symdsl.nn.group_convolution import GroupConv, GroupPath, PointwiseGroupConv


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
