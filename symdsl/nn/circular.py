"""Convolution on the torus."""

from __future__ import annotations

import math
from functools import cache
from itertools import islice, product
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.nn import functional

Sides = int | tuple[int, int]
"""Rows and columns of a kernel or of a stride, or one number for both."""

MOST_DENSE = 1 << 16
"""How many numbers the matrix of a convolution may have, and be the faster."""

FEW_PLANES, SMALL_MAP = 16, 64
"""Planes up to which, and positions beyond which, a convolution is faster with the planes of a pixel side by side."""


def pair(sides: Sides) -> tuple[int, int]:
    """Return the sides as a pair of rows and columns."""
    return (sides, sides) if isinstance(sides, int) else sides


def circular_pad(x: Tensor, kernel: Sides) -> Tensor:
    """Return `x` `[example, plane, row, column]` wrapped around its edges by half a kernel of odd sides.

    Of few planes and of large maps the planes of a pixel are stored side by side, which a CPU convolves faster.
    """
    padded: Tensor = _CircularPad.apply(x, *(side // 2 for side in pair(kernel)))
    return padded


def circular_conv(x: Tensor, weight: Tensor, stride: Sides = 1, groups: int = 1) -> Tensor:
    """Return the cross-correlation on the torus y[c', t] = sum_{c, s} x[c, stride t + s] weight[c', c, s], s centred.

    With `groups`, the planes are cut into as many runs that do not mix, as in `torch.nn.functional.conv2d`. The stride
    divides the sides of the map, and the kernel's are odd, and no larger than twice the map's and one.
    """
    rows, columns = weight.shape[-2:]
    if groups == 1 and _is_dense(x, weight, pair(stride)):
        return _dense_conv(x, weight, pair(stride))
    if rows == columns == 1:  # with a stride, torch 2.14 computes the weight's gradient out of bounds on a CPU
        down, right = pair(stride)
        x, stride = x[:, :, ::down, ::right], 1
    return functional.conv2d(circular_pad(x, (rows, columns)), weight, stride=stride, groups=groups)


def _is_dense(x: Tensor, weight: Tensor, stride: tuple[int, int]) -> bool:
    """Return whether a convolution is faster as the matrix that it is."""
    pairs = math.prod(x.shape[2:]) ** 2 // math.prod(stride)
    return math.prod(weight.shape[:2]) * pairs <= MOST_DENSE or pairs <= 8 * math.prod(weight.shape[2:])


def _dense_conv(x: Tensor, weight: Tensor, stride: tuple[int, int]) -> Tensor:
    """`circular_conv` as one product of matrices."""
    reached = _reached(weight.shape[2:], x.shape[2:], stride, weight.dtype, weight.device)
    kept = [side // step for side, step in zip(x.shape[2:], stride, strict=True)]
    dense = (weight.flatten(2) @ reached).unflatten(2, (math.prod(kept), -1)).transpose(1, 2)
    y = functional.linear(x.flatten(1), dense.flatten(2).flatten(0, 1))
    return y.view(len(x), len(weight), *kept)


@cache
@torch.inference_mode(False)
def _reached(
    kernel: tuple[int, int], sides: tuple[int, int], stride: tuple[int, int], dtype: torch.dtype, device: torch.device
) -> Tensor:
    """Whether a tap of a filter at a kept position reads a position: `[tap, kept * position]`, 0 or 1."""
    rows, columns = (_along(*one) for one in zip(kernel, sides, stride, strict=True))
    reached = torch.einsum("rth,suw->rstuhw", rows, columns)
    return reached.flatten(2).flatten(0, 1).to(device, dtype)


def _along(taps: int, side: int, stride: int) -> Tensor:
    """Return whether a tap at a kept position reads a position, in one dimension: `[tap, kept, position]`, 0 or 1."""
    tap = torch.arange(taps)[:, None] - taps // 2
    return functional.one_hot((tap + torch.arange(0, side, stride)) % side, side)


class _CircularPad(Function):
    """`circular_pad`, whose gradient is folded back in one pass."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, rows: int, columns: int) -> Tensor:
        by_pixel = x.shape[1] <= FEW_PLANES or math.prod(x.shape[2:]) > SMALL_MAP
        stored = x.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2) if by_pixel else x
        tall = torch.cat((stored[:, :, -rows:], stored, stored[:, :, :rows]), 2) if rows else stored
        return torch.cat((tall[..., -columns:], tall, tall[..., :columns]), 3) if columns else tall.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, int, int], output: Tensor) -> None:
        _, ctx.rows, ctx.columns = inputs

    @staticmethod
    def jvp(ctx: Any, x: Tensor, *_: None) -> Tensor:
        return _CircularPad.forward(x, ctx.rows, ctx.columns)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None, None]:
        rows, columns = (_folds(*one) for one in zip(g.shape[2:], (ctx.rows, ctx.columns), strict=True))
        inner = g.narrow(2, *rows[0][1:]).narrow(3, *columns[0][1:]).clone()
        for (to_row, row, high), (to_column, column, wide) in islice(product(rows, columns), 1, None):
            inner.narrow(2, to_row, high).narrow(3, to_column, wide).add_(
                g.narrow(2, row, high).narrow(3, column, wide)
            )
        return inner, None, None


def _folds(wrapped: int, margin: int) -> list[tuple[int, int, int]]:
    """Where runs of a wrapped side belong: the first number there, the first and how many here; the inner run first."""
    side = wrapped - 2 * margin
    inner = (0, margin, side)
    return [inner, (side - margin, 0, margin), (0, margin + side, margin)] if margin else [inner]
