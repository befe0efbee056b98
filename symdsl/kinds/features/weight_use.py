"""How RFF uses its weights: none of them is learned, so that none has a curvature."""

from __future__ import annotations

from symdsl.evidence.weight_use import WeightUse
from symdsl.nn import Path


def none(path: Path) -> dict[str, WeightUse]:
    """Return an empty table: no tensor of the path is learned."""
    return {}
