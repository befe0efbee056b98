"""The signature of CONV, and what every kind with a kernel shares."""

from __future__ import annotations

import math

from symdsl.catalog.shapes import FactorSize, Shape
from symdsl.catalog.signatures import Parameter, Whole
from symdsl.kinds.record import TRANSLATIONS, Arguments, Refusal, Site, Tensor

K = Parameter("k", Whole(1, 10**4), about="side of the kernel; an odd number")


def kernel_limit(shape: Shape) -> int:
    """Return the largest kernel for a map: it may wrap round once, so 3 on a side of 2 but not of 1."""
    return 2 * shape.shortest_side - 1


def taps_of(site: Site, arguments: Arguments) -> tuple[int, int]:
    """Return the rows and columns of the kernel."""
    return site.reads.sides(kernel_of(arguments))


def kernel_of(arguments: Arguments) -> int:
    """Return the argument `k`."""
    kernel = arguments["k"]
    assert isinstance(kernel, int), f"`k` (={kernel!r}) was checked to be a whole number"
    return kernel


def conv_tensors(site: Site, arguments: Arguments) -> tuple[Tensor, ...]:
    """Return the tensor `w` of a convolution."""
    shape = (site.writes.planes, site.reads.planes, *taps_of(site, arguments))
    return (Tensor("w", shape, FactorSize(shape[0], 1), FactorSize(math.prod(shape[1:]), 1)),)


def conv_cost(site: Site, arguments: Arguments) -> int:
    """Return the multiply-adds of a convolution; the stride is taken after it has visited every position."""
    return site.writes.planes * site.reads.size * math.prod(taps_of(site, arguments))


def conv_preserves(site: Site, arguments: Arguments) -> tuple[str, ...]:
    """Return translations, at every site."""
    return (TRANSLATIONS,)


def conv_refusal(site: Site, arguments: Arguments) -> Refusal | None:
    """Return why a kernel cannot be moved over the map that is read, or nothing."""
    if site.reads.flat:
        message, help = "needs an image, but `{layer}` reads a vector", "move the layer before `flatten`, or use `FC`"
        return Refusal("E204", message, "has no positions", help, cause="flatten")
    kernel, limit = kernel_of(arguments), kernel_limit(site.reads)
    if kernel % 2 == 0:
        help = f"write {min(kernel + 1, limit)}"
        return Refusal("E202", f"needs an odd kernel, found `k` (={kernel})", "has no centre", help)
    if kernel > limit:
        size = f"{site.reads.height}x{site.reads.width}"
        message = f"with `k` (={kernel}) is too large for the {size} map that `{{layer}}` reads"
        help = f"the largest kernel for this map is {limit}"
        return Refusal("E202", message, "wraps round more than once", help, cause="size")
    return None
