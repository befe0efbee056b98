"""GCONV."""

from __future__ import annotations

from symdsl.analysis.facts import FactorSize
from symdsl.analysis.kinds.convolution import K, conv_refusal, kernel_of
from symdsl.analysis.kinds.record import TRANSLATIONS, Arguments, Kind, Refusal, Site, Tensor
from symdsl.catalog.signatures import Choice, Parameter, Signature
from symdsl.groups import GROUPS, TRIVIAL


def _group_tensors(site: Site, arguments: Arguments) -> tuple[Tensor, ...]:
    kernel, reads, writes = kernel_of(arguments), site.reads, site.writes
    plain = (writes.channels, reads.channels)
    elements = (reads.order,) if arguments["factor"] == "full" else ()
    columns = reads.channels * kernel**2 * (reads.order if elements else 1)
    shape = (*plain, *elements, kernel, kernel)
    return (Tensor("w", shape, FactorSize(writes.channels, 1), FactorSize(columns, 1)),)


def _group_cost(site: Site, arguments: Arguments) -> int:
    mixed = site.reads.planes if arguments["factor"] == "full" else site.reads.channels
    return site.writes.planes * mixed * site.reads.positions * kernel_of(arguments) ** 2


def _group_preserves(site: Site) -> tuple[str, ...]:
    group = GROUPS[site.reads.group]
    broken = group.needs_square and site.reads.height != site.reads.width
    return (TRANSLATIONS,) if broken else (TRANSLATIONS, group.moves)


def _group_refusal(site: Site, arguments: Arguments) -> Refusal | None:
    if site.reads.flat:
        return conv_refusal(site, arguments)
    group = str(arguments.get("group", "p4"))
    if site.reads.group == TRIVIAL:
        message = "needs a lifted feature map, but `{layer}` reads a plain image"
        help = f"add `lift {group}` after `input`{{line}}, or drop this candidate"
        return Refusal("E203", message, "acts on a group", help, lift=True)
    if arguments.get("group", site.reads.group) != site.reads.group:
        message = f"acts on `{group}`, but `{{layer}}` reads a map lifted to `{site.reads.group}`"
        return Refusal("E203", message, "another group", "leave `group` out", cause="lift")
    return conv_refusal(site, arguments)


_LIFTED = tuple(name for name in GROUPS if name != TRIVIAL)
_FACTOR = Parameter("factor", Choice(("full", "pointwise")), "full", "how the filter depends on the group")
_GROUP = Parameter("group", Choice(_LIFTED), None, "the group of the map, which need not be said")

GCONV = Kind(
    Signature("GCONV", (K, _FACTOR, _GROUP)),
    _group_tensors,
    _group_preserves,
    _group_cost,
    _group_refusal,
    "docs/kinds/gconv.md",
)
