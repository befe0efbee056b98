"""Shapes of feature maps and of curvature factors."""

from __future__ import annotations

import attrs

from symdsl.groups import GROUPS, TRIVIAL


@attrs.frozen
class Shape:
    """The shape of a feature map without its batch dimension.

    Attributes:
        channels: C, not counting group elements.
        height: rows of the map.
        width: columns of the map.
        group: name of the group the map is lifted to; `trivial` for a plain image.
        flat: whether `flatten` has turned the map into a vector (then height = width = 1 and group = trivial).
    """

    channels: int
    height: int
    width: int
    group: str = TRIVIAL
    flat: bool = False

    @property
    def order(self) -> int:
        """The number of elements of the group that the map is lifted to."""
        return GROUPS[self.group].order

    @property
    def planes(self) -> int:
        """The number of plain channels: `channels` times `order`."""
        return self.channels * self.order

    @property
    def positions(self) -> int:
        """The number of pixels of one plane."""
        return self.height * self.width

    @property
    def size(self) -> int:
        """The number of values in one example's map."""
        return self.planes * self.positions

    @property
    def grid(self) -> tuple[int, int, int]:
        """The numbers of planes, rows and columns."""
        return self.planes, self.height, self.width

    @property
    def is_line(self) -> bool:
        """Whether the map is one row of several columns."""
        return self.height == 1 and self.width > 1

    @property
    def shortest_side(self) -> int:
        """The lesser of rows and columns; on a line, its length."""
        return self.width if self.is_line else min(self.height, self.width)

    def sides(self, size: int) -> tuple[int, int]:
        """Return rows and columns of a kernel or stride of this size; on a line it extends along the line only."""
        return (1 if self.is_line else size), size

    def __str__(self) -> str:
        if self.flat:
            return str(self.channels)
        lifted = "" if self.group == TRIVIAL else f"{self.group}x"
        return f"{self.channels}x{lifted}{self.height}x{self.width}"


@attrs.frozen
class FactorSize:
    """One side of a Kronecker-factored curvature block: `blocks` square matrices of side `side`."""

    side: int
    blocks: int
