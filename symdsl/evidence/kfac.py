"""Kronecker algebra: blocks `left (x) right`, their spectra, and what the evidence needs of them. Knows no layer."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import attrs
import torch
from torch import Tensor

from symdsl.evidence.eigenvalues import CHEAP_SIDE, symmetric_eigenvalues

_CHUNK = 1 << 22

_WHOLE_SIDE = 256
"""Up to this side both halves of a symmetric product cost less than the bookkeeping of leaving one out."""


def gram(rows: Tensor) -> Tensor:
    """rows^T rows, `[..., row, side] -> [..., side, side]`; of a large one little more than half is computed."""
    side = rows.shape[-1]
    if side <= _WHOLE_SIDE:
        product: Tensor = rows.mT @ rows
        return product
    first, second = rows[..., : side // 2], rows[..., side // 2 :]
    across = first.mT @ second
    upper, lower = torch.cat((gram(first), across), -1), torch.cat((across.mT, gram(second)), -1)
    return torch.cat((upper, lower), -2)


@attrs.frozen(eq=False)
class LowRank:
    """The matrix rows^T rows with fewer rows than its side: a single block of less rank than it has columns.

    Attributes:
        rows: `[row, side]`.
    """

    rows: Tensor

    def dense(self) -> Tensor:
        """The whole matrix, `[1, side, side]`."""
        return gram(self.rows).unsqueeze(0)

    def eigenvalues(self, name: str) -> Tensor:
        """Those of rows rows^T and the zeros that these lack, float64 `[side]`; raises as `symmetric_eigenvalues`."""
        rows = self.rows.double() if len(self.rows) <= CHEAP_SIDE else self.rows
        found = symmetric_eigenvalues(gram(rows.mT).unsqueeze(0), name)
        return torch.nn.functional.pad(found, (0, rows.shape[1] - len(rows)))


Factor = Tensor | LowRank
"""Dense blocks `[block, side, side]`, or the rows whose outer products sum to the one block there is."""


def outer_products(rows: Tensor) -> Factor:
    """sum_n r_n r_n^T of `[n, side]`, in the smaller of its two forms."""
    return LowRank(rows) if len(rows) < rows.shape[1] else gram(rows).unsqueeze(0)


@torch.no_grad()
def plus(total: Factor | None, term: Factor, weight: float = 1.0) -> Factor:
    """total + weight term; a dense `total` is added to in place.

    Args:
        total: what has been summed up; nothing yet is None.
        term: to add.
        weight: its weight, not negative.
    """
    if isinstance(term, LowRank):
        rows = term.rows * math.sqrt(weight)
        if not isinstance(total, Tensor):
            return outer_products(rows if total is None else torch.cat((total.rows, rows)))
        return total.add_(gram(rows))
    if total is None:
        return term * weight
    return _dense(total).add_(term, alpha=weight)


def _dense(factor: Factor) -> Tensor:
    return factor.dense() if isinstance(factor, LowRank) else factor


def _eigenvalues(factor: Factor, name: str) -> Tensor:
    return factor.eigenvalues(name) if isinstance(factor, LowRank) else symmetric_eigenvalues(factor, name)


@attrs.frozen(eq=False)
class Kronecker:
    """The matrix `left (x) right`, either side possibly block diagonal.

    Attributes:
        output: output-gradient factor G, averaged over examples and uses.
        input: input factor A, summed over examples and uses.
        bound: eigenvalues of the Gram matrices of groups of the rows whose outer products sum to what the product
            approximates, float64 `[row]`, if they are known; a row that is a group of its own has its squared norm.
    """

    output: Factor
    input: Factor
    bound: Tensor | None = None

    @property
    def left(self) -> Tensor:
        """G, `[block, side, side]`."""
        return _dense(self.output)

    @property
    def right(self) -> Tensor:
        """A, `[block, side, side]`."""
        return _dense(self.input)

    def dense(self) -> Tensor:
        """The whole matrix; for small ones."""
        return torch.kron(torch.block_diag(*self.left), torch.block_diag(*self.right))

    def spectrum(self, name: str) -> Spectrum:
        """Eigenvalues of both factors.

        Args:
            name: of the parameter tensor, for the message of an error.

        Raises:
            NumericalError: the eigenvalues cannot be computed.
        """
        left = _eigenvalues(self.output, f"{name}, output factor")
        right = _eigenvalues(self.input, f"{name}, input factor")
        return Spectrum(left, right, self.bound)


@attrs.frozen(eq=False)
class Spectrum:
    """Eigenvalues of a Kronecker product: every product of one of `left` with one of `right`.

    The product stands for a sum H of outer products of rows. With b the eigenvalues of the Gram matrices of groups of
    them, log det(H + d I) <= P log d + sum_i log(1 + b_i / d), by Fischer's inequality (Hadamard's, for groups of one).
    Where the product exceeds this bound, the bound is nearer to H, and both quantities below are the bound's. With few
    rows of any size, as in a network that fits all examples but some, a product of two sums over all rows has far too
    high a rank.

    Attributes:
        left: eigenvalues of the left factor, float64 `[l]`, none negative.
        right: eigenvalues of the right factor, float64 `[r]`, none negative.
        bound: b, float64 `[row]`, none negative, if known.
    """

    left: Tensor
    right: Tensor
    bound: Tensor | None = None

    @property
    def size(self) -> int:
        """Number of eigenvalues, which is the number of parameters."""
        return len(self.left) * len(self.right)

    def volume(self, precision: float) -> float:
        """log det(I + H / precision), in nats: the product's, or its bound."""
        product = self._product_volume(precision)
        return product if self.bound is None else min(product, _volume(self.bound, precision))

    def effective(self, precision: float) -> float:
        """sum_l l / (l + precision) over H's eigenvalues: the effective number (MacKay 1992), found as `volume` is."""
        if self.bound is not None and _volume(self.bound, precision) < self._product_volume(precision):
            return _effective(self.bound, precision)
        return sum(_effective(part, precision) for part in self._products())

    def _product_volume(self, precision: float) -> float:
        return sum(_volume(part, precision) for part in self._products())

    def _products(self) -> Iterator[Tensor]:
        left, right = (values[values > 0] for values in (self.left, self.right))
        rows = max(1, _CHUNK // max(1, len(right)))
        for chunk in left.split(rows):
            yield torch.outer(chunk, right)


def _volume(values: Tensor, precision: float) -> float:
    """sum_l log(1 + l / precision), in nats."""
    return float(torch.log1p(values / precision).sum())


def _effective(values: Tensor, precision: float) -> float:
    """sum_l l / (l + precision)."""
    return float((values / (values + precision)).sum())


@attrs.frozen(eq=False)
class Blocks:
    """The Gauss-Newton matrix without what it has between different tensors.

    Attributes:
        spectra: of every tensor's block.
    """

    spectra: Mapping[str, Spectrum]

    @property
    def sizes(self) -> dict[str, int]:
        """Parameters of every tensor."""
        return {key: spectrum.size for key, spectrum in self.spectra.items()}

    def volume(self, precisions: Mapping[str, float]) -> float:
        """log det(I + D^-1/2 H D^-1/2), D the precisions of all parameters, in nats."""
        return math.fsum(spectrum.volume(precisions[key]) for key, spectrum in self.spectra.items())

    def effective(self, precisions: Mapping[str, float]) -> dict[str, float]:
        """The effective number of parameters of every tensor."""
        return {key: spectrum.effective(precisions[key]) for key, spectrum in self.spectra.items()}
