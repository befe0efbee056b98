"""The Gauss-Newton matrix of all parameter tensors together, by sketches of the gradients of single examples."""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping
from functools import cached_property
from typing import Self

import attrs
import torch
from scipy.optimize import brentq
from torch import Tensor

from symdsl import ranks
from symdsl.diagnostics import NumericalError
from symdsl.evidence.backward import GGN, LogDet
from symdsl.evidence.eigenvalues import symmetric_eigenvalues
from symdsl.evidence.kfac import gram
from symdsl.evidence.weight_use import BatchUse, per_example_gradients

GRADIENTS = 1024
"""Rows of a sketch: of more per-example gradients each is added to one row, with a random sign."""

WIDTH = 512
"""Columns of a sketch in each tensor; tensors of no more parameters are kept whole."""

LARGEST_FORMED = 1 << 17
"""Parameters of a tensor beyond which the gradients of single examples are sketched without being formed."""

_UNSATURATED = 0.5
"""Share of a sketch's dimensions up to which it counts effective parameters well."""

_LEFT_OVER = 0.1
"""Least share of the dimensions of a sketch that is taken to be left over."""

_TOLERANCE = 1e-3
"""Change in the effective numbers, relative to the largest, that ends their iteration."""

_MOST_ROUNDS = 50


class CountSketch:
    """A random projection of `size` numbers to at most `width`: sums with random signs, each number in one of them.

    Every sum has k = ceil(size / width) terms, or one fewer: as the sums are alike, the projection is all but
    orthogonal. That takes ceil(size / k) sums. No more numbers than `width` are left as they are.

    Attributes:
        size: numbers there are.
        width: numbers that are left.
    """

    def __init__(self, size: int, width: int, generator: torch.Generator) -> None:
        """Draw the sums and signs on the device of `generator`."""
        self.size = size
        self.width = math.ceil(size / math.ceil(size / width))
        self._whole = size <= width
        if not self._whole:
            device = generator.device
            self._sums = torch.randperm(size, generator=generator, device=device) % self.width
            self._signs = torch.randint(0, 2, (size,), generator=generator, device=device) * 2.0 - 1.0

    def __call__(self, vectors: Tensor) -> Tensor:
        """Return the projection of every row, `[n, size] -> [n, width]`."""
        return vectors if self._whole else self._summed(vectors.clone())

    def of_pairs(self, g: Tensor, a: Tensor) -> Tensor:
        """Return the projection of every example's gradient, `[n, width]`."""
        gradients = per_example_gradients(g, a)
        return gradients if self._whole else self._summed(gradients)

    def _summed(self, vectors: Tensor) -> Tensor:
        """Return the sums of numbers that get their signs in place, as large ones take long to copy."""
        sums = vectors.new_zeros(len(vectors), self.width)
        vectors.mul_(self._signs.to(vectors.dtype))
        return sums.scatter_add_(1, self._sums.expand(len(vectors), -1), vectors)

    def add(self, sums: Tensor, start: int, rows: Tensor) -> None:
        """Add rows `[n, column]`, from the `start`-th of `size` on, to the sums of rows `[width, column]`."""
        some = slice(start, start + len(rows))
        if self._whole:
            sums[some] += rows
        else:
            sums.index_add_(0, self._sums[some], rows * self._signs[some, None].to(rows.dtype))


class ProductSketch:
    """A random projection of `sum_{block, r} g a^T`, which are never formed, to `width` numbers.

    Each is a sum of g times a sum of a, both with Rademacher signs of the block's own. Inner products are kept in the
    mean, but less evenly than by a `CountSketch`, whose price is that of every element of the product.

    Attributes:
        size: numbers there are.
        width: numbers that are left.
    """

    def __init__(self, g: Tensor, a: Tensor, width: int, generator: torch.Generator) -> None:
        """Draw the signs for pairs of these shapes on the device of `generator`."""
        self.size, self.width = a.shape[1] * a.shape[3] * g.shape[3], width
        self._signs = [
            torch.randint(0, 2, (one.shape[1], one.shape[3], width), generator=generator, device=one.device) * 2.0 - 1.0
            for one in (g, a)
        ]

    def of_pairs(self, g: Tensor, a: Tensor) -> Tensor:
        """Return the projection of every example's gradient, `[n, width]`."""
        both = zip((g, a), self._signs, strict=True)
        left, right = (torch.einsum("nbri,biw->nbrw", one, signs.to(one.dtype)) for one, signs in both)
        sums: Tensor = (left * right).sum((1, 2)) * self.width**-0.5
        return sums


def _sketch_of(key: str, size: int, g: Tensor, a: Tensor) -> CountSketch | ProductSketch:
    """The sketch of a tensor's parameters, drawn by its key alone."""
    drawn = torch.Generator(g.device).manual_seed(zlib.crc32(key.encode()))
    return CountSketch(size, WIDTH, drawn) if size <= LARGEST_FORMED else ProductSketch(g, a, WIDTH, drawn)


@attrs.frozen(eq=False, slots=False)
class JointSketch(GGN):
    """The Gauss-Newton matrix H = sum_n r_n r_n^T, r_n a gradient in all tensors, from inner products of sketches.

    With G_k the inner products of the parts in tensor k, the determinant is that of `I + sum_k G_k / delta_k`, and
    `gamma_k = tr[(I + sum_j G_j / delta_j)^-1 G_k] / delta_k`: what the data say of a tensor beyond what they say of
    the others. Blocks of one tensor each would count what several tensors can explain several times.

    A sketch folds together what gradients have in more dimensions. P_k columns sketched to w_k and R rows to w know the
    determinant at the precisions delta_k from that of `t I + sum_k G_k / (delta_k s_k)`, with

        s_k = (1 - gamma_k/w_k) / (1 - gamma_k/P_k),    t = (1 - gamma/w) / (1 - gamma/R),    gamma = sum_k gamma_k

    (free compression; LeJeune et al. 2022, "Asymptotics of the sketched pseudoinverse", once for every sketch). The
    determinant follows, as `d log det(I + sum_k G_k / delta_k) / d log delta_k = -gamma_k`:

        log det(I + sum_k G_k / (t s_k delta_k)) + w log(1 - gamma/w) - R log(1 - gamma/R)
            + sum_k [w_k log(1 - gamma_k/w_k) - P_k log(1 - gamma_k/P_k)]

    This becomes exact as sizes grow in proportion, and is exact without a sketch. More effective parameters than nine
    tenths of a sketch's dimensions cannot be told from many more: there each `1 - gamma/d` stays at a tenth,
    and both quantities are too low.

    Attributes:
        parts: sketched parts of the gradients in every tensor, `[w, w_k]`, by key.
        numbers: P_k, by key.
        gradients: R, how many gradients these stand for.
    """

    parts: Mapping[str, Tensor]
    numbers: Mapping[str, int]
    gradients: float

    @property
    def sizes(self) -> dict[str, int]:
        """The number of parameters of every tensor, by key."""
        return dict(self.numbers)

    @cached_property
    def _grams(self) -> Tensor:
        """The inner products G_k of every tensor, float64 `[tensor, w, w]`; ranks divide the work."""
        found = ranks.divided({key: part.shape[1] for key, part in self.parts.items()}, self._gram)
        return torch.stack(list(found.values()))

    def _gram(self, key: str) -> Tensor:
        part = self.parts[key]
        if not bool(torch.isfinite(part).all()):
            raise NumericalError(f"the curvature of {key} is not finite")
        return gram(part.double().mT)

    def at(self, precisions: Mapping[str, float], noise: float = 1.0) -> LogDet:
        """Return `log det(I + H / (noise delta))` and its slopes; effective numbers are iterated to a thousandth."""
        stated = self._grams.new_tensor([precisions[key] * noise for key in self.parts])
        left = stated.new_tensor([*(part.shape[1] for part in self.parts.values()), self._grams.shape[1]])
        whole = stated.new_tensor([*self.numbers.values(), self.gradients])  # of every tensor, then of the gradients
        sketched = left < whole
        exact = not bool(sketched.any())
        found = torch.zeros_like(stated)
        for _ in range(_MOST_ROUNDS):
            gamma = torch.cat((found, found.sum()[None]))
            kept, all_of_them = ((1 - gamma / dimensions).clamp(min=_LEFT_OVER) for dimensions in (left, whole))
            compression = (kept / all_of_them).where(sketched, 1.0)
            inverse = 1 / (stated * compression[:-1] * compression[-1])
            factor = self._cholesky(inverse)
            found = torch.einsum("kij,ij->k", self._grams, torch.cholesky_inverse(factor)) * inverse
            if exact or float((found - gamma[:-1]).abs().max()) <= _TOLERANCE * float(found.max()):
                break
        lost = (_lost(gamma, left) - _lost(gamma, whole)).where(sketched, 0.0)
        value = 2 * float(factor.diagonal().log().sum()) + float(lost.sum())
        return LogDet(value, dict(zip(self.parts, found.tolist(), strict=True)))

    def counts_well(self, found: LogDet) -> bool:
        """Return whether at most half of the sketch's dimensions are effective in what `at` found, or it is whole."""
        width = self._grams.shape[1]
        return width >= self.gradients or found.total <= _UNSATURATED * width

    def unsaturated_level(self, precisions: Mapping[str, float], noise: float = 1.0) -> float:
        """Return the least c of at least 1 with about half a sketch's dimensions effective at `c delta`, or fewer.

        That columns may have been folded together is neglected.
        """
        width = self._grams.shape[1]
        inverse = 1 / (self._grams.new_tensor([precisions[key] for key in self.parts]) * noise)
        eigenvalues = symmetric_eigenvalues(self._weighted(inverse)[None], "all tensors together").cpu()
        compression = (1 - _UNSATURATED) / (1 - _UNSATURATED * width / self.gradients)

        def excess(log_level: float) -> float:
            ratios = eigenvalues / (compression * math.exp(log_level))
            return float((ratios / (1 + ratios)).sum()) - _UNSATURATED * width

        if excess(0.0) <= 0:
            return 1.0
        above = math.log(2 * float(eigenvalues.max()) / compression)
        return math.exp(brentq(excess, 0.0, above, xtol=1e-6))

    def _weighted(self, weights: Tensor) -> Tensor:
        """`sum_k weights_k G_k`."""
        total: Tensor = torch.einsum("k,kij->ij", weights, self._grams)
        return total

    def _cholesky(self, inverse: Tensor) -> Tensor:
        """Return the lower Cholesky factor of `I + sum_k inverse_k G_k`, `[w, w]`."""
        total = self._weighted(inverse)
        total.diagonal().add_(1)
        factor: Tensor
        factor, failed = torch.linalg.cholesky_ex(total)
        if int(failed):
            raise NumericalError("the curvature of all tensors together has no Cholesky factor")
        return factor

    def scaled(self, factor: float) -> Self:
        """Return H times `factor`, by sketches; a sample of the gradients is a sketch of them, too."""
        parts = {key: part * factor**0.5 for key, part in self.parts.items()}
        return type(self)(parts, self.numbers, self.gradients * max(factor, 1.0))


def _lost(number: Tensor, dimensions: Tensor) -> Tensor:
    """`d log(1 - gamma / d)` of so many effective parameters gamma in d dimensions."""
    return dimensions * (1 - number / dimensions).clamp(min=_LEFT_OVER).log()


class JointAccumulator:
    """An accumulator that sketches the gradients of single examples.

    Args:
        gradients: how many there will be: examples times columns.
        generator: of the sketch of the gradients, on the network's device.
    """

    def __init__(self, gradients: int, generator: torch.Generator) -> None:
        self._across = CountSketch(gradients, GRADIENTS, generator)
        self._within: dict[str, CountSketch | ProductSketch] = {}
        self._parts: dict[str, Tensor] = {}

    def add_inputs(self, uses: Mapping[str, BatchUse]) -> None:
        """Do nothing: sketches need the inputs only together with the gradients."""

    def add_gradients(self, uses: Mapping[str, BatchUse], gradients: Mapping[str, Tensor], first: int) -> None:
        """Sketch the gradients of single examples for one column of a square root of Lambda, and add them."""
        for key, use in uses.items():
            start = first
            for g, a in use.pairs(gradients[key], min(use.size, LARGEST_FORMED)):
                if key not in self._parts:
                    self._within[key] = _sketch_of(key, use.size, g, a)
                    self._parts[key] = g.new_zeros(self._across.width, self._within[key].width)
                self._across.add(self._parts[key], start, self._within[key].of_pairs(g, a))
                start += len(g)

    def gather(self) -> None:
        """Sum the sketches of all ranks; a sum of sketches is the sketch of all."""
        for part in self._parts.values():
            ranks.add_up([part])

    def ggn(self) -> JointSketch:
        """Return the sketched estimate of the Gauss-Newton matrix."""
        numbers = {key: one.size for key, one in self._within.items()}
        return JointSketch(self._parts, numbers, float(self._across.size))
