"""The dense kinds: FC and F-FC."""

from __future__ import annotations

from symdsl.analysis.facts import FactorSize
from symdsl.analysis.kinds.record import TRANSLATIONS, Arguments, Kind, Refusal, Site, Tensor
from symdsl.catalog.signatures import Signature


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


FC = Kind(Signature("FC"), _fc_tensors, trivially, _fc_cost, accepts, "docs/kinds/fc.md")
FACTORED = Kind(Signature("F-FC"), _factored_tensors, trivially, _factored_cost, accepts, "docs/kinds/f-fc.md")
