"""The finite groups a feature map can be lifted to: facts that both the language and the torch side need."""

from __future__ import annotations

import attrs

Matrix = tuple[tuple[int, int], tuple[int, int]]


@attrs.frozen
class Group:
    """A finite group of symmetries of the square pixel grid.

    Attributes:
        name: as written in a spec.
        elements: one integer 2x2 matrix per element, acting on (row, column) offsets; the identity comes first.
        moves: what the group does to an image, in words.
        needs_square: whether some element swaps rows and columns, so that only square maps can be acted on.
    """

    name: str
    elements: tuple[Matrix, ...]
    moves: str
    needs_square: bool

    @property
    def order(self) -> int:
        """The number of elements, |G|."""
        return len(self.elements)

    def compose(self, left: int, right: int) -> int:
        """Index of the product `left * right` (apply `right` first)."""
        return self.elements.index(_product(self.elements[left], self.elements[right]))

    def inverse(self, element: int) -> int:
        """Index of the inverse of `element`."""
        return next(other for other in range(self.order) if self.compose(element, other) == 0)


def _product(a: Matrix, b: Matrix) -> Matrix:
    (p, q), (r, s) = a
    (t, u), (v, w) = b
    return ((p * t + q * v, p * u + q * w), (r * t + s * v, r * u + s * w))


_IDENTITY: Matrix = ((1, 0), (0, 1))
_QUARTER_TURN: Matrix = ((0, -1), (1, 0))


def _cyclic(generator: Matrix, order: int) -> tuple[Matrix, ...]:
    elements = [_IDENTITY]
    while len(elements) < order:
        elements.append(_product(generator, elements[-1]))
    return tuple(elements)


TRIVIAL = "trivial"

GROUPS: dict[str, Group] = {
    group.name: group
    for group in (
        Group(TRIVIAL, (_IDENTITY,), "nothing", needs_square=False),
        Group("p4", _cyclic(_QUARTER_TURN, 4), "quarter turns", needs_square=True),
    )
}
"""Every group by name. `trivial` is the group of a plain image; the others can be named after `lift`."""
