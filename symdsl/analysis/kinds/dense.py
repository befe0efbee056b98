"""The dense kinds: FC, F-FC, and F-GFC on a lifted map."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from symdsl.analysis.facts import FactorSize, Shape
from symdsl.analysis.kinds.group import lift_refusal
from symdsl.analysis.kinds.record import TRANSLATIONS, Arguments, Kind, Refusal, Site, Tensor
from symdsl.catalog.signatures import Signature

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


def _fc_tensors(site: Site, arguments: Arguments) -> tuple[Tensor, ...]:
    reads, writes = site.reads, site.writes
    shape = (writes.planes, writes.positions, reads.planes, reads.positions)
    return (Tensor("w", shape, FactorSize(writes.size, 1), FactorSize(reads.size, 1)),)


def _fc_cost(site: Site, arguments: Arguments) -> int:
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


FC = Kind(Signature("FC"), _fc_tensors, trivially, _fc_cost, accepts, "docs/kinds/fc.md")
FACTORED = Kind(
    Signature("F-FC"),
    partial(factored_tensors, plain),
    trivially,
    partial(factored_cost, plain),
    accepts,
    "docs/kinds/f-fc.md",
)
FACTORED_GROUP = Kind(
    Signature("F-GFC"),
    partial(factored_tensors, lifted),
    trivially,
    partial(factored_cost, lifted),
    lift_refusal,
    "docs/kinds/f-gfc.md",
)
