"""Convolution on the torus."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional


def circular_pad(x: Tensor, kernel: int) -> Tensor:
    """Wraps `x` `[example, plane, row, column]` around its edges by half a kernel of odd size."""
    margin = kernel // 2
    if margin == 0:
        return x
    tall = torch.cat((x[:, :, -margin:], x, x[:, :, :margin]), 2)
    return torch.cat((tall[..., -margin:], tall, tall[..., :margin]), 3)


def circular_conv(x: Tensor, weight: Tensor, stride: int = 1, groups: int = 1) -> Tensor:
    """Cross-correlation on the torus: y[c', t] = sum_{c, s} x[c, stride t + s] weight[c', c, s], s centred.

    With `groups`, the planes are cut into as many runs that do not mix, as in `torch.nn.functional.conv2d`.
    """
    return functional.conv2d(circular_pad(x, weight.shape[-1]), weight, stride=stride, groups=groups)
