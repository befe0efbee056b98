"""Moving images and feature maps by group elements, and demanding that a function moves along."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from oracles.comparison import assert_same
from oracles.groups import ELEMENTS, Element, act, inverse, times


def moved(x: Tensor, element: Element) -> Tensor:
    """A map `[..., row, column]` moved about its centre: pixel t goes to g t, so that x'(t) = x(g^-1 t)."""
    height, width = x.shape[-2:]
    rows, columns = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    # Twice the offset from the centre is a whole number on even sides too.
    i, j = act(inverse(element), (2 * rows - height + 1, 2 * columns - width + 1))
    return x[..., (i + height - 1) // 2, (j + width - 1) // 2]


def moved_lifted(x: Tensor, element: Element, group: str) -> Tensor:
    """A lifted map with planes `channel * |G| + element`: pixels move, and f'(h) = f(g^-1 h)."""
    planes = [ELEMENTS[group].index(times(inverse(element), h)) for h in ELEMENTS[group]]
    return moved(x, element).unflatten(1, (-1, len(planes)))[:, :, planes].flatten(1, 2)


def shifted(x: Tensor, rows: int, columns: int) -> Tensor:
    """A map moved cyclically."""
    return torch.roll(x, (rows, columns), (-2, -1))


def assert_invariant(function: Callable[[Tensor], Tensor], x: Tensor, moved: Tensor, tolerance: float) -> None:
    """Demands that a function does not notice the move."""
    with torch.no_grad():
        assert_same(function(moved), function(x), tolerance)
