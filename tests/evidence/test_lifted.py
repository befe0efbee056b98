"""The precisions of a classifier are lifted together where all of them fall."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symdsl.evidence.prior_updates import LARGEST_PRECISION, lifted

SOME = st.dictionaries(st.text(max_size=3), st.floats(1e-5, 1e6), min_size=1, max_size=8)


@given(SOME, st.floats(1e-2, 1e2))
def test_the_median_is_at_least_what_is_asked_for(precisions: dict[str, float], least: float):
    values = sorted(lifted(precisions, least).values())
    middle = (values[(len(values) - 1) // 2] + values[len(values) // 2]) / 2
    assert middle >= least * (1 - 1e-9)


@given(SOME, st.floats(1e-2, 1e2))
def test_all_are_lifted_by_one_factor(precisions: dict[str, float], least: float):
    found = lifted(precisions, least)
    factors = [found[key] / precisions[key] for key in precisions if found[key] < LARGEST_PRECISION]
    assert all(factor == pytest.approx(max(factors)) for factor in factors)
    assert all(factor >= 1 for factor in factors)


def test_what_is_high_enough_stays_as_it_is():
    assert lifted({"a": 1e-3, "b": 1.0, "c": 5.0}, 1.0) == {"a": 1e-3, "b": 1.0, "c": 5.0}
    assert lifted({}, 1.0) == {}
