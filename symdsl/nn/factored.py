"""F-FC and F-GFC: fully connected paths whose weight factors over input and output positions."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from symdsl.nn.initial import normal_parameter
from symdsl.nn.path import Path, Recorder


class FactoredFullyConnected(Path):
    """z[c', c] = sum_x x[c, x] w2[c', c, x];  y[c', y] = sum_c z[c', c] w1[c', c, y].

    Layer-wise Equivariances (van der Ouderaa et al. 2023), equation 5; with a group (F-GFC), c is a channel and x and y
    run over group times space (appendix A).

    Args:
        in_shape: planes, rows, columns of the input.
        out_shape: planes, rows, columns of the output.
        scale: standard deviation of the output for an input of unit second moment. The product carries it: each of
            the two tensors takes its square root.
        generator: source of the initial weights.
        order: |G| of the group whose elements a channel extends over.
    """

    def __init__(
        self,
        in_shape: tuple[int, int, int],
        out_shape: tuple[int, int, int],
        scale: float = 1.0,
        generator: torch.Generator | None = None,
        order: int = 1,
    ) -> None:
        super().__init__()
        self.out_shape = out_shape
        pairs = (out_shape[0] // order, in_shape[0] // order)
        read, written = math.prod(in_shape) // pairs[1], math.prod(out_shape) // pairs[0]
        self.w1 = normal_parameter((*pairs, written), (scale / pairs[1]) ** 0.5, generator)
        self.w2 = normal_parameter((*pairs, read), (scale / read) ** 0.5, generator)

    def forward(self, x: Tensor, record: Recorder | None = None) -> Tensor:
        """See `Path.forward`."""
        read = x.reshape(len(x), *self.w2.shape[1:])
        z = torch.einsum("ncx,dcx->ndc", read, self.w2)
        if record is not None:
            record("w2", read, z)
            record("w1", z, None)
        return torch.einsum("ndc,dcy->ndy", z, self.w1).reshape(-1, *self.out_shape)
