"""CONV: a circular convolution, equivariant to translations."""

from __future__ import annotations

import math
from typing import ClassVar, cast

import torch
from torch import Tensor

from symdsl.analysis.facts import Candidate, Layer
from symdsl.nn import Path, Recorder, Sides, circular_conv, normal_parameter, pair


class Conv(Path):
    """A circular convolution: y[c', t] = sum_{c, s} x[c, t + s] w[c', c, s].

    Args:
        in_planes: planes of the input.
        out_planes: planes of the output.
        kernel: odd sides of the filter.
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
        kernel: Sides,
        stride: Sides = 1,
        scale: float = 1.0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.kernel, self.stride = pair(kernel), pair(stride)
        shape = (out_planes, in_planes, *self.kernel)
        self.w = normal_parameter(shape, scale * math.prod(shape[1:]) ** -0.5, generator)

    def forward(self, x: Tensor, record: Recorder | None = None) -> Tensor:
        """Return the convolution of `x` at every `stride`-th position; see `Path.forward`."""
        if record is not None:
            record("w", x, None)
        return circular_conv(x, self.w, self.stride)

    def fine(self, x: Tensor) -> Tensor:
        """Return the convolution of `x` at every position; see `Path.fine`."""
        return circular_conv(x, self.w)


def conv(layer: Layer, candidate: Candidate, scale: float, generator: torch.Generator) -> Conv:
    """Build the path of a CONV candidate."""
    kernel = layer.in_shape.sides(cast(int, candidate.argument("k")))
    return Conv(layer.in_shape.planes, layer.out_shape.planes, kernel, layer.strides, scale, generator)
