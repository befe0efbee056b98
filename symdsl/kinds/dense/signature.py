"""The signatures of FC and F-FC, and of F-GFC on a lifted map."""

from __future__ import annotations

from collections.abc import Callable

from symdsl.catalog.shapes import FactorSize, Shape
from symdsl.kinds.record import TRANSLATIONS, Arguments, Refusal, Site, Tensor

Sides = Callable[[Shape], tuple[int, int]]
"""What of a map a factored kind takes for channels, and what for positions."""


def plain(shape: Shape) -> tuple[int, int]:
    """Planes, and the positions of one."""
    return shape.planes, shape.positions


def lifted(shape: Shape) -> tuple[int, int]:
    """Channels, and the group elements times positions of one."""
    return shape.channels, shape.order * shape.positions


def accepts(site: Site, arguments: Arguments) -> Refusal | None:
    """No reason at any site."""
    return None


def trivially(site: Site, arguments: Arguments) -> tuple[str, ...]:
    """A dense map follows translations only where there is nowhere to go."""
    return (TRANSLATIONS,) if site.single and not site.reads.flat else ()


def fc_tensors(site: Site, arguments: Arguments) -> tuple[Tensor, ...]:
    """The weight `w`."""
    reads, writes = site.reads, site.writes
    shape = (writes.planes, writes.positions, reads.planes, reads.positions)
    return (Tensor("w", shape, FactorSize(writes.size, 1), FactorSize(reads.size, 1)),)


def fc_cost(site: Site, arguments: Arguments) -> int:
    """Every number written reads every number."""
    return site.reads.size * site.writes.size


def factored_tensors(sides: Sides, site: Site, arguments: Arguments) -> tuple[Tensor, ...]:
    """`w1` and `w2`, with `sides` saying what counts as channels and what as positions."""
    (channels, read), (out_channels, written) = sides(site.reads), sides(site.writes)
    pairs = (out_channels, channels)
    outer = Tensor("w1", (*pairs, written), FactorSize(written, 1), FactorSize(channels, out_channels))
    inner = Tensor("w2", (*pairs, read), FactorSize(out_channels, 1), FactorSize(read, channels))
    return (outer, inner)


def factored_cost(sides: Sides, site: Site, arguments: Arguments) -> int:
    """Both sums over pairs of channels; see `factored_tensors`."""
    (channels, read), (out_channels, written) = sides(site.reads), sides(site.writes)
    return channels * out_channels * (read + written)
