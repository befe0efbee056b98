"""DEPTHWISE(k): what a spec may say of it, its tensors, its symmetry and its cost. Imports no torch."""

from symdsl.catalog.shapes import FactorSize
from symdsl.catalog.signatures import Signature
from symdsl.kinds import CONV, TRANSLATIONS, Arguments, K, Kind, Refusal, Site, Tensor


def _tensors(site: Site, arguments: Arguments) -> tuple[Tensor, ...]:
    planes, (rows, columns) = site.reads.planes, site.reads.sides(arguments["k"])
    return (Tensor("w", (planes, rows, columns), FactorSize(1, 1), FactorSize(rows * columns, planes)),)


def _preserves(site: Site, arguments: Arguments) -> tuple[str, ...]:
    return (TRANSLATIONS,)


def _multiply_adds(site: Site, arguments: Arguments) -> int:
    rows, columns = site.reads.sides(arguments["k"])
    return site.reads.size * rows * columns


def _refusal(site: Site, arguments: Arguments) -> Refusal | None:
    if site.reads.planes != site.writes.planes:
        planes = f"{site.reads.planes} to {site.writes.planes}"
        message = f"keeps channels apart, but `{{layer}}` goes from {planes} planes"
        return Refusal("E202", message, "needs as many planes as it reads", "drop this candidate, or keep the channels")
    return CONV.refusal(site, arguments)


DEPTHWISE = Kind(
    signature=Signature("DEPTHWISE", (K,)),
    tensors=_tensors,
    preserves=_preserves,
    multiply_adds=_multiply_adds,
    refusal=_refusal,
    module="symdsl_depthwise.path:build",
    weight_use="symdsl_depthwise.path:weight_use",
    page="https://example.org/symdsl-depthwise",
    colour="#b0d0c0",
)
