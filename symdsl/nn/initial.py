"""Initial weights: the scale that keeps the variance of pre-activations at one."""

from __future__ import annotations

import math
from functools import cache

import torch
from torch import Tensor, nn

from symdsl.nn.activations import ACTIVATIONS


@cache
def gain(activations: tuple[str, ...]) -> float:
    """Factor on the standard deviation of the weights that read the output of `activations`.

    It is `E[f(z)^2] ** -0.5` for standard normal `z`, by quadrature: 1 for no activation and sqrt(2) for ReLU
    (He et al. 2015, eq. 10).
    """
    return math.sqrt(1 / _moment(activations, 2))


def mean_share(activations: tuple[str, ...]) -> float:
    """E[f(z)] E[f(z)^2] ** -0.5 for standard normal `z`: the mean of the output of `activations` at unit second moment.

    0 for no activation, and 0.56 for ReLU.
    """
    return _moment(activations, 1) * gain(activations)


@cache
def _moment(activations: tuple[str, ...], power: int) -> float:
    """E[f(z)^power], by quadrature."""
    z = torch.linspace(-10, 10, 200_001, dtype=torch.float64)
    density = torch.exp(-0.5 * z.square()) / math.sqrt(2 * math.pi)
    value = z
    for name in activations:
        value = ACTIVATIONS[name](value)
    return float(torch.trapezoid(density * value**power, z))


def normal_parameter(shape: tuple[int, ...], std: float, generator: torch.Generator | None) -> nn.Parameter:
    """A parameter drawn from N(0, std^2) on the CPU, so that a seed gives the same network on every device."""
    values: Tensor = torch.randn(shape, generator=generator)
    return nn.Parameter(values * std)
