"""How much of a symmetry a candidate breaks."""

from __future__ import annotations

import pytest

from symdsl.analysis.symmetry import elements_broken

CONV = ("translations",)
P4 = ("translations", "quarter turns")
P4M = ("translations", "quarter turns", "left-right flips")
M = ("translations", "left-right flips")


@pytest.mark.parametrize(
    ("own", "others", "positions", "broken"),
    [
        ((), [CONV], 64, 64),
        (CONV, [P4], 64, 4),
        ((), [CONV, P4], 64, 256),
        (M, [P4M], 16, 4),
        (P4, [P4M], 16, 2),
        ((), [CONV], 1, 1),
    ],
)
def test_elements_are_those_of_the_widest_symmetry_for_each_one_kept(own, others, positions, broken) -> None:
    assert elements_broken(own, [own, *others], positions) == broken


def test_what_another_candidate_does_not_keep_is_not_broken() -> None:
    assert elements_broken(M, [M, P4], 16) == 1
    assert elements_broken(P4M, [P4M, CONV], 16) == 1
