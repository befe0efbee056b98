"""Adaptive polyphase sampling: thinning out a map without losing equivariance (Chaman & Dokmanic 2021)."""

from __future__ import annotations

import torch
from torch import Tensor

from symdsl.nn.circular import Sides, pair


def strongest_phase(fine: Tensor, stride: Sides) -> Tensor:
    """Return the phase of each example whose samples have the largest l2 norm.

    Args:
        fine: `[example, plane, row, column]`; rows and columns are multiples of `stride`.
        stride: sides of the phase grid.

    Returns:
        `[example, 2]`: row and column of the first sample, each below `stride`.
    """
    rows, columns = pair(stride)
    energy = fine.detach().square().sum(1)
    phases = energy.unflatten(2, (-1, columns)).unflatten(1, (-1, rows)).sum((1, 3))
    best = phases.flatten(1).argmax(1)
    return torch.stack((best // columns, best % columns), 1)


def align(x: Tensor, phase: Tensor, stride: Sides) -> Tensor:
    """Return each example of `x` shifted cyclically so that its `phase` comes to lie at the origin.

    Args:
        x: `[example, plane, row, column]`.
        phase: `[example, 2]`, as `strongest_phase` gives it.
        stride: sides of the phase grid.
    """
    aligned = x
    for dim, side in enumerate(pair(stride), start=2):
        shift = phase[:, dim - 2].view(-1, 1, 1, 1)
        candidates = [torch.roll(aligned, -offset, dim) for offset in range(1, side)]
        for offset, rolled in enumerate(candidates, start=1):
            aligned = torch.where(shift == offset, rolled, aligned)
    return aligned
