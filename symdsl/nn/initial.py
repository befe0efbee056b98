"""Initial weights: the scale that keeps the variance of pre-activations at one."""

from __future__ import annotations

import math
from functools import cache

import attrs
import torch
from torch import Tensor, nn

from symdsl.nn.activations import ACTIVATIONS


@attrs.frozen
class Moments:
    """The first and second moment of the numbers in a map, at the initial weights.

    Attributes:
        mean: E[x]; 0 for images, and for what a layer without activations writes.
        second: E[x^2]; 1 for them.
    """

    mean: float = 0.0
    second: float = 1.0

    @property
    def gain(self) -> float:
        """The factor on the standard deviation of the weights that read the map, for outputs of unit variance.

        1 for images and sqrt(2) after ReLU (He et al. 2015, eq. 10).
        """
        return math.sqrt(1 / self.second)

    @property
    def share(self) -> float:
        """The mean at unit second moment: 0 for images, and 0.56 after ReLU."""
        return self.mean * self.gain

    def plus(self, other: Moments) -> Moments:
        """Return the moments of the sum with an independent map."""
        return Moments(self.mean + other.mean, self.second + other.second + 2 * self.mean * other.mean)


@cache
def moments(activations: tuple[str, ...], std: float = 1.0) -> Moments:
    """Return the moments of normal numbers of mean 0 and a standard deviation after `activations`, by quadrature."""
    return Moments(_moment(activations, std, 1), _moment(activations, std, 2))


def _moment(activations: tuple[str, ...], std: float, power: int) -> float:
    """E[f(z)^power]."""
    z = torch.linspace(-10, 10, 200_001, dtype=torch.float64)
    density = torch.exp(-0.5 * z.square()) / math.sqrt(2 * math.pi)
    value = std * z
    for name in activations:
        value = ACTIVATIONS[name](value)
    return float(torch.trapezoid(density * value**power, z))


def normal_parameter(shape: tuple[int, ...], std: float, generator: torch.Generator | None) -> nn.Parameter:
    """Return a parameter drawn from N(0, std^2) on the CPU, so that a seed gives the same network on every device."""
    values: Tensor = torch.randn(shape, generator=generator)
    return nn.Parameter(values * std)
