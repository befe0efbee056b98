"""Sketches: random projections of rows, and the determinant of a large block from the spectrum of its small sketch.

Knows no layer.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import attrs
import torch
from torch import Tensor

from symdsl.curvature.eigen import effective, volume

_RESOLVED = 0.1
"""Least share of the sketch's dimensions that must be left over for it to tell of the block."""

_HALVINGS = 40


class Sketch:
    """A random projection of P numbers to `width` or somewhat fewer: sums of as many of them each, with random signs.

    Every number is in one sum, so that the sums are orthogonal, and of one size, which is why there may be fewer: twice
    as many numbers as `width` but one give sums of two, three times as many sums of three. P numbers that are no more
    than `width` are left as they are.

    Attributes:
        width: numbers that are left.
    """

    def __init__(self, size: int, width: int, generator: torch.Generator) -> None:
        """Draws the sketch of `size` numbers on the generator's device."""
        self.width = math.ceil(size / math.ceil(size / width))
        self._whole = size <= width
        if not self._whole:
            device = generator.device
            self._sums = torch.randperm(size, generator=generator, device=device) % self.width
            self._signs = torch.randint(0, 2, (size,), generator=generator, device=device) * 2.0 - 1.0

    def __call__(self, parts: Iterable[Tensor]) -> Tensor:
        """Of rows, given a part `[n, column]` at a time, all P columns in the same order every time: `[n, width]`."""
        if self._whole:
            return torch.cat(list(parts), 1)
        sums: Tensor | None = None
        start = 0
        for part in parts:
            columns = slice(start, start + part.shape[1])
            start = columns.stop
            if sums is None:
                sums = part.new_zeros(len(part), self.width)
            sums.index_add_(1, self._sums[columns], part * self._signs[columns].to(part.dtype))
        if sums is None or start != len(self._sums):
            raise ValueError(f"rows of {start} numbers, for a sketch of {len(self._sums)}")
        return sums


@attrs.frozen
class Found:
    """What a spectrum says at one precision.

    Attributes:
        volume: log det(I + H / precision), in nats.
        effective: the effective number of parameters.
    """

    volume: float
    effective: float


@attrs.frozen(eq=False)
class Sketched:
    """The spectrum of a block's sketch, and by it the block's own determinant.

    The sketch `S^T H S` of the block H of P parameters, S of w orthogonal columns, has itself too small a determinant:
    its w directions share what H has in P. With d(delta) its effective number at delta, that of H is the same at

        precision = delta (1 - d/P) / (1 - d/w),

    from which the volume follows by integration, as `d volume / d log precision = -effective` for both:

        log det(I + H/precision) = log det(I + S^T H S/delta) + w log(1 - d/w) - P log(1 - d/P).

    Both become exact as P and w grow in proportion (free compression; LeJeune et al. 2022, "Asymptotics of the sketched
    pseudoinverse"), and are exact for w = P.

    Attributes:
        values: eigenvalues of the sketch, float64 `[w]`, none negative.
        size: P.
    """

    values: Tensor
    size: int

    def scaled(self, factor: float) -> Sketched:
        """The sketch of `factor` times the block."""
        return Sketched(self.values * factor, self.size)

    def at(self, precision: float) -> Found | None:
        """Volume and effective number of the block, or None if the sketch is too small to tell.

        That is where nearly all of its dimensions count: a block of more effective parameters than it has dimensions
        cannot be told from one of many more.
        """
        width = len(self.values)
        if width == self.size:
            return Found(volume(self.values, precision), effective(self.values, precision))
        low, high = _RESOLVED * precision, precision
        if self._precision(low) > precision:
            return None
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if self._precision(middle) < precision else (low, middle)
        left = self._left(high)
        number = width * (1 - left)
        folded = width * math.log(left) - self.size * math.log1p(-number / self.size)
        return Found(volume(self.values, high) + folded, number)

    def _left(self, delta: float) -> float:
        """1 - d/w: the mean of delta / (l + delta) over the sketch's eigenvalues l."""
        return float((delta / (self.values + delta)).mean())

    def _precision(self, delta: float) -> float:
        left = self._left(delta)
        return delta * (1 - len(self.values) * (1 - left) / self.size) / left
