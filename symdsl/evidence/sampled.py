"""The determinant of all rows from some of them: what a projection of all rows cannot tell. Knows no layer."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import pairwise

import attrs

from symdsl.evidence.joint import Joined, Joint, Projected, Together

_STEADY = 1 - 1e-5
"""The factor between exponents above which they are taken not to shrink; nearer to one, its slopes are round-off."""


@attrs.frozen(eq=False)
class Sampled(Together):
    """H of R rows as n of them, drawn at random, let one expect it from their halves and quarters.

    The volume `V = log det(I + D^-1/2 H D^-1/2)` of a group of rows is at most the sum of those of its parts (Fischer's
    inequality), so that `V R / n` of a group of n bounds that of all R, in the mean over groups: the bound by which
    Immer et al. (2023, "Stochastic marginal likelihood gradients using neural tangent kernels") learn from some of the
    data. How far it is above shows within the group. With V_h and V_q the means over its halves and its quarters,

        a = log2(V / V_h),      b = log2(V_h / V_q),      c = min(a / b, 1)

    doubling the rows multiplied V_q by 2^b and V_h by 2^a, and each doubling up to R is taken to do so with an exponent
    c times the one before:

        V_R = V 2^(a c (1 - c^d) / (1 - c)),      d = log2(R / n)

    The effective numbers are its slopes, kept within what a tensor can have. Drawn rows are noisy where a few of all
    rows make up most of H, as in a network that has fitted nearly all examples; there a projection of all is nearer.

    Attributes:
        groups: the n rows, their halves and their quarters.
        rows: R.
    """

    groups: tuple[tuple[Joint, ...], ...]
    rows: int

    @classmethod
    def of(cls, parts: Mapping[str, Projected], rows: int) -> Sampled:
        """From the inner products of the rows drawn.

        Args:
            parts: of the rows drawn, in every tensor.
            rows: how many there are of which they are drawn.

        Raises:
            NumericalError: some are not finite, with the tensor.
        """
        drawn = len(next(iter(parts.values())).rows)
        whole = Joint.of(parts, drawn)
        bounds = [[drawn * number // groups for number in range(groups + 1)] for groups in (2, 4)]
        return cls(((whole,), *(tuple(whole.of_rows(*ends) for ends in pairwise(some)) for some in bounds)), rows)

    @property
    def whole(self) -> Joint:
        """Of the n rows."""
        return self.groups[0][0]

    @property
    def sizes(self) -> dict[str, int]:
        """Parameters of every tensor."""
        return self.whole.sizes

    def at(self, precisions: Mapping[str, float]) -> Joined:
        """Volume and effective numbers of all R rows."""
        found = [_mean([joint.at(precisions) for joint in group]) for group in self.groups]
        if not found[0].volume:
            return found[0]
        volume, slopes = _grown([one.volume for one in found], math.log2(self.rows / self.whole.rows))
        effective = {}
        for key, size in self.sizes.items():
            number = math.fsum(slope * one.effective[key] for slope, one in zip(slopes, found, strict=True))
            effective[key] = min(max(number, 0.0), float(size))
        return Joined(volume, effective)


def _mean(found: Sequence[Joined]) -> Joined:
    effective = {key: math.fsum(one.effective[key] for one in found) / len(found) for key in found[0].effective}
    return Joined(math.fsum(one.volume for one in found) / len(found), effective)


def _grown(volumes: Sequence[float], doublings: float) -> tuple[float, tuple[float, float, float]]:
    """The volume after so many doublings, and its slopes in those of all rows, of halves and of quarters."""
    whole, half, quarter = map(math.log2, volumes)
    last, before = whole - half, half - quarter
    shrinking = max(last / before, 0.0) if before > 0 else 1.0
    if shrinking > _STEADY:
        doubled, change = doublings, 0.0
    else:
        power = shrinking**doublings
        doubled = shrinking * (1 - power) / (1 - shrinking)
        change = (1 - (doublings + 1) * power + doublings * shrinking * power) / (1 - shrinking) ** 2
    volume = float(2 ** (whole + last * doubled))
    of_last, of_quarter = doubled + shrinking * change, shrinking**2 * change
    exponents = (1 + of_last, -of_last - of_quarter, of_quarter)
    first, second, third = (volume * exponent / one for exponent, one in zip(exponents, volumes, strict=True))
    return volume, (first, second, third)


@attrs.frozen(eq=False, slots=False)
class Told(Together):
    """H by all rows mixed where these tell its effective number, and else by those drawn.

    Attributes:
        mixed: of all rows, projected.
        drawn: some of them as they are but for their columns, in every tensor.
    """

    mixed: Joint
    drawn: Mapping[str, Projected]

    @cached_property
    def sampled(self) -> Sampled:
        """What the rows drawn let one expect, formed when it is first asked for."""
        return Sampled.of(self.drawn, self.mixed.rows)

    @property
    def sizes(self) -> dict[str, int]:
        """Parameters of every tensor."""
        return self.mixed.sizes

    def at(self, precisions: Mapping[str, float]) -> Joined:
        """Volume and effective numbers, from what can tell them."""
        found = self.mixed.at(precisions)
        return found if self.mixed.tells(found) else self.sampled.at(precisions)
