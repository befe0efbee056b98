"""Kronecker algebra: blocks `left (x) right`, their spectra, and what the evidence needs of them. Knows no layer."""

from __future__ import annotations

import math
from collections.abc import Iterator

import attrs
import torch
from torch import Tensor

from symdsl.curvature.eigen import symmetric_eigenvalues

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
class Kronecker:
    """The matrix `left (x) right`, either side possibly block diagonal.

    Attributes:
        left: output-gradient factor G, `[block, side, side]`, averaged over examples and uses.
        right: input factor A, `[block, side, side]`, summed over examples and uses.
        bound: eigenvalues of the Gram matrices of groups of the rows whose outer products sum to what the product
            approximates, float64 `[row]`, if they are known; a row that is a group of its own has its squared norm.
    """

    left: Tensor
    right: Tensor
    bound: Tensor | None = None

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
        return Spectrum(
            symmetric_eigenvalues(self.left, f"{name}, output factor"),
            symmetric_eigenvalues(self.right, f"{name}, input factor"),
            self.bound,
        )


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

    def scaled(self, factor: float) -> Spectrum:
        """The spectrum of `factor` times the matrix."""
        return Spectrum(self.left * factor, self.right, None if self.bound is None else self.bound * factor)

    def log_det(self, precision: float) -> float:
        """log det(left (x) right + precision I), in nats, or its bound."""
        product = self._product_volume(precision)
        volume = product if self.bound is None else min(product, _volume(self.bound, precision))
        return self.size * math.log(precision) + volume

    def effective(self, precision: float) -> float:
        """sum_l l / (l + precision): the effective number of parameters (MacKay 1992), or its bound."""
        if self.bound is not None and _volume(self.bound, precision) < self._product_volume(precision):
            return _effective(self.bound, precision)
        return sum(_effective(part, precision) for part in self._products())

    def _product_volume(self, precision: float) -> float:
        return sum(_volume(part, precision) for part in self._products())

    def _products(self) -> Iterator[Tensor]:
        rows = max(1, _CHUNK // max(1, len(self.right)))
        for chunk in self.left.split(rows):
            yield torch.outer(chunk, self.right)


def _volume(values: Tensor, precision: float) -> float:
    """sum_l log(1 + l / precision), in nats."""
    return float(torch.log1p(values / precision).sum())


def _effective(values: Tensor, precision: float) -> float:
    return float((values / (values + precision)).sum())
