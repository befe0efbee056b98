"""MacKay's update of the prior precisions, in log precision."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping

from symdsl.evidence.laplace import Laplace

LOG_PRECISION_BOUNDS = (-12.0, 18.0)
"""Unbounded, the log precision of a dying path drifts past the exponent range of float32."""

LARGEST_PRECISION = math.exp(LOG_PRECISION_BOUNDS[1])
SMALLEST_PRECISION = math.exp(LOG_PRECISION_BOUNDS[0])


def mackay_step(laplace: Laplace, learned: frozenset[str], share: float) -> dict[str, float]:
    """Return all precisions, the learned ones moved towards MacKay's fixed point gamma_k / ||theta_k||^2 (MacKay 1992).

    Args:
        laplace: the evidence at the present precisions.
        learned: keys of the tensors whose precision may move.
        share: of the way that a log precision goes, in [0, 1].
    """
    effective = laplace.effective_parameters()
    moved = {
        key: _between(laplace.precisions[key], _fixed_point(effective[key], laplace.squared_norms[key]), share)
        for key in learned & effective.keys()
    }
    return {**laplace.precisions, **moved}


def lifted(precisions: Mapping[str, float], least: float) -> dict[str, float]:
    """Return the precisions times the smallest factor of at least 1 that brings their median to `least`.

    Where a classifier fits every training example, the curvature of its likelihood vanishes and with it the effective
    numbers: MacKay's fixed point lets all precisions fall together, and the network becomes overconfident. What the
    evidence still tells there is how large they are beside each other.

    Args:
        precisions: by key.
        least: the smallest median.
    """
    if not precisions:
        return {}
    factor = max(1.0, least / statistics.median(precisions.values()))
    return {key: min(factor * precision, LARGEST_PRECISION) for key, precision in precisions.items()}


def _fixed_point(effective: float, squared_norm: float) -> float:
    """Return gamma / ||theta||^2 within the bounds; the upper one where there are no weights."""
    if squared_norm <= effective / LARGEST_PRECISION:
        return LARGEST_PRECISION
    return max(effective / squared_norm, SMALLEST_PRECISION)


def _between(old: float, new: float, share: float) -> float:
    return math.exp((1 - share) * math.log(old) + share * math.log(new))
