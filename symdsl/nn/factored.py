"""F-FC: a fully connected path whose weight factors over input and output positions."""

from __future__ import annotations

import torch
from torch import Tensor

from symdsl.nn.initial import normal_parameter
from symdsl.nn.path import Path, Recorder


class FactoredFullyConnected(Path):
    """z[c', c] = sum_x x[c, x] w2[c', c, x];  y[c', y] = sum_c z[c', c] w1[c', c, y].

    Layer-wise Equivariances (van der Ouderaa et al. 2023), section 4.1.

    Args:
        in_shape: planes, rows, columns of the input.
        out_shape: planes, rows, columns of the output.
        scale: standard deviation of the output for an input of unit second moment. The product carries it: each of
            the two tensors takes its square root.
        generator: source of the initial weights.
    """

    def __init__(
        self,
        in_shape: tuple[int, int, int],
        out_shape: tuple[int, int, int],
        scale: float = 1.0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.out_grid = out_shape[1:]
        planes, positions = in_shape[0], in_shape[1] * in_shape[2]
        out_planes, out_positions = out_shape[0], out_shape[1] * out_shape[2]
        self.w1 = normal_parameter((out_planes, planes, out_positions), (scale / planes) ** 0.5, generator)
        self.w2 = normal_parameter((out_planes, planes, positions), (scale / positions) ** 0.5, generator)

    def forward(self, x: Tensor, record: Recorder | None = None) -> Tensor:
        """See `Path.forward`."""
        z = torch.einsum("ncx,dcx->ndc", x.flatten(2), self.w2)
        if record is not None:
            record("w2", x, z)
            record("w1", z, None)
        y: Tensor = torch.einsum("ndc,dcy->ndy", z, self.w1).unflatten(2, self.out_grid)
        return y
