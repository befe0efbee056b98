"""Rows: the gradient of every single example in a tensor.

The Gauss-Newton block of a tensor is the sum of their outer products; their inner products bound its determinant, and
their random projections estimate it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import attrs
import torch
from torch import Tensor

Formed = Callable[[Any, Tensor, Tensor], Tensor]
Uses = Callable[[Any, Tensor, Tensor], tuple[Tensor, Tensor]]
Parts = Callable[[Any, Tensor, Tensor], Iterator[Tensor]]

_COLUMNS = 1 << 13
"""How many columns of rows are formed at a time."""


@attrs.frozen
class Rows:
    """What is known of a tensor's rows, one for each example: `(owner, inputs, gradients)` gives

    Attributes:
        squares: their squared norms, `[n]`.
        gram: their inner products, `[n, n]`.
        parts: the rows themselves, `[n, column]` of some columns at a time: every element of the tensor once, in an
            order that is the same for every batch.
        outer: of a tensor used once per example, whose rows are outer products g a^T: a `[n, read]` and g `[n, given]`.
    """

    squares: Formed
    gram: Formed
    parts: Parts
    outer: Uses | None = None

    @classmethod
    def formed(cls, rows: Formed) -> Rows:
        """Of a tensor whose uses add up.

        Args:
            rows: `(owner, inputs, gradients) -> [n, ...]`: the gradient of every example in the tensor.
        """
        return cls(
            lambda owner, inputs, gradients: _squares(rows(owner, inputs, gradients).flatten(1)),
            lambda owner, inputs, gradients: _gram(rows(owner, inputs, gradients).flatten(1)),
            lambda owner, inputs, gradients: iter([rows(owner, inputs, gradients).flatten(1)]),
        )

    @classmethod
    def shared(cls, tensor: str, uses: Uses, rows: Formed | None = None) -> Rows:
        """Of a tensor whose uses add up, and whose rows are formed only where that costs less than comparing the uses.

        With r = sum_u g_u a_u^T, <r, r'> = sum_{u, v} <g_u, g'_v> <a_u, a'_v>.

        Args:
            tensor: its name in the owner, `[g, ...]` for g numbers that every use gives.
            uses: `(owner, inputs, gradients)` gives what each use reads, `[n, use, a]`, and the gradient in what it
                gives, `[n, use, g]`.
            rows: forms the rows, as for `formed`, where the uses take too much memory side by side.
        """

        def formed(owner: Any, inputs: Tensor, gradients: Tensor) -> Tensor:
            if rows is not None:
                return rows(owner, inputs, gradients).flatten(1)
            a, g = uses(owner, inputs, gradients)
            return (g.mT @ a).flatten(1)

        def squares(owner: Any, inputs: Tensor, gradients: Tensor) -> Tensor:
            if not _sizes(owner, tensor, gradients).few_within():
                return _squares(formed(owner, inputs, gradients))
            a, g = uses(owner, inputs, gradients)
            return (_gram(a) * _gram(g)).flatten(1).sum(1).clamp(min=0)

        def gram(owner: Any, inputs: Tensor, gradients: Tensor) -> Tensor:
            if not _sizes(owner, tensor, gradients).few_between(len(inputs)):
                return _gram(formed(owner, inputs, gradients))
            a, g = uses(owner, inputs, gradients)
            every, side = _gram(a.flatten(0, 1)) * _gram(g.flatten(0, 1)), a.shape[:2]
            return every.reshape(*side, *side).sum((1, 3))

        def parts(owner: Any, inputs: Tensor, gradients: Tensor) -> Iterator[Tensor]:
            if rows is not None:
                yield formed(owner, inputs, gradients)
                return
            a, g = uses(owner, inputs, gradients)
            for some in g.split(max(1, _COLUMNS // a.shape[2]), 2):
                yield (some.mT @ a).flatten(1)

        return cls(squares, gram, parts)

    @classmethod
    def slotted(cls, uses: Uses) -> Rows:
        """Of a tensor whose uses each have a slot of their own, so that no two of them add up.

        Args:
            uses: `(owner, inputs, gradients)` gives what each use reads, `[n, slot, a]`, and the gradient in what it
                gives, `[n, slot, g]`.
        """

        def squares(owner: Any, inputs: Tensor, gradients: Tensor) -> Tensor:
            a, g = uses(owner, inputs, gradients)
            return (_squares(a) * _squares(g)).sum(1)

        def gram(owner: Any, inputs: Tensor, gradients: Tensor) -> Tensor:
            a, g = uses(owner, inputs, gradients)
            return (_gram(a.transpose(0, 1)) * _gram(g.transpose(0, 1))).sum(0)

        def parts(owner: Any, inputs: Tensor, gradients: Tensor) -> Iterator[Tensor]:
            a, g = uses(owner, inputs, gradients)
            slots = max(1, _COLUMNS // (a.shape[2] * g.shape[2]))
            for a_some, g_some in zip(a.split(slots, 1), g.split(slots, 1), strict=True):
                for few in g_some.split(max(1, _COLUMNS // a.shape[2]), 2):
                    yield (few.unsqueeze(3) * a_some.unsqueeze(2)).flatten(1)

        return cls(squares, gram, parts)

    @classmethod
    def once(cls, uses: Uses) -> Rows:
        """Of a tensor that is used once per example.

        Args:
            uses: `(owner, inputs, gradients)` gives what the use reads, `[n, read]`, and the gradient in what it gives,
                `[n, given]`.
        """

        def slotted(owner: Any, inputs: Tensor, gradients: Tensor) -> tuple[Tensor, Tensor]:
            a, g = uses(owner, inputs, gradients)
            return a.unsqueeze(1), g.unsqueeze(1)

        return attrs.evolve(cls.slotted(slotted), outer=uses)


def _gram(rows: Tensor) -> Tensor:
    products: Tensor = rows @ rows.mT
    return products


def _squares(rows: Tensor) -> Tensor:
    """Squared norms along the last axis; of large rows no squares are stored."""
    norms: Tensor = torch.linalg.vector_norm(rows, dim=-1)
    return norms.square()


@attrs.frozen
class Sizes:
    """Of a tensor that is used several times per example.

    Attributes:
        uses: how often.
        read: numbers that one use reads.
        given: numbers that it gives.
    """

    uses: int
    read: int
    given: int

    def few_within(self) -> bool:
        """Whether comparing the uses of one example takes fewer multiplications than forming its row."""
        return self.uses * (self.read + self.given) < self.read * self.given

    def few_between(self, examples: int) -> bool:
        """Whether comparing the uses of all examples takes fewer than forming their rows and comparing these."""
        every = examples * self.uses**2 * (self.read + self.given)
        return every < (self.uses + examples) * self.read * self.given


def _sizes(owner: Any, tensor: str, gradients: Tensor) -> Sizes:
    weight = getattr(owner, tensor)
    given = len(weight)
    return Sizes(gradients[:1].numel() // given, weight.numel() // given, given)
