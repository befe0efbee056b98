"""The Gauss-Newton matrix as a Kronecker product for each block of each parameter tensor (KFAC).

With the uses of a weight as in `symdsl.evidence.weight_use`, B blocks, and N examples (Martens & Grosse 2015;
Eschenhagen et al. 2023, eq. 22):

    H_block ~= G (x) A_block
    expand:  A_block = sum_{n, r} a_nr a_nr^T,       G = 1/(N R B) sum_{n, block, r} g_nr g_nr^T
    reduce:  A_block = 1/R sum_n a_n a_n^T,          G = 1/(N R B) sum_{n, block} g_n g_n^T,
             a_n = sum_r a_nr,    g_n = sum_r g_nr
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import cached_property, reduce
from typing import Literal, Self

import attrs
import torch
from torch import Tensor

from symdsl import ranks
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
class Factor:
    """A positive semi-definite block-diagonal matrix.

    While a block is a sum of fewer outer products than its side, it is kept as their vectors: a dense kind sees few
    examples for the size of its map, and the eigenvalues of `V V^T` are those of `V^T V` but for zeros.

    Attributes:
        kept: the blocks `[block, side, side]`, or `[block, vector, side]`, the sums of whose outer products they are.
        as_vectors: which of both.
    """

    kept: Tensor
    as_vectors: bool = False

    @classmethod
    def of(cls, vectors: Tensor) -> Self:
        """Return the sums of the outer products of vectors `[block, vector, side]`."""
        return cls(vectors, True) if vectors.shape[1] < vectors.shape[2] else cls(gram(vectors))

    @property
    def size(self) -> int:
        """The number of rows of the whole matrix."""
        return self.kept.shape[0] * self.kept.shape[2]

    def blocks(self) -> Tensor:
        """Return the matrices on the diagonal, `[block, side, side]`."""
        return gram(self.kept) if self.as_vectors else self.kept

    def __add__(self, other: Factor) -> Factor:
        """Return the sum of two matrices of the same blocks."""
        if self.as_vectors and other.as_vectors:
            return Factor.of(torch.cat((self.kept, other.kept), 1))
        return Factor(self.blocks() + other.blocks())

    def scaled(self, by: float) -> Factor:
        """Return the matrix times a positive number."""
        return attrs.evolve(self, kept=self.kept * (by**0.5 if self.as_vectors else by))

    def over_ranks(self) -> Factor:
        """Return the sum of the factors of all ranks."""
        counts = ranks.gathered(self.kept.shape[1])
        if self.as_vectors and sum(counts) < self.kept.shape[2]:
            return Factor(ranks.gathered_examples(self.kept.transpose(0, 1), counts).transpose(0, 1), True)
        sums = self.blocks().contiguous()
        ranks.add_up([sums])
        return Factor(sums)

    def eigenvalues(self, name: str) -> Tensor:
        """Return the positive eigenvalues and some of the zeros, float64 `[number]`; see `symmetric_eigenvalues`."""
        if not self.as_vectors:
            return symmetric_eigenvalues(self.kept, name)
        vectors = self.kept.double() if self.kept.shape[1] <= CHEAP_SIDE else self.kept
        return symmetric_eigenvalues(gram(vectors.mT), name)


@attrs.frozen(eq=False)
class Kronecker:
    """The Kronecker product `output (x) input` of two factors.

    Attributes:
        output: output-gradient factor G.
        input: input factor A.
    """

    output: Factor
    input: Factor

    @property
    def size(self) -> int:
        """The number of rows, which is the number of parameters."""
        return self.output.size * self.input.size

    def dense(self) -> Tensor:
        """Return the whole matrix; meant for small ones."""
        return torch.kron(torch.block_diag(*self.output.blocks()), torch.block_diag(*self.input.blocks()))


@attrs.frozen(eq=False, slots=False)
class KroneckerFactors(GGN):
    """The Gauss-Newton matrix without the entries between different tensors, as Kronecker factors.

    Attributes:
        blocks: of every tensor, by key.
    """

    blocks: Mapping[str, Kronecker]

    @property
    def sizes(self) -> dict[str, int]:
        """The number of parameters of every tensor, by key."""
        return {key: block.size for key, block in self.blocks.items()}

    def at(self, precisions: Mapping[str, float], noise: float = 1.0) -> LogDet:
        """Return `sum_l log(1 + l / (noise delta))` and its slopes, l the products of eigenvalues of both factors.

        The effective number is `sum_l l / (l + noise delta)` (MacKay 1992).
        """
        value, effective = [], {}
        for key, (left, right) in self._spectra.items():
            found = [*_log_dets(left, right, precisions[key] * noise)]
            value += [part for part, _ in found]
            effective[key] = math.fsum(part for _, part in found)
        return LogDet(math.fsum(value), effective)

    @cached_property
    def _spectra(self) -> dict[str, tuple[Tensor, Tensor]]:
        factors = {(key, "output"): block.output for key, block in self.blocks.items()}
        factors |= {(key, "input"): block.input for key, block in self.blocks.items()}
        costs = {which: float(len(one.kept)) * float(one.kept.shape[1]) ** 3 for which, one in factors.items()}
        found = ranks.divided(costs, lambda which: factors[which].eigenvalues("{}, {} factor".format(*which)))
        return {key: (found[key, "output"], found[key, "input"]) for key in self.blocks}

    def scaled(self, factor: float) -> Self:
        """Return the matrix times `factor`."""
        scaled = {key: Kronecker(one.output, one.input.scaled(factor)) for key, one in self.blocks.items()}
        return type(self)(scaled)


def _log_dets(left: Tensor, right: Tensor, ridge: float) -> Iterator[tuple[float, float]]:
    """Yield `sum_l log(1 + l / ridge)` and `sum_l l / (l + ridge)`, l the products of both, some at a time."""
    left, right = left[left > 0], right[right > 0]
    for some in left.split(max(1, _EIGENVALUES // max(1, len(right)))):
        ratios = torch.outer(some, right) / ridge
        yield float(ratios.log1p().sum()), float((ratios / (1 + ratios)).sum())


class KfacAccumulator:
    """An accumulator that sums both Kronecker factors of every tensor.

    Args:
        sharing: KFAC-expand or KFAC-reduce, for weights that are used several times per example.
    """

    def __init__(self, sharing: Sharing) -> None:
        self._reduce = sharing == "reduce"
        self._output: dict[str, Factor] = {}
        self._input: dict[str, Factor] = {}
        self._examples = 0

    def add_inputs(self, uses: Mapping[str, BatchUse]) -> None:
        """Add the inputs of every tensor in one batch to the input factors."""
        for key, use in uses.items():
            _add(self._input, key, self._input_factor(use))
        self._examples += next(use.examples for use in uses.values())

    def add_gradients(self, uses: Mapping[str, BatchUse], gradients: Mapping[str, Tensor], first: int = 0) -> None:
        """Add every tensor's output gradients, for one column of a square root of Lambda, to the output factors.

        Sums do not depend on the order in which ranks add gradients, nor on `first`.
        """
        for key, use in uses.items():
            for g in use.gradients(gradients[key]):
                used = g.sum(2, keepdim=True) if self._reduce and g.shape[2] > 1 else g
                _add(self._output, key, _moment(used.flatten(0, 1).unsqueeze(1)).scaled(1 / g.shape[1:3].numel()))

    def gather(self) -> None:
        """Sum the factors of all ranks."""
        if ranks.count() > 1:
            for totals in (self._input, self._output):
                totals.update({key: one.over_ranks() for key, one in totals.items()})
            self._examples = sum(ranks.gathered(self._examples))

    def ggn(self) -> KroneckerFactors:
        """Return the Kronecker-factored estimate of the Gauss-Newton matrix."""
        output = {key: total.scaled(1 / self._examples) for key, total in self._output.items()}
        blocks = {key: Kronecker(output[key], total) for key, total in self._input.items()}
        return KroneckerFactors(blocks)

    def _input_factor(self, use: BatchUse) -> Factor:
        if self._reduce:
            # Sums over positions span few directions: in the others float32 round-off would count as parameters.
            sums = (_moment((one.double() if use.uses > 1 else one).unsqueeze(2)) for one in use.input_sums())
            return reduce(Factor.__add__, sums).scaled(1 / use.uses)
        moment = use.input_moment() if use.examples * use.uses >= use.side else None
        return reduce(Factor.__add__, map(_moment, use.inputs())) if moment is None else Factor(moment)


def _moment(vectors: Tensor) -> Factor:
    """Return the sums over n and R of the outer products of vectors `[n, block, R, side]`."""
    return Factor.of(vectors.detach().transpose(0, 1).flatten(1, 2))


def _add(totals: dict[str, Factor], key: str, term: Factor) -> None:
    totals[key] = totals[key] + term if key in totals else term


def gram(rows: Tensor) -> Tensor:
    """Return rows^T rows, `[..., row, side] -> [..., side, side]`; of a large one little more than half is computed."""
    side = rows.shape[-1]
    if side <= _WHOLE_SIDE:
        product: Tensor = rows.mT @ rows
        return product
    first, second = rows[..., : side // 2], rows[..., side // 2 :]
    across = first.mT @ second
    upper, lower = torch.cat((gram(first), across), -1), torch.cat((across.mT, gram(second)), -1)
    return torch.cat((upper, lower), -2)
