"""Adaptive polyphase sampling: thinning out a map without losing equivariance (Chaman & Dokmanic 2021)."""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from symdsl.nn.circular import Sides, pair


def strongest_phase(fine: Tensor, stride: Sides) -> Tensor:
    """Return the phase of each example whose samples have the largest l2 norm.

    Args:
        fine: `[example, plane, row, column]`; rows and columns are multiples of `stride`.
        stride: sides of the phase grid.

    Returns:
        `[example]`: the number of a phase, which begins at row `phase // stride` and column `phase % stride`.
    """
    rows, columns = pair(stride)
    energy = torch.linalg.vector_norm(fine.detach(), dim=1).square()
    phases = energy.unflatten(2, (-1, columns)).unflatten(1, (-1, rows)).sum((1, 3))
    strongest: Tensor = phases.flatten(1).argmax(1)
    return strongest


def align(x: Tensor, phase: Tensor, stride: Sides) -> Tensor:
    """Return each example of `x` shifted cyclically so that its `phase` comes to lie at the origin.

    Args:
        x: `[example, plane, row, column]`.
        phase: `[example]`, as `strongest_phase` gives it.
        stride: sides of the phase grid.
    """
    aligned: Tensor = _Align.apply(x, phase, *pair(stride))
    return aligned


class _Align(Function):
    """`align`, whose gradient is shifted back."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, phase: Tensor, rows: int, columns: int) -> Tensor:
        return _shifted(x, phase, rows, columns, 1)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, int, int], output: Tensor) -> None:
        _, phase, ctx.rows, ctx.columns = inputs
        ctx.save_for_backward(phase)
        ctx.save_for_forward(phase)

    @staticmethod
    def jvp(ctx: Any, x: Tensor, *_: None) -> Tensor:
        (phase,) = ctx.saved_tensors
        return _shifted(x, phase, ctx.rows, ctx.columns, 1)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None, None, None]:
        (phase,) = ctx.saved_tensors
        return _shifted(g, phase, ctx.rows, ctx.columns, -1), None, None, None


def _shifted(x: Tensor, phase: Tensor, rows: int, columns: int, forwards: int) -> Tensor:
    """Every map read from its phase on, or the other way around; whole pixels are gathered."""
    examples, planes, height, width = x.shape
    begin = torch.arange(0, examples * height * width, height * width, device=x.device)
    read = _orders(height, width, rows, columns, forwards, x.device).index_select(0, phase).add_(begin[:, None])
    pixels = x.permute(0, 2, 3, 1).reshape(-1, planes).index_select(0, read.flatten())
    return pixels.view(examples, height, width, planes).permute(0, 3, 1, 2)


@cache
@torch.inference_mode(False)
def _orders(height: int, width: int, rows: int, columns: int, forwards: int, device: torch.device) -> Tensor:
    """The pixels of a map in the order that a map of each phase is read in: `[phase, pixel]`."""
    order = torch.arange(height * width, device=device).view(height, width)
    phases = product(range(rows), range(columns))
    return torch.stack([order.roll((-forwards * row, -forwards * column), (0, 1)).flatten() for row, column in phases])
