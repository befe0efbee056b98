"""Symmetry: which candidates break what another of their layer keeps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from symdsl.groups import MOVEMENTS, generated
from symdsl.kinds import TRANSLATIONS

BREAKING_INIT_SCALE = 0.1
"""Initial scale of a candidate that breaks a symmetry: near the limit in which it does not."""


def default_init_scale(own: Iterable[str], others: Iterable[Sequence[str]]) -> float:
    """The initial scale of a candidate whose spec gives none: small where another one keeps all it keeps, and more.

    Args:
        own: what it preserves.
        others: what each candidate of the layer preserves.
    """
    return BREAKING_INIT_SCALE if breaks(own, others) else 1.0


def breaks(own: Iterable[str], others: Iterable[Sequence[str]]) -> bool:
    """Whether another candidate keeps all that one keeps, and more."""
    return bool(_wider(followed(own), others))


def elements_broken(own: Iterable[str], others: Iterable[Sequence[str]], positions: int) -> int:
    """How many elements of a symmetry that another candidate keeps go into each one that is kept: 1 if none is broken.

    CONV beside p4's GCONV breaks 4, F-FC beside CONV as many as there are positions, beside GCONV four times as many.
    An output of the candidate sums over that many times as many weights, but for the size of a kernel.

    Args:
        own: what the candidate preserves.
        others: what each candidate of the layer preserves.
        positions: of the map that is read, which are its translations.
    """
    kept = followed(own)
    order = _order(kept, positions)
    return max((_order(wider, positions) for wider in _wider(kept, others)), default=order) // order


def followed(preserved: Iterable[str]) -> frozenset[object]:
    """All that is followed where some movements are: translations, and the group elements composed of the others."""
    words = frozenset(preserved)
    moved = words.intersection(MOVEMENTS)
    return (words - moved) | generated(moved)


def _wider(kept: frozenset[object], others: Iterable[Sequence[str]]) -> list[frozenset[object]]:
    """What those candidates follow that follow all that is kept, and more."""
    return [wider for wider in map(followed, others) if kept < wider]


def _order(symmetry: frozenset[object], positions: int) -> int:
    """The number of elements of a symmetry, whose translations go round the map."""
    return (len(symmetry) - 1) * positions if TRANSLATIONS in symmetry else len(symmetry)
