"""The ranges of averages, moved up the evidence at fixed weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from symdsl.catalog.networks import LARGEST
from symdsl.nn import Network

WIDTH = 0.15
"""Half of the distance over which the slope of the evidence is taken, as a share of the largest range."""

RATE = 0.12
"""How far a range goes in a step after an estimate of the evidence, as a share of the largest range."""

SETTLED = 0.8
"""Share of a run after which ranges stay, so that the weights are those of the ranges they are reported with."""

_FIRST, _SECOND = 0.8, 0.95
"""Shares of the old moments of the slope that a step keeps (Adam; Kingma & Ba 2015)."""


def most(key: str) -> float:
    """Return the bound of a range, by its key."""
    return LARGEST[key.rpartition(".")[2]]


def slope(net: Network, key: str, width: float, evidence: Callable[[], float]) -> float:
    """Return the derivative of the evidence in a range, by central differences, cut at a bound.

    Args:
        net: at fixed weights.
        key: of the range.
        width: on either side, in the units of the range.
        evidence: at the present ranges, from the same examples and the same random numbers at every call.
    """
    before, ends = net.ranges()[key], []
    try:
        for side in (-width, width):
            net.set_ranges({key: before + side})
            ends.append((net.ranges()[key], evidence()))
    finally:
        net.set_ranges({key: before})
    (low, below), (high, above) = ends
    return (above - below) / (high - low)


class Ranges:
    """An Adam optimiser of the ranges of a network, each in shares of its largest value.

    Args:
        net: the network whose ranges these are.
        rate: how far a range goes in a step whose slope has one sign throughout, as a share of the largest range.
    """

    def __init__(self, net: Network, rate: float = RATE) -> None:
        self.net, self.rate = net, rate
        self.keys = tuple(f"{name}.{key}" for name, one in net.averages() if not one.fixed for key in one.generators)
        self._first = dict.fromkeys(self.keys, 0.0)
        self._second = dict.fromkeys(self.keys, 0.0)
        self._steps = 0

    @property
    def present(self) -> list[str]:
        """The keys of ranges whose average is not inside a residual block that has left."""
        stages = dict(self.net.active())
        return [key for key in self.keys if key.rpartition(".")[0] in stages]

    def width(self, progress: float) -> float:
        """Return half the distance over which an epoch takes slopes, and by which training goes to either side.

        Weights know the ranges that they were trained at, so that any other fits worse; trained on both sides, they
        favour neither.
        """
        return WIDTH * (1 - progress / SETTLED) if self.present and progress < SETTLED else 0.0

    def step(self, evidence: Callable[[], float], progress: float) -> None:
        """Move every range once by central differences, unless they have settled.

        Args:
            evidence: in nats per example, at the present ranges; see `slope`.
            progress: share of the run that is done.
        """
        if width := self.width(progress):
            self.move({key: slope(self.net, key, width * most(key), evidence) for key in self.present}, progress)

    def move(self, slopes: Mapping[str, float], progress: float) -> None:
        """Move every range once, unless they have settled.

        Args:
            slopes: derivative of the evidence in each range, in nats per example and unit of the range.
            progress: share of the run that is done.
        """
        if progress >= SETTLED:
            return
        share = 1 - progress / SETTLED
        self._steps += 1
        for key in self.present:
            rise = most(key) * slopes[key]
            self._first[key] = _FIRST * self._first[key] + (1 - _FIRST) * rise
            self._second[key] = _SECOND * self._second[key] + (1 - _SECOND) * rise**2
            first = self._first[key] / (1 - _FIRST**self._steps)
            second = self._second[key] / (1 - _SECOND**self._steps)
            if second > 0:
                way = self.rate * share * first / math.sqrt(second)
                self.net.set_ranges({key: self.net.ranges()[key] + most(key) * way})

    def state(self) -> dict[str, Any]:
        """Return what a resume needs besides the ranges themselves."""
        return {"first": dict(self._first), "second": dict(self._second), "steps": self._steps}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take up a state that `state` gave."""
        self._first, self._second, self._steps = dict(state["first"]), dict(state["second"]), state["steps"]
