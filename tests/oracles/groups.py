"""The finite groups by dihedral algebra, and GCONV by sums over indices.

An element is a pair (quarters, mirrored): first a left-right flip or not, then so many quarter turns.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import TypeVar

import torch
from torch import Tensor

Element = tuple[int, int]
Offset = tuple[int, int]
Number = TypeVar("Number", int, Tensor)

ELEMENTS: dict[str, list[Element]] = {
    "trivial": [(0, 0)],
    "C2": [(0, 0), (2, 0)],
    "mirror": [(0, 0), (0, 1)],
    "flips": [(0, 0), (2, 0), (0, 1), (2, 1)],
    "p4": [(0, 0), (1, 0), (2, 0), (3, 0)],
    "p4m": [(0, 0), (1, 0), (2, 0), (3, 0), (0, 1), (1, 1), (2, 1), (3, 1)],
}
"""The elements in the order in which a lifted map holds its planes."""


def times(first: Element, second: Element) -> Element:
    """The product; a flip turns quarter turns round."""
    (a, m), (b, n) = first, second
    return (a + (-b if m else b)) % 4, (m + n) % 2


def inverse(element: Element) -> Element:
    """A flip after turns is its own inverse."""
    quarters, mirrored = element
    return element if mirrored else (-quarters % 4, 0)


def act(element: Element, offset: tuple[Number, Number]) -> tuple[Number, Number]:
    """Moves an offset (row, column), or tensors of them."""
    i, j = offset
    quarters, mirrored = element
    j = -j if mirrored else j
    for _ in range(quarters):
        i, j = -j, i
    return i, j


def coset_planes(lifted: str, group: str) -> Tensor:
    """`[coset r, element k] -> index of k r`, the first element of a coset being its r."""
    whole, rows = ELEMENTS[lifted], []
    for r in whole:
        row = [whole.index(times(k, r)) for k in ELEMENTS[group]]
        rows += [] if any(row[0] in other for other in rows) else [row]
    return torch.tensor(rows)


Apply = Callable[[str, Tensor, Callable[[Tensor], Tensor], int], Tensor]
"""`(tensor, matrix, row, slot)`: uses a fresh copy of a parameter, given as a matrix, in a slot of it."""


class GroupRule:
    """GCONV of one example on a map lifted to its own group, tensor by tensor.

    Args:
        group: its name.
        weights: the path's tensors.
        apply: uses a copy of a tensor.
        x: `[channel, element, row, column]`.
    """

    def __init__(self, group: str, weights: dict[str, Tensor], apply: Apply, x: Tensor) -> None:
        self.elements, self.weights, self.apply, self.x = ELEMENTS[group], weights, apply, x

    def factor(self) -> str:
        """Which factor the tensors are of."""
        if "w0" in self.weights:
            return "depthwise"
        if "w1" in self.weights:
            return "separable"
        return "full" if self.weights["w"].ndim == 5 else "pointwise"

    def at(self, kept: list[Offset]) -> Tensor:
        """`[out channel, element, position]`."""
        rule = {"full": self._whole, "pointwise": self._whole, "separable": self._separable}.get(self.factor())
        if rule is None:
            return self._depthwise(kept)
        return torch.stack([torch.stack([rule(g, t) for t in kept], 1) for g in range(len(self.elements))], 1)

    def _offsets(self, sides: tuple[int, ...]) -> list[Offset]:
        return list(product(*(range(-(side // 2), side // 2 + 1) for side in sides)))

    def _pixel(self, x: Tensor, t: Offset, s: Offset) -> Tensor:
        return x[..., (t[0] + s[0]) % x.shape[-2], (t[1] + s[1]) % x.shape[-1]]

    def _relative(self, g: int, h: int) -> int:
        return self.elements.index(times(inverse(self.elements[g]), self.elements[h]))

    def _brought_back(self, x: Tensor, g: int, t: Offset, sides: tuple[int, ...]) -> Tensor:
        """`[..., tap]`: entry s is x at t + g s, which the filter's tap s reads."""
        return torch.stack([self._pixel(x, t, act(self.elements[g], s)) for s in self._offsets(sides)], -1)

    def _whole(self, g: int, t: Offset) -> Tensor:
        """y[c', g, t] = sum_{c, h, s} x[c, h, t + s] w[c', c, g^-1 h, g^-1 s]."""
        weight = self.weights["w"]
        up, left = (side // 2 for side in weight.shape[-2:])

        def row(w: Tensor) -> Tensor:
            w = w.reshape(weight.shape)
            total = torch.zeros(weight.shape[0], dtype=w.dtype)
            for s in self._offsets(weight.shape[-2:]):
                i, j = act(inverse(self.elements[g]), s)
                pixel = self._pixel(self.x, t, s)
                if weight.ndim == 4:
                    total = total + w[:, :, i + up, j + left] @ pixel[:, g]
                    continue
                for h in range(len(self.elements)):
                    total = total + w[:, :, self._relative(g, h), i + up, j + left] @ pixel[:, h]
            return total

        return self.apply("w", weight.flatten(1), row, 0)

    def _separable(self, g: int, t: Offset) -> Tensor:
        """y[c', g, t] = sum_{c, h} w1[c', c, g^-1 h] sum_s w2[c, s] x[c, h, t + g s]."""
        w1, w2 = self.weights["w1"], self.weights["w2"]
        z = torch.zeros(w1.shape[1:], dtype=w1.dtype)
        for c, h in product(range(len(w2)), range(len(self.elements))):
            patch = self._brought_back(self.x[c, h], g, t, w2.shape[-2:])
            one = self.apply("w2", w2.reshape(1, -1), lambda w, c=c, a=patch: w.reshape(len(w2), -1)[c : c + 1] @ a, c)
            z = z.index_put((torch.tensor(c), torch.tensor(self._relative(g, h))), one[0])
        return self.apply("w1", w1.flatten(1), lambda w: w @ z.reshape(-1), 0)

    def _depthwise(self, kept: list[Offset]) -> Tensor:
        """u = w1 over the group, v = w2 over space, y = w0 over channels."""
        w0, w1, w2 = (self.weights[name] for name in ("w0", "w1", "w2"))
        channels, elements = range(len(w1)), range(len(self.elements))
        everywhere = list(product(range(self.x.shape[2]), range(self.x.shape[3])))

        def mixed(c: int, g: int, t: Offset) -> Tensor:
            order = [self.elements.index(times(self.elements[g], q)) for q in self.elements]
            a = self.x[c, order, t[0], t[1]]
            return self.apply("w1", w1.reshape(1, -1), lambda w: w.reshape(w1.shape)[c : c + 1] @ a, c)[0]

        def filtered(c: int, g: int, t: Offset, u: Tensor) -> Tensor:
            a = self._brought_back(u[c, g], g, t, w2.shape[-2:])
            return self.apply("w2", w2.reshape(1, -1), lambda w: w.reshape(len(w2), -1)[c : c + 1] @ a, c)[0]

        u = torch.stack([mixed(c, g, t) for c in channels for g in elements for t in everywhere])
        u = u.reshape(self.x.shape)
        v = torch.stack([filtered(c, g, t, u) for c in channels for g in elements for t in kept])
        v = v.reshape(len(channels), len(elements), len(kept))
        rows = [
            torch.stack([self.apply("w0", w0, lambda w, a=v[:, g, t]: w @ a, 0) for t in range(len(kept))], 1)
            for g in elements
        ]
        return torch.stack(rows, 1)
