"""The signatures of S-FC and S-CONV, and of S-GFC and S-GCONV on a lifted map."""

from __future__ import annotations

import math
from collections.abc import Callable

from symdsl.catalog.shapes import FactorSize
from symdsl.catalog.signatures import Choice, Parameter, Whole
from symdsl.kinds.convolution.signature import taps_of
from symdsl.kinds.dense.signature import Sides
from symdsl.kinds.record import Arguments, Site, Tensor

LENGTHSCALE = "lengthscale"
LEARNED = "learned"

ANCHORS = Parameter("anchors", Choice(("fixed", LEARNED)), "fixed", "whether the anchors may move")
ON = Parameter("on", Choice(("values", LENGTHSCALE)), "values", "what the learned prior is on")
SPARSITY = Parameter("sparsity", Whole(1, 10**6), 2, "sites for each anchor")
BASIS = (ANCHORS, ON, SPARSITY)


def anchor_count(arguments: Arguments, sites: int) -> int:
    """Return P, one anchor for `sparsity` sites, rounded up: by default half of them."""
    sparsity = arguments["sparsity"]
    assert isinstance(sparsity, int), f"`sparsity` (={sparsity!r}) was checked to be a whole number"
    return -(-sites // sparsity)


def _values(
    name: str, shape: tuple[int, int, int], left: FactorSize, right: FactorSize, arguments: Arguments
) -> Tensor:
    return Tensor(name, shape, left, right, unit_prior=arguments["on"] == LENGTHSCALE)


def _basis(side: str, count: int, arguments: Arguments) -> tuple[Tensor, ...]:
    """Return the learned parameters of one side's basis functions; their curvature is one dense block."""
    shapes: dict[str, tuple[int, ...]] = {}
    if arguments["on"] == LENGTHSCALE:
        shapes[f"omega{side}"] = (count,)
    if arguments["anchors"] == LEARNED:
        shapes[f"anchors{side}"] = (count, 2)
    return tuple(
        Tensor(name, shape, FactorSize(math.prod(shape), 1), FactorSize(1, 1)) for name, shape in shapes.items()
    )


# ---------------------------------------------------------------- fully connected


def dense_tensors(sides: Sides, site: Site, arguments: Arguments) -> tuple[Tensor, ...]:
    """Return the values `u1` and `u2`, and the learned parameters of the basis functions."""
    (channels, read), (out_channels, written) = sides(site.reads), sides(site.writes)
    outer, inner = anchor_count(arguments, written), anchor_count(arguments, read)
    pairs = (out_channels, channels)
    u1 = _values("u1", (*pairs, outer), FactorSize(outer, 1), FactorSize(channels, out_channels), arguments)
    u2 = _values("u2", (*pairs, inner), FactorSize(out_channels, 1), FactorSize(inner, channels), arguments)
    return (u1, u2, *_basis("1", outer, arguments), *_basis("2", inner, arguments))


def dense_cost(sides: Sides, site: Site, arguments: Arguments) -> int:
    """Return the multiply-adds of one example whose map is projected on the basis functions."""
    (channels, read), (out_channels, written) = sides(site.reads), sides(site.writes)
    outer, inner = anchor_count(arguments, written), anchor_count(arguments, read)
    return channels * read * inner + channels * out_channels * (inner + outer) + out_channels * outer * written


# ---------------------------------------------------------------- convolutions

Elements = Callable[[Site], int]


def plain_elements(site: Site) -> int:
    """Return 1, the number of group elements of a plain map."""
    return 1


def group_elements(site: Site) -> int:
    """Return the number of group elements of the map."""
    return site.reads.order


def conv_tensors(elements: Elements, site: Site, arguments: Arguments) -> tuple[Tensor, ...]:
    """Return the values `u`, and the learned parameters of the basis functions."""
    order = elements(site)
    count = anchor_count(arguments, order * math.prod(taps_of(site, arguments)))
    planes, out_planes = site.reads.planes, site.writes.planes
    shape = (out_planes // order, planes // order, count)
    u = _values("u", shape, FactorSize(shape[0], 1), FactorSize(shape[1] * count, 1), arguments)
    return (u, *_basis("", count, arguments))


def conv_cost(elements: Elements, site: Site, arguments: Arguments) -> int:
    """Return the multiply-adds of making the filters, then convolving at every position that is read."""
    order, taps = elements(site), math.prod(taps_of(site, arguments))
    made = site.writes.planes * site.reads.planes // order * taps * anchor_count(arguments, order * taps)
    return made + site.writes.planes * site.reads.size * taps
