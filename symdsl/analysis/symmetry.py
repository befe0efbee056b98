"""Symmetry: which candidates break what another of their layer keeps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

BREAKING_INIT_SCALE = 0.1
"""Initial scale of a candidate that breaks a symmetry: near the limit in which it does not."""


def default_init_scale(own: Iterable[str], others: Iterable[Sequence[str]]) -> float:
    """The initial scale of a candidate whose spec gives none.

    Args:
        own: what it preserves.
        others: what each candidate of the layer preserves.
    """
    kept = {movement for preserved in others for movement in preserved}
    return BREAKING_INIT_SCALE if kept - set(own) else 1.0
