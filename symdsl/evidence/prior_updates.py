"""MacKay's update of the prior precisions, in log precision, and the best precisions at fixed parameters."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType

from symdsl.evidence.laplace import Laplace

SMALLEST_PRECISION, LARGEST_PRECISION = math.exp(-12), math.exp(18)
"""Unbounded, the log precision of a dying path drifts past the exponent range of float32."""

_SHARE, _STEPS = 2 / 3, 5
"""The share of the way that each step to the best precisions goes, and the number of steps. By blocks, a gamma_k falls
by at most the factor that delta_k rises by: then each step brings log delta_k to a third of its distance from the best,
or closer."""


def mackay_step(
    laplace: Laplace,
    learned: frozenset[str],
    share: float,
    least: Mapping[str, float] = MappingProxyType({}),
    most: float = math.inf,
) -> dict[str, float]:
    """Return all precisions, the learned ones moved towards MacKay's fixed point gamma_k / ||theta_k||^2 (MacKay 1992).

    Where a classifier fits every training example, the curvature of its likelihood vanishes and with it the effective
    numbers: without a smallest precision all would fall together, and the network would become overconfident.

    Args:
        laplace: the evidence at the present precisions.
        learned: keys of the tensors whose precision may move.
        share: of the way that a log precision goes, in [0, 1].
        least: the smallest precision that a tensor may have afterwards, by key, where it is bounded.
        most: effective parameters that all tensors together may have; if there are more, all numbers are scaled down.
    """
    effective = laplace.effective_parameters()
    total = laplace.log_det.total
    each = most / total if total > max(most, 0.0) else 1.0
    moved = dict(laplace.precisions)
    for key in learned & effective.keys():
        target = fixed_point(each * effective[key], laplace.squared_norms[key])
        log_precision = (1 - share) * math.log(moved[key]) + share * math.log(target)
        moved[key] = max(math.exp(log_precision), least.get(key, SMALLEST_PRECISION))
    return moved


def at_best_precisions(
    laplace: Laplace, learned: frozenset[str], least: Mapping[str, float] = MappingProxyType({})
) -> Laplace:
    """Return the approximation under about those precisions whose evidence is largest, the parameters as they are.

    Args:
        laplace: the evidence at the present precisions.
        learned: keys of the tensors whose precision may move.
        least: see `mackay_step`.
    """
    for _ in range(_STEPS):
        laplace = laplace.with_precisions(mackay_step(laplace, learned, _SHARE, least))
    return laplace


def fixed_point(effective: float, squared_norm: float) -> float:
    """Return gamma / ||theta||^2 within the bounds; the upper one where there are no weights."""
    if squared_norm <= max(effective, 0.0) / LARGEST_PRECISION:
        return LARGEST_PRECISION
    return max(effective / squared_norm, SMALLEST_PRECISION)
