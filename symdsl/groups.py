"""The finite groups a feature map can be lifted to: facts that both the language and the torch side need."""

from __future__ import annotations

from functools import cache

import attrs

Matrix = tuple[tuple[int, int], tuple[int, int]]


@attrs.frozen
class Group:
    """A finite group of symmetries of the square pixel grid.

    Attributes:
        name: as written in a spec.
        elements: one integer 2x2 matrix per element, acting on (row, column) offsets; the identity comes first.
        movements: what the group does to an image, in words: the movements of `MOVEMENTS` that generate it.
    """

    name: str
    elements: tuple[Matrix, ...]
    movements: tuple[str, ...]

    @property
    def order(self) -> int:
        """The number of elements, |G|."""
        return len(self.elements)

    @property
    def moves(self) -> str:
        """Its movements in a few words."""
        return " and ".join(self.movements)

    @property
    def needs_square(self) -> bool:
        """Whether some element swaps rows and columns, so that only square maps can be acted on."""
        return any(map(_swaps, self.elements))

    def compose(self, left: int, right: int) -> int:
        """Index of the product `left * right` (apply `right` first)."""
        return self.elements.index(_product(self.elements[left], self.elements[right]))

    def inverse(self, element: int) -> int:
        """Index of the inverse of `element`."""
        return next(other for other in range(self.order) if self.compose(element, other) == 0)

    def contains(self, other: Group) -> bool:
        """Whether every element of `other` is one of this group."""
        return set(other.elements) <= set(self.elements)

    def subgroups(self) -> tuple[Group, ...]:
        """The groups of the table within this one, itself first, `trivial` last."""
        return tuple(sorted(filter(self.contains, GROUPS.values()), key=lambda group: -group.order))

    def cosets(self, subgroup: Group) -> tuple[int, ...]:
        """The elements coset by coset: for each right coset K r, the indices of k r in the order of k.

        The subgroup acts on each coset as it acts on itself, so that a map lifted to this group is, channel by
        channel, [G : K] maps lifted to K.

        Raises:
            ValueError: `subgroup` is not contained in this group.
        """
        if not self.contains(subgroup):
            raise ValueError(f"`subgroup` (={subgroup.name}) must be contained in {self.name}")
        found: list[int] = []
        for representative in self.elements:
            coset = [self.elements.index(_product(element, representative)) for element in subgroup.elements]
            found += coset if coset[0] not in found else []
        return tuple(found)

    def on(self, height: int, width: int) -> Group:
        """What is left of the group on maps of that size: the elements that map the grid to itself."""
        if height == width:
            return self
        return next(group for group in self.subgroups() if not group.needs_square)


def _swaps(matrix: Matrix) -> bool:
    return matrix[0][0] == 0


def _product(a: Matrix, b: Matrix) -> Matrix:
    (p, q), (r, s) = a
    (t, u), (v, w) = b
    return ((p * t + q * v, p * u + q * w), (r * t + s * v, r * u + s * w))


_IDENTITY: Matrix = ((1, 0), (0, 1))
_QUARTER_TURN: Matrix = ((0, -1), (1, 0))
_HALF_TURN: Matrix = ((-1, 0), (0, -1))
_LEFT_RIGHT: Matrix = ((1, 0), (0, -1))
_UP_DOWN: Matrix = ((-1, 0), (0, 1))

HALF_TURNS, QUARTER_TURNS = "half turns", "quarter turns"
LEFT_RIGHT_FLIPS, UP_DOWN_FLIPS = "left-right flips", "up-down flips"

MOVEMENTS: dict[str, Matrix] = {
    HALF_TURNS: _HALF_TURN,
    QUARTER_TURNS: _QUARTER_TURN,
    LEFT_RIGHT_FLIPS: _LEFT_RIGHT,
    UP_DOWN_FLIPS: _UP_DOWN,
}
"""Movements of an image about its centre by the words for them."""


@cache
def generated(movements: frozenset[str]) -> frozenset[Matrix]:
    """The group elements that can be composed of some of `MOVEMENTS`."""
    generators = [MOVEMENTS[word] for word in movements]
    found = {_IDENTITY}
    while more := {_product(one, other) for one in generators for other in found} - found:
        found |= more
    return frozenset(found)


def _rotations(generator: Matrix, order: int) -> tuple[Matrix, ...]:
    elements = [_IDENTITY]
    while len(elements) < order:
        elements.append(_product(generator, elements[-1]))
    return tuple(elements)


def _mirrored(rotations: tuple[Matrix, ...]) -> tuple[Matrix, ...]:
    """The rotations, then each of them after a left-right flip."""
    return (*rotations, *(_product(one, _LEFT_RIGHT) for one in rotations))


TRIVIAL = "trivial"

TWO_STEPS_FROM = 32
"""Output channels from which a separable group convolution is faster in two steps than with its filter multiplied out.

Depthwise convolutions do little work per number they move, so the few multiplications of two steps pay off late.
"""

GROUPS: dict[str, Group] = {
    group.name: group
    for group in (
        Group(TRIVIAL, (_IDENTITY,), ()),
        Group("C2", _rotations(_HALF_TURN, 2), (HALF_TURNS,)),
        Group("mirror", _mirrored((_IDENTITY,)), (LEFT_RIGHT_FLIPS,)),
        Group("flips", _mirrored(_rotations(_HALF_TURN, 2)), (LEFT_RIGHT_FLIPS, UP_DOWN_FLIPS)),
        Group("p4", _rotations(_QUARTER_TURN, 4), (QUARTER_TURNS,)),
        Group("p4m", _mirrored(_rotations(_QUARTER_TURN, 4)), (QUARTER_TURNS, LEFT_RIGHT_FLIPS)),
    )
}
"""Every group by name. `trivial` is the group of a plain image; the others can be named after `lift`.

The intersection of any two is in the table, so what is left of a group is always a group with a name.
"""
