"""The Gauss-Newton matrix as a Kronecker product for each block of each parameter tensor (KFAC).

With the uses of a weight as in `symdsl.evidence.weight_use`, B blocks, and N examples (Martens & Grosse 2015;
Eschenhagen et al. 2023, eq. 22):

    expand:  H_block ~= G (x) A_block,    A_block = sum_{n, r} a a^T,    G = 1/(N R B) sum_{n, block, r} g g^T
    reduce:  the same of a_n = sum_r a_r and g_n = sum_r g_r, with one use per example, and A divided by R
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import cached_property, reduce
from typing import Literal, Self

import attrs
import torch
from torch import Tensor
from torch.nn import functional

from symdsl.evidence.backward import GGN, LogDet
from symdsl.evidence.eigenvalues import CHEAP_SIDE, symmetric_eigenvalues
from symdsl.evidence.weight_use import BatchUse

Sharing = Literal["expand", "reduce"]
"""Whether the uses of a shared weight are summed after (expand) or before (reduce) the outer product."""

_EIGENVALUES = 1 << 22
"""How many products of eigenvalues are formed at a time."""

_WHOLE_SIDE = 256
"""Up to this side both halves of a symmetric product cost less than the bookkeeping of leaving one out."""


@attrs.frozen(eq=False)
class Kronecker:
    """The matrix `left (x) right`, either side possibly block diagonal.

    Either factor is kept as blocks `[block, side, side]`, or, while it is one block of fewer outer products than its
    side, as the vectors of these, `[vector, side]`: a dense kind has few examples for the size of a map.

    Attributes:
        output: output-gradient factor G, averaged over examples and uses.
        input: input factor A, summed over examples and uses.
    """

    output: Tensor
    input: Tensor

    @property
    def left(self) -> Tensor:
        """G, `[block, side, side]`."""
        return _dense(self.output)

    @property
    def right(self) -> Tensor:
        """A, `[block, side, side]`."""
        return _dense(self.input)

    @property
    def size(self) -> int:
        """Number of its rows, which is the number of parameters."""
        return _side(self.output) * _side(self.input)

    def dense(self) -> Tensor:
        """The whole matrix; for small ones."""
        return torch.kron(torch.block_diag(*self.left), torch.block_diag(*self.right))


@attrs.frozen(eq=False, slots=False)
class KroneckerFactors(GGN):
    """The Gauss-Newton matrix without what it has between different tensors.

    Attributes:
        blocks: of every tensor, by key.
    """

    blocks: Mapping[str, Kronecker]

    @property
    def sizes(self) -> dict[str, int]:
        """See `GGN.sizes`."""
        return {key: block.size for key, block in self.blocks.items()}

    def at(self, precisions: Mapping[str, float], noise: float = 1.0) -> LogDet:
        """See `GGN.at`: with the products l of eigenvalues of both factors, `sum_l log(l / noise + delta)`.

        The effective number is `sum_l l / (l + noise delta)` (MacKay 1992).
        """
        value, effective = [], {}
        for key, (left, right) in self._spectra.items():
            found = [_log_det(part, precisions[key] * noise) for part in _products(left, right)]
            value.append(len(left) * len(right) * math.log(precisions[key]))
            value += [part for part, _ in found]
            effective[key] = math.fsum(part for _, part in found)
        return LogDet(math.fsum(value), effective)

    @cached_property
    def _spectra(self) -> dict[str, tuple[Tensor, Tensor]]:
        return {
            key: (
                _eigenvalues(block.output, f"{key}, output factor"),
                _eigenvalues(block.input, f"{key}, input factor"),
            )
            for key, block in self.blocks.items()
        }

    def scaled(self, factor: float) -> Self:
        """See `GGN.scaled`."""
        return type(self)({key: Kronecker(one.output, _scaled(one.input, factor)) for key, one in self.blocks.items()})


def _side(factor: Tensor) -> int:
    return factor.shape[1] if factor.ndim == 2 else factor.shape[:2].numel()


def _dense(factor: Tensor) -> Tensor:
    return gram(factor).unsqueeze(0) if factor.ndim == 2 else factor


def _scaled(factor: Tensor, by: float) -> Tensor:
    return factor * (by**0.5 if factor.ndim == 2 else by)


def _added(first: Tensor, second: Tensor) -> Tensor:
    if first.ndim == second.ndim == 2:
        vectors = torch.cat((first, second))
        return vectors if len(vectors) < vectors.shape[1] else _dense(vectors)
    return _dense(first) + _dense(second)


def _eigenvalues(factor: Tensor, name: str) -> Tensor:
    if factor.ndim == 3:
        return symmetric_eigenvalues(factor, name)
    vectors = factor.double() if len(factor) <= CHEAP_SIDE else factor
    found = symmetric_eigenvalues(gram(vectors.mT).unsqueeze(0), name)
    return functional.pad(found, (0, factor.shape[1] - len(found)))


def _products(left: Tensor, right: Tensor) -> Iterator[Tensor]:
    """All products of a positive number of `left` with one of `right`."""
    left, right = left[left > 0], right[right > 0]
    for some in left.split(max(1, _EIGENVALUES // max(1, len(right)))):
        yield torch.outer(some, right)


def _log_det(eigenvalues: Tensor, ridge: float) -> tuple[float, float]:
    """`sum_l log(1 + l / ridge)` and `sum_l l / (l + ridge)`."""
    ratios = eigenvalues / ridge
    return float(ratios.log1p().sum()), float((ratios / (1 + ratios)).sum())


class KfacAccumulator:
    """Sums up both factors of every tensor.

    Args:
        sharing: KFAC-expand or KFAC-reduce, for weights that are used several times per example.
    """

    def __init__(self, sharing: Sharing) -> None:
        self._reduce = sharing == "reduce"
        self._output: dict[str, Tensor] = {}
        self._input: dict[str, Tensor] = {}
        self._examples = 0

    def add_inputs(self, uses: Mapping[str, BatchUse]) -> None:
        """See `Accumulator.add_inputs`."""
        for key, use in uses.items():
            _add(self._input, key, self._input_factor(use))
        self._examples += next(use.examples for use in uses.values())

    def add_gradients(self, uses: Mapping[str, BatchUse], gradients: Mapping[str, Tensor]) -> None:
        """See `Accumulator.add_gradients`."""
        for key, use in uses.items():
            for g in use.gradients(gradients[key]):
                _add(self._output, key, _scaled(self._moment(g.flatten(0, 1).unsqueeze(1)), 1 / g.shape[1:3].numel()))

    def ggn(self) -> KroneckerFactors:
        """See `Accumulator.ggn`."""
        output = {key: _scaled(total, 1 / self._examples) for key, total in self._output.items()}
        return KroneckerFactors({key: Kronecker(output[key], total) for key, total in self._input.items()})

    def _input_factor(self, use: BatchUse) -> Tensor:
        moment = use.weight.input_moment
        if moment is not None and not self._reduce:
            return moment(use.use.owner, use.use.inputs)
        return reduce(_added, (_scaled(self._moment(a), 1 / a.shape[2] if self._reduce else 1) for a in use.inputs()))

    def _moment(self, vectors: Tensor) -> Tensor:
        """Sums of outer products of uses, or of their sums: a factor of `[n, block, R, side]`."""
        used = vectors.sum(2, keepdim=True) if self._reduce else vectors
        rows = used.transpose(0, 1).flatten(1, 2)
        return rows[0] if len(rows) == 1 and rows.shape[1] < rows.shape[2] else gram(rows)


def _add(totals: dict[str, Tensor], key: str, term: Tensor) -> None:
    totals[key] = _added(totals[key], term) if key in totals else term


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
