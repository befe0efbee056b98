"""Kernels larger than the map they are moved over."""

from __future__ import annotations

import numpy as np
import pytest

from analysis.specs import framed
from symdsl.diagnostics import Diagnostic
from symdsl.kinds import KINDS, K
from symdsl.spec import parse

WITH_KERNEL = sorted(name for name, kind in KINDS.built_in.items() if K in kind.signature.parameters)


def warned(candidate: str, size: int, lift: str = "") -> tuple[Diagnostic, ...]:
    end = "project max\nflatten" if lift else "flatten"
    lines = f"data digits({size})\ninput image(1, {size}, {size})\n{lift}\nlayer l1: {candidate} -> 2\n{end}\n"
    return parse(framed(f"{lines}layer h: FC -> classes")).warnings


def told_apart(kernel: int, side: int) -> int:
    """Positions of a torus that the entries of a kernel fall on."""
    offsets = np.arange(kernel) - kernel // 2
    return len(set((offsets % side).tolist())) ** 2


@pytest.mark.parametrize(("kernel", "size", "largest"), [(11, 8, 7), (9, 8, 7), (9, 7, 7), (5, 4, 3), (5, 3, 3)])
def test_a_kernel_larger_than_the_map_is_warned_of(kernel: int, size: int, largest: int) -> None:
    (only,) = warned(f"CONV({kernel})", size)
    assert only.code == "W109"
    assert f"only {told_apart(kernel, size)} of its {kernel**2} weights can be told apart" in only.message
    assert only.help == f"the largest kernel that makes sense here is {largest}"
    assert warned(f"CONV({largest})", size) == ()
    assert told_apart(largest, size) == largest**2


def test_the_least_kernel_that_reaches_a_neighbour_is_left_alone() -> None:
    assert warned("CONV(3)", 2) == ()


@pytest.mark.parametrize("kind", WITH_KERNEL)
def test_every_kind_with_a_kernel_is_looked_at(kind: str) -> None:
    assert [one.code for one in warned(f"{kind}(11)", 8, "lift p4")] == ["W109"]
    assert warned(f"{kind}(7)", 8, "lift p4") == ()
