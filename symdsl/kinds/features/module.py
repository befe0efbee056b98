"""The path of RFF."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from symdsl.analysis.facts import Candidate, Layer
from symdsl.nn import Path, Recorder


class RandomFeatures(Path):
    """Fixed random Fourier features: y[k] = sqrt(2 / K) cos(sum_i w[k, i] x[i] + phase[k]), for K numbers written.

    With frequencies w from N(0, 1 / (lengthscale^2 I)), for I numbers of the input, and phases even in [0, 2 pi), the
    product of the features of two inputs is exp(-d^2 / (2 lengthscale^2)) in the mean, d^2 the mean square of their
    difference (Rahimi & Recht 2007, "Random features for large-scale kernel machines").

    Args:
        in_shape: planes, rows, columns of the input.
        out_shape: planes, rows, columns of the output.
        frequency: standard deviation of w, times the square root of I.
        generator: source of w and the phases.
    """

    def __init__(
        self,
        in_shape: tuple[int, int, int],
        out_shape: tuple[int, int, int],
        frequency: float,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.out_shape = out_shape
        read, written = math.prod(in_shape), math.prod(out_shape)
        drawn = torch.randn(written, read, generator=generator) * frequency * read**-0.5
        phases = 2 * math.pi * torch.rand(written, generator=generator)
        self.w = nn.Parameter(drawn, requires_grad=False)
        self.phase = nn.Parameter(phases, requires_grad=False)

    def forward(self, x: Tensor, record: Recorder | None = None) -> Tensor:
        """Return the features of `x`; no use is recorded, as no weight is learned. See `Path.forward`."""
        angles = torch.addmm(self.phase, x.flatten(1), self.w.T)
        y: Tensor = math.sqrt(2 / len(self.phase)) * angles.cos().unflatten(1, self.out_shape)
        return y


def random_features(layer: Layer, candidate: Candidate, scale: float, generator: torch.Generator) -> RandomFeatures:
    """Build the path of an RFF candidate."""
    lengthscale = candidate.argument("lengthscale")
    assert isinstance(lengthscale, int | float), "it was checked to be a number"
    return RandomFeatures(layer.in_shape.grid, layer.out_shape.grid, scale / lengthscale, generator)
