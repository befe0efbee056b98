"""Moving images and feature maps by group elements, and demanding that a function moves along."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from oracles.comparison import assert_same


def turned(x: Tensor, quarters: int) -> Tensor:
    """A map `[..., row, column]` of square side turned about its centre: pixel t goes to R t, R (i, j) = (-j, i)."""
    side = x.shape[-1]
    rows, columns = torch.meshgrid(torch.arange(side), torch.arange(side), indexing="ij")
    for _ in range(quarters % 4):
        # x'(t) = x(R^-1 t); about the centre, R^-1 (i, j) = (j, side - 1 - i)
        x = x[..., columns, side - 1 - rows]
    return x


def turned_lifted(x: Tensor, quarters: int, order: int = 4) -> Tensor:
    """A lifted map with planes `channel * order + element`: pixels turn, and f'(h) = f(g^-1 h)."""
    lifted = turned(x, quarters).unflatten(1, (-1, order))
    return torch.roll(lifted, quarters, 2).flatten(1, 2)


def shifted(x: Tensor, rows: int, columns: int) -> Tensor:
    """A map moved cyclically."""
    return torch.roll(x, (rows, columns), (-2, -1))


def assert_invariant(function: Callable[[Tensor], Tensor], x: Tensor, moved: Tensor, tolerance: float) -> None:
    """Demands that a function does not notice the move."""
    with torch.no_grad():
        assert_same(function(moved), function(x), tolerance)
