"""Symmetry: which candidates break what another of their layer keeps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from symdsl.groups import MOVEMENTS, generated

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
    kept = followed(own)
    return any(kept < followed(preserved) for preserved in others)


def followed(preserved: Iterable[str]) -> frozenset[object]:
    """All that is followed where some movements are: translations, and the group elements composed of the others."""
    words = frozenset(preserved)
    moved = words.intersection(MOVEMENTS)
    return (words - moved) | generated(moved)
