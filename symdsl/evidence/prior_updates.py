"""Updates of the prior precisions that climb the evidence, in log precision."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Protocol

import attrs

from symdsl.evidence.laplace import Laplace

LOG_PRECISION_BOUNDS = (-12.0, 18.0)
"""Unbounded, the log precision of a dying path drifts past the exponent range of float32."""

LARGEST_PRECISION = math.exp(LOG_PRECISION_BOUNDS[1])
SMALLEST_PRECISION = math.exp(LOG_PRECISION_BOUNDS[0])

PriorState = Mapping[str, tuple[float, float, int]]
"""Per parameter tensor: first moment, second moment, number of steps (Adam's; empty for MacKay's)."""


def bounded(precision: float) -> float:
    """`precision` within the bounds."""
    return min(max(precision, SMALLEST_PRECISION), LARGEST_PRECISION)


class PriorUpdate(Protocol):
    """One kind of update."""

    def step(
        self, laplace: Laplace, numbers: Mapping[str, float], learned: frozenset[str], state: PriorState, rate: float
    ) -> tuple[dict[str, float], PriorState]:
        """New precisions for all tensors, those in `learned` moved, and the new state.

        Args:
            laplace: the evidence at the present precisions.
            numbers: effective number of each tensor that its precision goes by.
            learned: keys that may move.
            state: what the last step returned; empty at first.
            rate: the schedule's factor on the step, in [0, 1].
        """
        ...


@attrs.frozen
class MackayUpdate:
    """MacKay's fixed point delta = gamma / ||theta||^2 (MacKay 1992), damped in log delta.

    Attributes:
        damping: share of the old log precision that is kept, in [0, 1).
    """

    damping: float = 0.0

    def step(
        self, laplace: Laplace, numbers: Mapping[str, float], learned: frozenset[str], state: PriorState, rate: float
    ) -> tuple[dict[str, float], PriorState]:
        """See `PriorUpdate.step`; the log precision goes `rate` times the undamped share of the way."""
        share = (1 - self.damping) * rate
        moved = {key: self._towards_fixed_point(laplace, key, numbers[key], share) for key in learned & numbers.keys()}
        return dict(laplace.precisions) | moved, state

    def _towards_fixed_point(self, laplace: Laplace, key: str, effective: float, share: float) -> float:
        norm = laplace.squared_norms[key]
        target = bounded(effective / norm) if norm > effective / LARGEST_PRECISION else LARGEST_PRECISION
        old = laplace.precisions[key]
        return bounded(math.exp((1 - share) * math.log(old) + share * math.log(target)))


@attrs.frozen
class AdamUpdate:
    """Gradient ascent on log delta by Adam (Kingma & Ba 2015), as the papers do.

    Attributes:
        lr: step size in log delta.
        betas: decay of the two moments.
        epsilon: keeps the division finite.
    """

    lr: float = 0.1
    betas: tuple[float, float] = (0.9, 0.999)
    epsilon: float = 1e-8

    def step(
        self, laplace: Laplace, numbers: Mapping[str, float], learned: frozenset[str], state: PriorState, rate: float
    ) -> tuple[dict[str, float], PriorState]:
        """See `PriorUpdate.step`."""
        precisions, moments = dict(laplace.precisions), dict(state)
        for key, slope in laplace.gradient(numbers).items():
            if key in learned:
                moments[key] = self._moments(state.get(key, (0.0, 0.0, 0)), slope)
                precisions[key] = bounded(precisions[key] * math.exp(self.lr * rate * self._direction(moments[key])))
        return precisions, moments

    def _moments(self, old: tuple[float, float, int], slope: float) -> tuple[float, float, int]:
        first, second, steps = old
        beta1, beta2 = self.betas
        return beta1 * first + (1 - beta1) * slope, beta2 * second + (1 - beta2) * slope**2, steps + 1

    def _direction(self, moments: tuple[float, float, int]) -> float:
        first, second, steps = moments
        beta1, beta2 = self.betas
        return first / (1 - beta1**steps) / (math.sqrt(second / (1 - beta2**steps)) + self.epsilon)
