"""The Gauss-Newton matrix of all parameter tensors together, as far as the evidence asks for it. Knows no layer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

import attrs
import torch
from torch import Tensor

from symdsl.diagnostics import NumericalError

_LEFT_OVER = 0.1
"""Least share of the dimensions of a projection that is taken to be left over."""

_TOLD = 0.8
"""Share of the dimensions of a projection up to which the rows that it mixes tell their effective number."""

_TOLERANCE = 1e-3
"""Change in the effective numbers, relative to the largest, that ends their iteration."""

_MOST_ROUNDS = 50


@attrs.frozen(eq=False)
class Projected:
    """The part of all rows in one tensor, projected.

    Attributes:
        rows: `[row, column]`.
        size: P, the number of columns before.
    """

    rows: Tensor
    size: int


@attrs.frozen
class Joined:
    """What a matrix of all tensors says at one set of precisions.

    Attributes:
        volume: log det(I + D^-1/2 H D^-1/2), D the precisions of all parameters, in nats.
        effective: the effective number of parameters of each tensor.
    """

    volume: float
    effective: dict[str, float]


class Together(ABC):
    """H of all tensors together."""

    @property
    @abstractmethod
    def sizes(self) -> dict[str, int]:
        """Parameters of every tensor."""

    @abstractmethod
    def at(self, precisions: Mapping[str, float]) -> Joined:
        """Volume and effective numbers, which cost little more than one of them.

        Raises:
            NumericalError: the numbers are too large to be told from one another.
        """

    def volume(self, precisions: Mapping[str, float]) -> float:
        """log det(I + D^-1/2 H D^-1/2), D the precisions of all parameters, in nats."""
        return self.at(precisions).volume

    def effective(self, precisions: Mapping[str, float]) -> dict[str, float]:
        """gamma_k of every tensor."""
        return self.at(precisions).effective


@attrs.define(eq=False)
class Joint(Together):
    """H = sum_n r_n r_n^T, each row r_n one of all tensors, by the inner products of its parts.

    With G_k the inner products of the parts in tensor k, the determinant is that of `I + sum_k G_k / delta_k`, and
    `gamma_k = tr[(I + sum_j G_j / delta_j)^-1 G_k] / delta_k`: what the data say of a tensor beyond what they say of
    the others. Blocks of one tensor each would count what several tensors can explain several times.

    A projection folds together what rows have in more dimensions. P_k columns projected to w_k and R rows to w know
    the determinant at the precisions delta_k from that of `t I + sum_k G_k / (delta_k s_k)`, with

        s_k = (1 - gamma_k/w_k) / (1 - gamma_k/P_k),    t = (1 - gamma/w) / (1 - gamma/R),    gamma = sum_k gamma_k

    (free compression; LeJeune et al. 2022, "Asymptotics of the sketched pseudoinverse", once for every projection). The
    volume follows, as `d volume / d log delta_k = -gamma_k`:

        log det(I + sum_k G_k / (t s_k delta_k)) + w log(1 - gamma/w) - R log(1 - gamma/R)
            + sum_k [w_k log(1 - gamma_k/w_k) - P_k log(1 - gamma_k/P_k)]

    This becomes exact as sizes grow in proportion, and is exact without a projection. More effective parameters than
    nine tenths of a projection's dimensions cannot be told from many more: there `1 - gamma_k/w_k` and `1 - gamma/w`
    stay at a tenth, and both quantities are too low.

    Attributes:
        grams: G_k after projection, float64 `[tensor, w, w]`.
        keys: of the tensors.
        widths: w_k, float64 `[tensor]`.
        numbers: P_k, float64 `[tensor]`.
        rows: R.
    """

    grams: Tensor
    keys: tuple[str, ...]
    widths: Tensor
    numbers: Tensor
    rows: int
    _last: Tensor = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._last = torch.zeros_like(self.numbers)

    @classmethod
    def of(cls, parts: Mapping[str, Projected], rows: int) -> Joint:
        """The inner products of `rows` rows.

        Args:
            parts: projected parts of the rows in every tensor, as many for each.
            rows: how many there were before.

        Raises:
            NumericalError: some are not finite, with the tensor.
        """
        for key, part in parts.items():
            if not bool(torch.isfinite(part.rows).all()):
                raise NumericalError(f"the curvature of {key} is not finite")
        grams = torch.stack([_gram(part.rows) for part in parts.values()])
        widths = grams.new_tensor([part.rows.shape[1] for part in parts.values()])
        return cls(grams, tuple(parts), widths, grams.new_tensor([part.size for part in parts.values()]), rows)

    @property
    def sizes(self) -> dict[str, int]:
        """Parameters of every tensor."""
        return {key: int(number) for key, number in zip(self.keys, self.numbers.tolist(), strict=True)}

    def tells(self, found: Joined) -> bool:
        """Whether the effective parameters that it found are few enough for what is left of the rows."""
        width = self.grams.shape[1]
        return width == self.rows or sum(found.effective.values()) <= _TOLD * width

    def of_rows(self, first: int, last: int) -> Joint:
        """That of these rows alone, which no projection may have mixed."""
        some = slice(first, last)
        return Joint(self.grams[:, some, some], self.keys, self.widths, self.numbers, last - first)

    def at(self, precisions: Mapping[str, float]) -> Joined:
        """Volume and effective numbers; gamma is iterated from where the last call left it, to a thousandth.

        Raises:
            NumericalError: the numbers are too large to be told from one another.
        """
        stated = self.grams.new_tensor([precisions[key] for key in self.keys])
        found = self._last
        for _ in range(_MOST_ROUNDS):
            gamma = found
            inverse = 1 / (stated * self._folds(gamma) * self._fold(gamma))
            factor = self._factor(inverse)
            found = self._traces(factor) * inverse
            if float((found - gamma).abs().max()) <= _TOLERANCE * float(found.max()):
                break
        self._last = found
        volume = 2 * float(factor.diagonal().log().sum()) + self._folded(gamma)
        return Joined(volume, dict(zip(self.keys, found.tolist(), strict=True)))

    def _factor(self, inverse: Tensor) -> Tensor:
        """Of Cholesky, of `I + sum_k inverse_k G_k`."""
        total = torch.einsum("k,kij->ij", inverse, self.grams)
        total.diagonal().add_(1)
        factor: Tensor
        factor, failed = torch.linalg.cholesky_ex(total)
        if int(failed):
            raise NumericalError("the curvature of all tensors together has no Cholesky factor")
        return factor

    def _traces(self, factor: Tensor) -> Tensor:
        return torch.einsum("kij,ij->k", self.grams, torch.cholesky_inverse(factor))

    def _folds(self, gamma: Tensor) -> Tensor:
        """s of every tensor."""
        left = (1 - gamma / self.widths).clamp(min=_LEFT_OVER) / (1 - gamma / self.numbers)
        return left.where(self.widths < self.numbers, 1.0)

    def _fold(self, gamma: Tensor) -> float:
        """t."""
        width, number = self.grams.shape[1], float(gamma.sum())
        return max(1 - number / width, _LEFT_OVER) / (1 - number / self.rows) if width < self.rows else 1.0

    def _folded(self, gamma: Tensor) -> float:
        """What the volume lacks."""
        width = self.grams.shape[1]
        lacks = _lost(gamma, self.widths) - _lost(gamma, self.numbers)
        number = gamma.sum()
        across = _lost(number, number.new_tensor(width)) - _lost(number, number.new_tensor(self.rows))
        return float(lacks.where(self.widths < self.numbers, 0.0).sum()) + (float(across) if width < self.rows else 0.0)


def _gram(rows: Tensor) -> Tensor:
    wide = rows.double()
    products: Tensor = wide @ wide.mT
    return products


def _lost(number: Tensor, dimensions: Tensor) -> Tensor:
    return dimensions * (1 - number / dimensions).clamp(min=_LEFT_OVER).log()
