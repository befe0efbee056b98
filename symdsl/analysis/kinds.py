"""The table of kinds: what each is called with, which tensors it has, what it preserves and what it costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs

from symdsl.analysis.facts import FactorSize, Shape, Value
from symdsl.catalog.signatures import Choice, Parameter, Real, Signature, Whole
from symdsl.groups import GROUPS, TRIVIAL

TRANSLATIONS = "translations"

Arguments = Mapping[str, Value]


@attrs.frozen
class Site:
    """Where a candidate stands: the maps it reads and writes."""

    reads: Shape
    writes: Shape

    @property
    def single(self) -> bool:
        """Whether both maps have one position only."""
        return self.reads.positions == self.writes.positions == 1


@attrs.frozen
class Tensor:
    """A parameter tensor and the sizes of its curvature factors, as in `facts.ParameterTensor`."""

    name: str
    shape: tuple[int, ...]
    left: FactorSize
    right: FactorSize


@attrs.frozen
class Refusal:
    """Why a kind cannot stand at a site: a code, `message` (said after the kind's name), and what to do."""

    code: str
    message: str
    label: str
    help: str
    lift: bool = False


@attrs.frozen
class Kind:
    """What the analysis knows of a kind.

    Attributes:
        signature: name and arguments, `init_scale` aside.
        tensors: its parameter tensors at a site.
        preserves: what it is equivariant to in its strict limit.
        multiply_adds: multiply-adds of one example's forward pass.
        refusal: why it cannot stand at a site, if it cannot.
        page: where it is described.
    """

    signature: Signature
    tensors: Callable[[Site, Arguments], tuple[Tensor, ...]]
    preserves: Callable[[Site], tuple[str, ...]]
    multiply_adds: Callable[[Site, Arguments], int]
    refusal: Callable[[Site, Arguments], Refusal | None]
    page: str

    @property
    def name(self) -> str:
        """As written in a spec."""
        return self.signature.name


def kernel_limit(shape: Shape) -> int:
    """The largest kernel a map can be convolved with: it may wrap round once, so 3 on a side of 2 but not of 1."""
    return 2 * min(shape.height, shape.width) - 1


def _kernel(arguments: Arguments) -> int:
    kernel = arguments["k"]
    assert isinstance(kernel, int), f"`k` (={kernel!r}) was checked to be a whole number"
    return kernel


def _accepts(site: Site, arguments: Arguments) -> Refusal | None:
    return None


def _trivially(site: Site) -> tuple[str, ...]:
    """A dense map follows translations only where there is nowhere to go."""
    return (TRANSLATIONS,) if site.single and not site.reads.flat else ()


def _fc_tensors(site: Site, arguments: Arguments) -> tuple[Tensor, ...]:
    reads, writes = site.reads, site.writes
    shape = (writes.planes, writes.positions, reads.planes, reads.positions)
    return (Tensor("w", shape, FactorSize(writes.size, 1), FactorSize(reads.size, 1)),)


def _fc_cost(site: Site, arguments: Arguments) -> int:
    return site.reads.size * site.writes.size


def _factored_tensors(site: Site, arguments: Arguments) -> tuple[Tensor, ...]:
    reads, writes = site.reads, site.writes
    plain = (writes.planes, reads.planes)
    outer = Tensor(
        "w1",
        (*plain, writes.positions),
        FactorSize(writes.positions, 1),
        FactorSize(reads.planes, writes.planes),
    )
    inner = Tensor(
        "w2",
        (*plain, reads.positions),
        FactorSize(writes.planes, 1),
        FactorSize(reads.positions, reads.planes),
    )
    return (outer, inner)


def _factored_cost(site: Site, arguments: Arguments) -> int:
    return site.reads.planes * site.writes.planes * (site.reads.positions + site.writes.positions)


def _conv_tensors(site: Site, arguments: Arguments) -> tuple[Tensor, ...]:
    kernel = _kernel(arguments)
    shape = (site.writes.planes, site.reads.planes, kernel, kernel)
    return (Tensor("w", shape, FactorSize(shape[0], 1), FactorSize(shape[1] * kernel**2, 1)),)


def _conv_cost(site: Site, arguments: Arguments) -> int:
    """The stride is taken after the convolution, which therefore visits every position that is read."""
    return site.writes.planes * site.reads.size * _kernel(arguments) ** 2


def _conv_preserves(site: Site) -> tuple[str, ...]:
    return (TRANSLATIONS,)


def _conv_refusal(site: Site, arguments: Arguments) -> Refusal | None:
    if site.reads.flat:
        help = "move the layer before `flatten`, or use `FC`"
        return Refusal("E204", "needs an image, but `{layer}` reads a vector", "has no positions", help)
    kernel, limit = _kernel(arguments), kernel_limit(site.reads)
    if kernel % 2 == 0:
        return Refusal("E202", f"needs an odd kernel, found `k` (={kernel})", "has no centre", f"write {kernel + 1}")
    if kernel > limit:
        size = f"{site.reads.height}x{site.reads.width}"
        message = f"with `k` (={kernel}) is too large for the {size} map that `{{layer}}` reads"
        return Refusal("E202", message, "wraps round more than once", f"the largest kernel for this map is {limit}")
    return None


def _group_tensors(site: Site, arguments: Arguments) -> tuple[Tensor, ...]:
    kernel, reads, writes = _kernel(arguments), site.reads, site.writes
    plain = (writes.channels, reads.channels)
    elements = (reads.order,) if arguments["factor"] == "full" else ()
    columns = reads.channels * kernel**2 * (reads.order if elements else 1)
    shape = (*plain, *elements, kernel, kernel)
    return (Tensor("w", shape, FactorSize(writes.channels, 1), FactorSize(columns, 1)),)


def _group_cost(site: Site, arguments: Arguments) -> int:
    mixed = site.reads.planes if arguments["factor"] == "full" else site.reads.channels
    return site.writes.planes * mixed * site.reads.positions * _kernel(arguments) ** 2


def _group_preserves(site: Site) -> tuple[str, ...]:
    group = GROUPS[site.reads.group]
    broken = group.needs_square and site.reads.height != site.reads.width
    return (TRANSLATIONS,) if broken else (TRANSLATIONS, group.moves)


def _group_refusal(site: Site, arguments: Arguments) -> Refusal | None:
    if site.reads.flat:
        return _conv_refusal(site, arguments)
    group = str(arguments.get("group", "p4"))
    if site.reads.group == TRIVIAL:
        message = "needs a lifted feature map, but `{layer}` reads a plain image"
        help = f"add `lift {group}` after `input`{{line}}, or drop this candidate"
        return Refusal("E203", message, "acts on a group", help, lift=True)
    if arguments.get("group", site.reads.group) != site.reads.group:
        message = f"acts on `{group}`, but `{{layer}}` reads a map lifted to `{site.reads.group}`"
        return Refusal("E203", message, "another group", "leave `group` out")
    return _conv_refusal(site, arguments)


_K = Parameter("k", Whole(1, 10**4))
_LIFTED = tuple(name for name in GROUPS if name != TRIVIAL)

KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind(Signature("FC"), _fc_tensors, _trivially, _fc_cost, _accepts, "docs/kinds/fc.md"),
        Kind(Signature("CONV", (_K,)), _conv_tensors, _conv_preserves, _conv_cost, _conv_refusal, "docs/kinds/conv.md"),
        Kind(Signature("F-FC"), _factored_tensors, _trivially, _factored_cost, _accepts, "docs/kinds/f-fc.md"),
        Kind(
            Signature(
                "GCONV",
                (
                    _K,
                    Parameter("factor", Choice(("full", "pointwise")), "full"),
                    Parameter("group", Choice(_LIFTED), None),
                ),
            ),
            _group_tensors,
            _group_preserves,
            _group_cost,
            _group_refusal,
            "docs/kinds/gconv.md",
        ),
    )
}
"""Every kind by name."""

INIT_SCALE = Parameter("init_scale", Real(0, 1e3, above=True), None)
"""An argument of every kind."""


def call_signature(kind: Kind) -> Signature:
    """All that can be given to a kind in a spec."""
    return Signature(kind.name, (*kind.signature.parameters, INIT_SCALE))


def completed(kind: Kind, arguments: Arguments, site: Site) -> dict[str, Value]:
    """Arguments with those that follow from the site filled in."""
    if kind.signature.parameter("group") is None:
        return dict(arguments)
    return {**arguments, "group": site.reads.group}


def label(kind: Kind, arguments: Arguments) -> str:
    """The kind with the arguments that differ from their defaults, as a spec would write it."""
    parts = [_written(one, arguments[one.name]) for one in kind.signature.parameters if _says(one, arguments)]
    return f"{kind.name}({', '.join(parts)})" if parts else kind.name


def _says(parameter: Parameter, arguments: Arguments) -> bool:
    return parameter.default is not None and arguments.get(parameter.name) != parameter.default


def _written(parameter: Parameter, value: Value) -> str:
    return str(value) if parameter is _K else f"{parameter.name} = {value}"
