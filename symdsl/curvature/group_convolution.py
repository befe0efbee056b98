"""KFAC-expand factors of GCONV: W is used at every group element and kept position (R = |G| T)."""

from __future__ import annotations

import torch
from torch import Tensor

from symdsl.curvature.convolution import patch_moment, plane_gradients
from symdsl.nn.group_convolution import GroupConv, PointwiseGroupConv


def group_inputs(path: GroupConv, inputs: Tensor) -> Tensor:
    """A = sum_g P_g A_e P_g^T: one unfold serves all elements, P_g brings a patch back by g^-1.

    Returns:
        `[1, C |G| S^2, C |G| S^2]`, summed over examples, elements and positions.
    """
    size = path.order * path.kernel**2
    shared = patch_moment(inputs, path.kernel, path.stride).unflatten(0, (-1, size)).unflatten(2, (-1, size))
    total = torch.zeros_like(shared)
    for move in path.moves():
        back = torch.argsort(move)
        total += shared[:, back][..., back]
    return total.flatten(2).flatten(0, 1).unsqueeze(0)


def pointwise_inputs(path: PointwiseGroupConv, inputs: Tensor) -> Tensor:
    """A of the pointwise factor: the patch of element g's own planes, turned back by g^-1.

    Returns:
        `[1, C S^2, C S^2]`, summed over examples, elements and positions.
    """
    taps = path.kernel**2
    by_element = inputs.unflatten(1, (-1, path.order))
    total = inputs.new_zeros(())
    for g, move in enumerate(path.taps):
        moment = patch_moment(by_element[:, :, g], path.kernel, path.stride)
        back = torch.argsort(move)
        total = total + moment.unflatten(0, (-1, taps)).unflatten(2, (-1, taps))[:, back][..., back]
    return total.flatten(2).flatten(0, 1).unsqueeze(0)


def group_gradients(path: GroupConv | PointwiseGroupConv, gradients: Tensor) -> Tensor:
    """Mean over elements and positions of sum_n g g^T: `[n, C' |G|, row, column] -> [1, C', C']`."""
    n, _, rows, columns = gradients.shape
    by_channel = gradients.reshape(n, -1, path.order * rows, columns)
    return plane_gradients(by_channel)
