"""Naive rules of the kinds with basis functions, and of the factored kinds on group times space.

Anchors and basis functions are worked out here from their definitions, point by point.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import product
from typing import Any

import torch
from torch import Tensor

from oracles.groups import ELEMENTS, act, inverse, times
from symdsl.analysis.facts import Candidate, Layer

Point = tuple[float, ...]


def points(rows: int, columns: int, group: str) -> list[Point]:
    """Group times grid: the place, then the matrix of the element, whose columns are the moved unit vectors."""
    found = []
    for element in ELEMENTS[group]:
        first, second = act(element, (1, 0)), act(element, (0, 1))
        matrix = (first[0], second[0], first[1], second[1])
        found += [(i, j, *matrix) for i, j in product(range(rows), range(columns))]
    return found


def apart(a: Point, b: Point) -> float:
    """Squared distance of places, plus half that of the matrices."""
    squares = [(p - q) ** 2 for p, q in zip(a, b, strict=True)]
    return sum(squares[:2]) + 0.5 * sum(squares[2:])


def farthest_points(candidates: list[Point], count: int) -> list[Point]:
    """Each one as far as can be from those before it; among equals the one that centres them best."""
    middle = [sum(coordinates) / len(candidates) for coordinates in zip(*candidates, strict=True)]
    chosen: list[Point] = []

    def rank(point: Point) -> tuple[float, float]:
        together = zip(*chosen, point, strict=True) if chosen else ((value,) for value in point)
        lean = [sum(values) - len(values) * centre for values, centre in zip(together, middle, strict=True)]
        nearest = min((apart(point, one) for one in chosen), default=math.inf)
        return nearest, -sum(value**2 for value in lean)

    while len(chosen) < count:
        chosen.append(max(candidates, key=rank))
    return chosen


def basis(places: list[Point], one: Candidate, parameters: Mapping[str, Tensor], key: str, side: str) -> Tensor:
    """phi_p(t) = exp(-omega_p^2 |t - z_p|^2), `[anchor, site]`."""
    count = math.ceil(len(places) / int(one.argument("sparsity")))
    omega, moved = parameters.get(f"{key}.omega{side}"), parameters.get(f"{key}.anchors{side}")
    rows = []
    for p, start in enumerate(farthest_points(places, count)):
        shift = (0.0, 0.0) if moved is None else moved[p].tolist()
        anchor = (start[0] + shift[0], start[1] + shift[1], *start[2:])
        rate = count / len(places) if omega is None else float(omega[p]) ** 2
        rows.append([math.exp(-rate * apart(anchor, place)) for place in places])
    return torch.tensor(rows, dtype=torch.float64)


class SparseRules:
    """One method per kind, to be mixed into the naive network."""

    parameters: dict[str, Tensor]
    _new: Any

    def sparse_fully_connected(self, layer: Layer, one: Candidate, key: str, x: Tensor, kept: object) -> Tensor:
        """x~ = x Phi2^T, z[c', c] = x~[c] u2[c', c], v[c', p] = sum_c z[c', c] u1[c', c, p], y = v Phi1."""
        return self._projected(layer, one, key, x.flatten(0, 1), "trivial")

    def sparse_group_fully_connected(self, layer: Layer, one: Candidate, key: str, x: Tensor, kept: object) -> Tensor:
        """The same with channels for planes, and group times space for positions."""
        return self._projected(layer, one, key, x, layer.in_shape.group)

    def _projected(self, layer: Layer, one: Candidate, key: str, x: Tensor, group: str) -> Tensor:
        out = layer.out_shape
        phi2 = basis(points(*x.shape[-2:], group), one, self.parameters, key, "2")
        phi1 = basis(points(out.height, out.width, group), one, self.parameters, key, "1")
        v = self._product(key, ("u1", "u2"), x.reshape(len(x), -1) @ phi2.T)
        return (v @ phi1).reshape(out.channels, out.order, out.height, out.width)

    def factored_group(self, layer: Layer, one: Candidate, key: str, x: Tensor, kept: object) -> Tensor:
        """F-FC over channels, and group times space for positions."""
        out = layer.out_shape
        y = self._product(key, ("w1", "w2"), x.reshape(len(x), -1))
        return y.reshape(out.channels, out.order, out.height, out.width)

    def _product(self, key: str, names: tuple[str, str], maps: Tensor) -> Tensor:
        """z[c', c] = sum_p maps[c, p] second[c', c, p]; v[c', p] = sum_c z[c', c] first[c', c, p]."""
        first, second = (self.parameters[f"{key}.{name}"] for name in names)
        outs, ins = second.shape[:2]
        inner = self._new(f"{key}.{names[1]}", second.flatten(1))
        z = torch.stack([inner.apply(lambda w, c=c: w.reshape(second.shape)[:, c] @ maps[c], c) for c in range(ins)], 1)
        outer = self._new(f"{key}.{names[0]}", first.permute(2, 0, 1).flatten(1))
        return torch.stack([outer.apply(lambda w, d=d: w.reshape(-1, outs, ins)[:, d] @ z[d], d) for d in range(outs)])

    def sparse_convolution(
        self,
        layer: Layer,
        one: Candidate,
        key: str,
        x: Tensor,
        kept: list[tuple[int, int]],
        grid: tuple[int, int] = (0, 0),
    ) -> Tensor:
        """y[c', t] = sum_{c, p} u[c', c, p] a[c, p], a[c, p] = sum_s x[c, t + s] phi_p(s) over plain planes."""
        return self._convolved(layer, one, key, x.flatten(0, 1)[:, None], kept, grid, "trivial")

    def sparse_group_convolution(
        self,
        layer: Layer,
        one: Candidate,
        key: str,
        x: Tensor,
        kept: list[tuple[int, int]],
        grid: tuple[int, int] = (0, 0),
    ) -> Tensor:
        """a[c, p] = sum_{h, s} x[c, h, t + s] phi_p(g^-1 h, g^-1 s) at (g, t)."""
        return self._convolved(layer, one, key, x, kept, grid, layer.in_shape.group)

    def _convolved(
        self,
        layer: Layer,
        one: Candidate,
        key: str,
        x: Tensor,
        kept: list[tuple[int, int]],
        grid: tuple[int, int],
        group: str,
    ) -> Tensor:
        elements, kernel = ELEMENTS[group], int(one.argument("k"))
        sides = (1 if x.shape[2] == 1 else kernel, kernel)
        up, left = (side // 2 for side in sides)
        phi = basis(points(*sides, group), one, self.parameters, key, "")
        phi = phi.reshape(-1, len(elements), *sides)
        uses = self._new(f"{key}.u", self.parameters[f"{key}.u"].flatten(1))

        def read(g: int, t: tuple[int, int]) -> Tensor:
            a = torch.zeros(len(x), len(phi), dtype=x.dtype)
            for i, j in product(range(-up, up + 1), range(-left, left + 1)):
                p, q = act(inverse(elements[g]), (i, j))
                pixel = x[:, :, (t[0] + i) % x.shape[2], (t[1] + j) % x.shape[3]]
                for h, element in enumerate(elements):
                    relative = elements.index(times(inverse(elements[g]), element))
                    a = a + pixel[:, h, None] * phi[:, relative, p + up, q + left]
            return a.reshape(-1)

        def use(a: Tensor) -> Tensor:
            made: Tensor = uses.apply(lambda u: u @ a)
            return made

        values = [torch.stack([use(read(g, t)) for t in kept], 1) for g in range(len(elements))]
        out = layer.out_shape
        rows, columns = grid if grid != (0, 0) else (out.height, out.width)
        return torch.stack(values, 1).reshape(out.channels, out.order, rows, columns)


RULES = {
    "S-FC": "sparse_fully_connected",
    "S-GFC": "sparse_group_fully_connected",
    "F-GFC": "factored_group",
    "S-CONV": "sparse_convolution",
    "S-GCONV": "sparse_group_convolution",
}
