"""Convolution on the torus."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

Sides = int | tuple[int, int]
"""Rows and columns of a kernel or of a stride, or one number for both."""


def pair(sides: Sides) -> tuple[int, int]:
    """Return the sides as a pair of rows and columns."""
    return (sides, sides) if isinstance(sides, int) else sides


def circular_pad(x: Tensor, kernel: Sides) -> Tensor:
    """Return `x` `[example, plane, row, column]` wrapped around its edges by half a kernel of odd sides."""
    rows, columns = (side // 2 for side in pair(kernel))
    tall = torch.cat((x[:, :, -rows:], x, x[:, :, :rows]), 2) if rows else x
    return torch.cat((tall[..., -columns:], tall, tall[..., :columns]), 3) if columns else tall


def circular_conv(x: Tensor, weight: Tensor, stride: Sides = 1, groups: int = 1) -> Tensor:
    """Return the cross-correlation on the torus y[c', t] = sum_{c, s} x[c, stride t + s] weight[c', c, s], s centred.

    With `groups`, the planes are cut into as many runs that do not mix, as in `torch.nn.functional.conv2d`.
    """
    rows, columns = weight.shape[-2:]
    return functional.conv2d(circular_pad(x, (rows, columns)), weight, stride=stride, groups=groups)
