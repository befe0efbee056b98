"""The signature of GCONV: its four factors, and the groups within that of the map which it may be restricted to."""

from __future__ import annotations

import math
from collections.abc import Callable

import attrs

from symdsl.catalog.shapes import FactorSize
from symdsl.catalog.signatures import Choice, Parameter
from symdsl.diagnostics import listing
from symdsl.groups import GROUPS, LIFTED, TRIVIAL, TWO_STEPS_FROM, Group
from symdsl.kinds.convolution.signature import conv_refusal, taps_of
from symdsl.kinds.record import TRANSLATIONS, Arguments, Refusal, Site, Tensor


@attrs.frozen
class _Sizes:
    """A group convolution as its group sees it.

    Attributes:
        inputs: C, channels read; on a map lifted to a larger group those of its cosets.
        outputs: C', channels written.
        order: |G| of the group that acts.
        taps: S^2.
    """

    inputs: int
    outputs: int
    order: int
    taps: int


def _sizes(site: Site, arguments: Arguments) -> _Sizes:
    group = acting(site, arguments)
    index = site.reads.order // group.order
    return _Sizes(
        site.reads.channels * index, site.writes.channels * index, group.order, math.prod(taps_of(site, arguments))
    )


def acting(site: Site, arguments: Arguments) -> Group:
    """Return the group that acts: the argument `group`, or that of the map."""
    return GROUPS[str(arguments.get("group", site.reads.group))]


def _full(sizes: _Sizes, kernel: tuple[int, int]) -> tuple[Tensor, ...]:
    shape = (sizes.outputs, sizes.inputs, sizes.order, *kernel)
    return (_plain("w", shape),)


def _separable(sizes: _Sizes, kernel: tuple[int, int]) -> tuple[Tensor, ...]:
    return (_plain("w1", (sizes.outputs, sizes.inputs, sizes.order)), _slotted("w2", (sizes.inputs, *kernel)))


def _depthwise(sizes: _Sizes, kernel: tuple[int, int]) -> tuple[Tensor, ...]:
    group, space = (sizes.inputs, sizes.order), (sizes.inputs, *kernel)
    return (_plain("w0", (sizes.outputs, sizes.inputs)), _slotted("w1", group), _slotted("w2", space))


def _pointwise(sizes: _Sizes, kernel: tuple[int, int]) -> tuple[Tensor, ...]:
    return (_plain("w", (sizes.outputs, sizes.inputs, *kernel)),)


def _plain(name: str, shape: tuple[int, ...]) -> Tensor:
    """Return the record of a matrix with one row per entry of its first dimension, which every use multiplies whole."""
    return Tensor(name, shape, FactorSize(shape[0], 1), FactorSize(math.prod(shape[1:]), 1))


def _slotted(name: str, shape: tuple[int, ...]) -> Tensor:
    """Return the record of a row with a slot per channel: a use reads one slot and gives one number."""
    return Tensor(name, shape, FactorSize(1, 1), FactorSize(math.prod(shape[1:]), shape[0]))


def _full_cost(sizes: _Sizes) -> int:
    return sizes.outputs * sizes.order * sizes.inputs * sizes.order * sizes.taps


def _separable_cost(sizes: _Sizes) -> int:
    if sizes.outputs < TWO_STEPS_FROM:
        return _full_cost(sizes)
    return sizes.inputs * sizes.order**2 * (sizes.taps + sizes.outputs)


def _depthwise_cost(sizes: _Sizes) -> int:
    return sizes.inputs * sizes.order * (sizes.order + sizes.taps + sizes.outputs)


def _pointwise_cost(sizes: _Sizes) -> int:
    return sizes.outputs * sizes.order * sizes.inputs * sizes.taps


@attrs.frozen
class _Factor:
    """One way to factor the filter: its tensors, and multiply-adds per position."""

    tensors: Callable[[_Sizes, tuple[int, int]], tuple[Tensor, ...]]
    cost: Callable[[_Sizes], int]


_FACTORS = {
    "full": _Factor(_full, _full_cost),
    "separable": _Factor(_separable, _separable_cost),
    "depthwise": _Factor(_depthwise, _depthwise_cost),
    "pointwise": _Factor(_pointwise, _pointwise_cost),
}


def group_tensors(site: Site, arguments: Arguments) -> tuple[Tensor, ...]:
    """Return the tensors whose product is the filter."""
    return _FACTORS[str(arguments["factor"])].tensors(_sizes(site, arguments), taps_of(site, arguments))


def group_cost(site: Site, arguments: Arguments) -> int:
    """Return the multiply-adds of a group convolution; the stride is taken last."""
    return _FACTORS[str(arguments["factor"])].cost(_sizes(site, arguments)) * site.reads.positions


def group_preserves(site: Site, arguments: Arguments) -> tuple[str, ...]:
    """Return translations, and the elements of the acting group that map the grid to itself."""
    return (TRANSLATIONS, *acting(site, arguments).on(site.reads.height, site.reads.width).movements)


def lift_refusal(site: Site, arguments: Arguments) -> Refusal | None:
    """Return why a kind cannot act on a group at a site: a vector, a plain map, or one lifted to another group."""
    if site.reads.flat:
        return conv_refusal(site, arguments)
    lifted, asked = GROUPS[site.reads.group], acting(site, arguments)
    if lifted.name == TRIVIAL:
        message = "needs a lifted feature map, but `{layer}` reads a plain image"
        group = str(arguments.get("group", "mirror" if site.reads.is_line else "p4"))
        help = f"add `lift {group}` {{place}}, or drop this candidate"
        return Refusal("E203", message, "acts on a group", help, lift=group)
    if not lifted.contains(asked):
        message = f"acts on `{asked.name}`, but `{{layer}}` reads a map lifted to `{lifted.name}`"
        smaller = [group.name for group in lifted.subgroups() if group.name not in (lifted.name, TRIVIAL)]
        choice = f", or choose a group within `{lifted.name}`: {listing(smaller)}" if smaller else ""
        help = f"leave `group` out{choice}"
        return Refusal("E203", message, "a group that the map does not carry", help, cause="lift")
    return None


def group_refusal(site: Site, arguments: Arguments) -> Refusal | None:
    """Return why a group convolution cannot be used at a site, or nothing."""
    return _line_refusal(site, arguments) or lift_refusal(site, arguments) or conv_refusal(site, arguments)


def _line_refusal(site: Site, arguments: Arguments) -> Refusal | None:
    """Why the kernels of a group cannot be moved on a line, which has no quarter turns."""
    group = acting(site, arguments)
    if not (site.reads.is_line and group.needs_square):
        return None
    message = f"acts on `{group.name}`, whose quarter turns the line that `{{layer}}` reads does not have"
    return Refusal(
        "E203", message, "would turn a row into a column", "use `mirror`, the reflection of a line", cause="lift"
    )


FACTOR = Parameter("factor", Choice(tuple(_FACTORS)), "full", "how the filter depends on the group")
GROUP = Parameter("group", Choice(LIFTED), None, "a subgroup of the map's group; left out: the map's group")
