"""FC: every output position reads every input position."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from symdsl.nn.initial import normal_parameter
from symdsl.nn.path import Path, Recorder


class FullyConnected(Path):
    """y[c', y] = sum_{c, x} x[c, x] w[c', y, c, x].

    Args:
        in_shape: planes, rows, columns of the input.
        out_shape: planes, rows, columns of the output.
        scale: standard deviation of the output for an input of unit second moment.
        generator: source of the initial weights.
    """

    linear_in: ClassVar[tuple[str, ...]] = ("w",)

    def __init__(
        self,
        in_shape: tuple[int, int, int],
        out_shape: tuple[int, int, int],
        scale: float = 1.0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.out_shape = out_shape
        planes, *grid = in_shape
        positions = grid[0] * grid[1]
        shape = (out_shape[0], out_shape[1] * out_shape[2], planes, positions)
        self.w = normal_parameter(shape, scale * (planes * positions) ** -0.5, generator)

    def forward(self, x: Tensor, record: Recorder | None = None) -> Tensor:
        """See `Path.forward`."""
        if record is not None:
            record("w", x, None)
        weight = self.w.flatten(2).flatten(0, 1)
        y: Tensor = (x.flatten(1) @ weight.T).unflatten(1, self.out_shape)
        return y
