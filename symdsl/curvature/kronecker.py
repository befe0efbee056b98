"""Kronecker algebra: blocks `left (x) right`, their spectra, and what the evidence needs of them. Knows no layer."""

from __future__ import annotations

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
    """

    left: Tensor
    right: Tensor

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
        )


@attrs.frozen(eq=False)
class Spectrum:
    """Eigenvalues of a Kronecker product: every product of one of `left` with one of `right`.

    Attributes:
        left: eigenvalues of the left factor, float64 `[l]`, none negative.
        right: eigenvalues of the right factor, float64 `[r]`, none negative.
    """

    left: Tensor
    right: Tensor

    @property
    def size(self) -> int:
        """Number of eigenvalues, which is the number of parameters."""
        return len(self.left) * len(self.right)

    def scaled(self, factor: float) -> Spectrum:
        """The spectrum of `factor` times the matrix."""
        return Spectrum(self.left * factor, self.right)

    def log_det(self, precision: float) -> float:
        """log det(left (x) right + precision I), in nats."""
        return float(sum(torch.log(part + precision).sum() for part in self._products()))

    def effective(self, precision: float) -> float:
        """sum_l l / (l + precision): the effective number of parameters (MacKay 1992)."""
        return float(sum((part / (part + precision)).sum() for part in self._products()))

    def _products(self) -> Iterator[Tensor]:
        rows = max(1, _CHUNK // max(1, len(self.right)))
        for chunk in self.left.split(rows):
            yield torch.outer(chunk, self.right)
