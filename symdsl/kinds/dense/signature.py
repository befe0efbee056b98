"""The signatures of FC and F-FC, and of F-GFC on a lifted map."""

from __future__ import annotations

from collections.abc import Callable

from symdsl.catalog.shapes import FactorSize, Shape
from symdsl.kinds.record import TRANSLATIONS, Arguments, Refusal, Site, Tensor

Sides = Callable[[Shape], tuple[int, int]]
"""Returns the numbers of channels and positions that a factored kind sees in a map."""


def plain(shape: Shape) -> tuple[int, int]:
    """Return the number of planes, and of the positions in one."""
    return shape.planes, shape.positions


def lifted(shape: Shape) -> tuple[int, int]:
    """Return the number of channels, and of group elements times positions in one."""
    return shape.channels, shape.order * shape.positions


def accepts(site: Site, arguments: Arguments) -> Refusal | None:
    """Return `None`: the kind can be used anywhere."""
    return None


def trivially(site: Site, arguments: Arguments) -> tuple[str, ...]:
    """Return translations where both maps have one position, otherwise nothing."""
    return (TRANSLATIONS,) if site.single and not site.reads.flat else ()


def fc_tensors(site: Site, arguments: Arguments) -> tuple[Tensor, ...]:
    """Return the tensor `w` of FC."""
    reads, writes = site.reads, site.writes
    shape = (writes.planes, writes.positions, reads.planes, reads.positions)
    return (Tensor("w", shape, FactorSize(writes.size, 1), FactorSize(reads.size, 1)),)


def fc_cost(site: Site, arguments: Arguments) -> int:
    """Return the multiply-adds of FC, in which every output number reads every input number."""
    return site.reads.size * site.writes.size


def factored_tensors(sides: Sides, site: Site, arguments: Arguments) -> tuple[Tensor, ...]:
    """Return `w1` and `w2`; `sides` says what counts as channels and what as positions."""
    (channels, read), (out_channels, written) = sides(site.reads), sides(site.writes)
    pairs = (out_channels, channels)
    outer = Tensor("w1", (*pairs, written), FactorSize(written, 1), FactorSize(channels, out_channels))
    inner = Tensor("w2", (*pairs, read), FactorSize(out_channels, 1), FactorSize(read, channels))
    return (outer, inner)


def factored_cost(sides: Sides, site: Site, arguments: Arguments) -> int:
    """Return the multiply-adds of both sums over pairs of channels; see `factored_tensors`."""
    (channels, read), (out_channels, written) = sides(site.reads), sides(site.writes)
    return channels * out_channels * (read + written)
