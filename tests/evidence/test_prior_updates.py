"""MacKay's step moves learned precisions a share of the way, and not below the smallest one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Self

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from symdsl.evidence import GGN, Categorical, Laplace, LogDet, mackay_step
from symdsl.evidence.prior_updates import LARGEST_PRECISION, SMALLEST_PRECISION

POSITIVE = st.floats(1e-4, 1e4)


@attrs.frozen(eq=False)
class Counted(GGN):
    """A curvature whose effective numbers are given."""

    numbers: Mapping[str, float]

    @property
    def sizes(self) -> dict[str, int]:
        return dict.fromkeys(self.numbers, 1)

    def at(self, precisions: Mapping[str, float], noise: float = 1.0) -> LogDet:
        return LogDet(0.0, dict(self.numbers))

    def scaled(self, factor: float) -> Self:
        return self


def laplace(precision: float, effective: float, squared_norm: float) -> Laplace:
    """Of two tensors that are alike."""
    keys = ("learned", "fixed")
    norms, numbers = dict.fromkeys(keys, squared_norm), dict.fromkeys(keys, effective)
    return Laplace(dict.fromkeys(keys, precision), 1.0, Counted(numbers), norms, Categorical(), 0.0, 1, 2)


@given(POSITIVE, POSITIVE, POSITIVE, st.floats(0, 1))
def test_a_learned_precision_goes_a_share_of_the_way_in_its_logarithm(precision, effective, squared_norm, share):
    found = mackay_step(laplace(precision, effective, squared_norm), frozenset({"learned"}), share)
    target = min(max(effective / squared_norm, SMALLEST_PRECISION), LARGEST_PRECISION)
    assert math.log(found["learned"] / precision) == pytest.approx(share * math.log(target / precision), abs=1e-9)
    assert found["fixed"] == precision


@given(POSITIVE, POSITIVE, POSITIVE, st.floats(0, 1), st.floats(1e-2, 1e2))
def test_a_learned_precision_stays_at_the_smallest_one_or_above(precision, effective, squared_norm, share, least):
    before = laplace(precision, effective, squared_norm)
    free = mackay_step(before, frozenset({"learned"}), share)
    found = mackay_step(before, frozenset({"learned"}), share, {"learned": least, "fixed": 2 * precision})
    assert found == {"learned": max(free["learned"], least), "fixed": precision}


@given(POSITIVE, POSITIVE, POSITIVE, st.floats(0.1, 10))
def test_no_more_effective_parameters_count_than_may(precision, effective, squared_norm, ratio):
    all_tensors, most = 2 * effective, ratio * 2 * effective
    found = mackay_step(laplace(precision, effective, squared_norm), frozenset({"learned"}), 0.5, most=most)
    counted = min(most, all_tensors) / 2
    expected = mackay_step(laplace(precision, counted, squared_norm), frozenset({"learned"}), 0.5)
    assert found == pytest.approx(expected)


def test_without_weights_the_precision_is_the_largest():
    assert mackay_step(laplace(1.0, 0.0, 0.0), frozenset({"learned"}), 1.0)["learned"] == LARGEST_PRECISION


def test_where_nothing_is_effective_and_nothing_gained_the_precision_goes_down():
    """A confident network has no curvature, and a wrong one has lost nats."""
    found = mackay_step(laplace(1.0, 0.0, 4.0), frozenset({"learned"}), 1.0, most=-30.0)
    assert found["learned"] == SMALLEST_PRECISION
