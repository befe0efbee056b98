"""The dense paths: FC, and F-FC and F-GFC, whose weight factors over input and output positions."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.autograd import Function
from torch.nn import functional

from symdsl.analysis.facts import Candidate, Layer
from symdsl.nn import Path, Recorder, normal_parameter

MULTIPLIED_OUT_BELOW = 4
"""How many times the multiplications of both sums one product by the whole weight may take, and be the faster.

`benchmarks/layers.py --only F-FC` compares the two ways: at 0.8 times, one product took 0.06 of the time of two sums.
"""

FEW_POSITIONS = 16
"""Positions up to which a product is faster with the examples innermost."""


class FullyConnected(Path):
    """A dense layer: y[c', y] = sum_{c, x} x[c, x] w[c', y, c, x].

    Args:
        in_shape: planes, rows, columns of the input.
        out_shape: planes, rows, columns of the output.
        scale: standard deviation of the output for an input of unit second moment.
        generator: source of the initial weights.
    """

    linear_in: ClassVar[tuple[str, ...]] = ("w",)

    def __init__(
        self,
        in_shape: tuple[int, int, int],
        out_shape: tuple[int, int, int],
        scale: float = 1.0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.out_shape = out_shape
        planes, *grid = in_shape
        positions = grid[0] * grid[1]
        shape = (out_shape[0], out_shape[1] * out_shape[2], planes, positions)
        self.w = normal_parameter(shape, scale * (planes * positions) ** -0.5, generator)

    def forward(self, x: Tensor, record: Recorder | None = None) -> Tensor:
        """Return the product of `x` with the weight; see `Path.forward`."""
        if record is not None:
            record("w", x, None)
        weight = self.w.flatten(2).flatten(0, 1)
        y: Tensor = (x.flatten(1) @ weight.T).unflatten(1, self.out_shape)
        return y


class FactoredFullyConnected(Path):
    """A factored dense layer: z[c', c] = sum_x x[c, x] w2[c', c, x];  y[c', y] = sum_c z[c', c] w1[c', c, y].

    On few positions the weight is multiplied out instead, so that no z is held, unless it is to be recorded.

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

    linear_in: ClassVar[tuple[str, ...]] = ("w1", "w2")

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
        """Return the sum over input positions, spread over output positions; see `Path.forward`."""
        read = by_plane(x).view(len(x), *self.w2.shape[1:])
        if record is None and is_multiplied_out(self.w2.shape[2], self.w1.shape[2]):
            return multiplied_out(read, self.w2, self.w1).reshape(-1, *self.out_shape)
        z = mixed(read, self.w2)
        if record is not None:
            record("w2", read, z)
            record("w1", z, None)
        return over_positions(z, self.w1).reshape(-1, *self.out_shape)


def by_plane(x: Tensor) -> Tensor:
    """Return the map `[n, plane, row, column]` stored in this order; its gradient is stored as `x` was."""
    stored: Tensor = x if x.is_contiguous() else _ByPlane.apply(x)
    return stored


def mixed(read: Tensor, w2: Tensor) -> Tensor:
    """Return z[n, c', c] = sum_x x[n, c, x] w2[c', c, x], of `[n, C, X]` and `[C', C, X]`."""
    z: Tensor = _Mixed.apply(read, w2)
    return z


def over_positions(z: Tensor, w1: Tensor) -> Tensor:
    """Return y[n, c', y] = sum_c z[n, c', c] w1[c', c, y], of `[n, C', C]` and `[C', C, Y]`."""
    y: Tensor = _OverPositions.apply(z, w1)
    return y


class _ByPlane(Function):
    """`by_plane`; two plain copies take less time than one between the two orders."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x.contiguous()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
        pass

    @staticmethod
    def jvp(ctx: Any, x: Tensor) -> Tensor:
        return x.contiguous()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return gradient.contiguous().permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)


class _Product(Function):
    """A product of two tensors, linear in each."""

    generate_vmap_rule = True

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @classmethod
    def jvp(cls, ctx: Any, first: Tensor | None, second: Tensor | None) -> Tensor:
        left, right = ctx.saved_tensors
        terms: list[Tensor] = [] if first is None else [cls.forward(first, right)]
        terms += [] if second is None else [cls.forward(left, second)]
        return sum(terms[1:], terms[0])


class _Mixed(_Product):
    """`mixed`; z is stored with the examples innermost, so that no product of its slices copies them."""

    @staticmethod
    def forward(read: Tensor, w2: Tensor) -> Tensor:
        return torch.bmm(w2.transpose(0, 1), read.permute(1, 2, 0)).permute(2, 1, 0)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor]:
        read, w2 = ctx.saved_tensors
        z = gradient.permute(2, 1, 0)
        in_read = torch.bmm(z.mT, w2.transpose(0, 1)).transpose(0, 1) if ctx.needs_input_grad[0] else None
        return in_read, torch.bmm(z, read.transpose(0, 1)).transpose(0, 1)


class _OverPositions(_Product):
    """`over_positions`, in which z and its gradient have the examples innermost."""

    @staticmethod
    def forward(z: Tensor, w1: Tensor) -> Tensor:
        if w1.shape[2] <= FEW_POSITIONS:
            return torch.bmm(w1.mT, z.permute(1, 2, 0)).permute(2, 0, 1).contiguous()
        return torch.bmm(z.transpose(0, 1), w1).transpose(0, 1).contiguous()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        z, w1 = ctx.saved_tensors
        few = w1.shape[2] <= FEW_POSITIONS
        y = gradient.permute(1, 2, 0).contiguous().mT if few else gradient.transpose(0, 1).contiguous()
        return torch.bmm(w1, y.mT).permute(2, 0, 1), torch.bmm(z.permute(1, 2, 0), y)


def is_multiplied_out(read: int, written: int) -> bool:
    """Return whether multiplying the weight out costs less than its factors, on X and Y positions.

    The weight takes X Y multiplications for each pair of planes, its factors X + Y, in products too thin to be fast and
    with C' C numbers to hold for each example.
    """
    return read * written < MULTIPLIED_OUT_BELOW * (read + written)


def multiplied_out(read: Tensor, w2: Tensor, w1: Tensor) -> Tensor:
    """Return y[n, c', y] = sum_{c, x} x[n, c, x] w1[c', c, y] w2[c', c, x], `[n, C', Y]`, by the whole weight."""
    weight = w1.mT.unsqueeze(3) * w2.unsqueeze(1)
    y: Tensor = functional.linear(read.flatten(1), weight.flatten(2).flatten(0, 1))
    return y.view(len(y), *weight.shape[:2])


def fully_connected(layer: Layer, candidate: Candidate, scale: float, generator: torch.Generator) -> FullyConnected:
    """Build the path of an FC candidate."""
    return FullyConnected(layer.in_shape.grid, layer.out_shape.grid, scale, generator)


def factored(layer: Layer, candidate: Candidate, scale: float, generator: torch.Generator) -> FactoredFullyConnected:
    """Build the path of an F-FC candidate."""
    return FactoredFullyConnected(layer.in_shape.grid, layer.out_shape.grid, scale, generator)


def factored_group(
    layer: Layer, candidate: Candidate, scale: float, generator: torch.Generator
) -> FactoredFullyConnected:
    """Build the path of an F-GFC candidate."""
    return FactoredFullyConnected(layer.in_shape.grid, layer.out_shape.grid, scale, generator, layer.in_shape.order)
