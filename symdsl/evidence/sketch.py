"""Random projections of rows. Knows no layer."""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
from torch import Tensor


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

    def add(self, total: Tensor, start: int, rows: Tensor) -> None:
        """Adds rows `[n, column]`, from the `start`-th of P on, to the sums of P rows: `total`, `[width, column]`."""
        some = slice(start, start + len(rows))
        if self._whole:
            total[some] += rows
        else:
            total.index_add_(0, self._sums[some], rows * self._signs[some, None].to(rows.dtype))


class Sample:
    """Some of P rows, drawn without replacement, in an order that is drawn as well.

    Attributes:
        width: rows that are drawn.
    """

    def __init__(self, size: int, width: int, generator: torch.Generator) -> None:
        """Draws `width` of `size` rows on the generator's device."""
        self.width = width
        self._places = torch.randperm(size, generator=generator, device=generator.device)

    def add(self, total: Tensor, start: int, rows: Tensor) -> None:
        """Puts rows `[n, column]`, from the `start`-th of P on, into `total`, `[width, column]`, if they are drawn."""
        places = self._places[start : start + len(rows)]
        drawn = places < self.width
        total[places[drawn]] = rows[drawn]


class OuterSketch:
    """A random projection of outer products g a^T, which are never formed, to `width` numbers.

    Each is a sum of g with random signs times a sum of a with random signs. Inner products are kept in the mean, but
    less evenly than by a `Sketch`, whose price is that of every element of the outer product.

    Attributes:
        width: numbers that are left.
    """

    def __init__(self, given: int, read: int, width: int, generator: torch.Generator) -> None:
        """Draws the projection for g of `given` and a of `read` numbers on the generator's device."""
        self.width = width
        self._given, self._read = (
            torch.randint(0, 2, (size, width), generator=generator, device=generator.device) * 2.0 - 1.0
            for size in (given, read)
        )

    def __call__(self, a: Tensor, g: Tensor) -> Tensor:
        """Of a `[n, read]` and g `[n, given]`: `[n, width]`."""
        product: Tensor = (g @ self._given.to(g.dtype)) * (a @ self._read.to(a.dtype)) * self.width**-0.5
        return product
