"""CONV: a circular convolution, equivariant to translations."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from symdsl.nn.initial import normal_parameter
from symdsl.nn.path import Path, Recorder


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


class Conv(Path):
    """y[c', t] = sum_{c, s} x[c, t + s] w[c', c, s], circular.

    Args:
        in_planes: planes of the input.
        out_planes: planes of the output.
        kernel: odd side S of the filter.
        stride: every `stride`-th position is kept.
        scale: standard deviation of the output for an input of unit second moment.
        generator: source of the initial weights.
    """

    samples: ClassVar[bool] = True
    linear_in: ClassVar[tuple[str, ...]] = ("w",)

    def __init__(
        self,
        in_planes: int,
        out_planes: int,
        kernel: int,
        stride: int = 1,
        scale: float = 1.0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.stride = stride
        shape = (out_planes, in_planes, kernel, kernel)
        self.w = normal_parameter(shape, scale * (in_planes * kernel * kernel) ** -0.5, generator)

    def forward(self, x: Tensor, record: Recorder | None = None) -> Tensor:
        """See `Path.forward`."""
        if record is not None:
            record("w", x, None)
        return circular_conv(x, self.w, self.stride)

    def fine(self, x: Tensor) -> Tensor:
        """See `Path.fine`."""
        return circular_conv(x, self.w)
