"""The Gauss-Newton matrix of all tensors together, by Kronecker factors beyond what a sketch can count."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

import attrs
import torch
from torch import Tensor

from symdsl.evidence.backward import GGN, LogDet
from symdsl.evidence.joint import JointAccumulator, JointSketch
from symdsl.evidence.kfac import KfacAccumulator, KroneckerFactors
from symdsl.evidence.weight_use import BatchUse


@attrs.frozen(eq=False)
class ExtrapolatedSketch(GGN):
    """A joint sketch, with Kronecker factors that tell how its counts go on where it is saturated.

    A sketch of w gradients tells no more than w effective parameters. So at precisions delta at which more than half of
    w are effective, the sketch is asked at `c delta`, with c such that about half are. From there to delta the count of
    every tensor follows that of its Kronecker factors, which know the whole spectrum but count what several tensors can
    explain once for each:

        gamma_k(delta) = kfac_k(delta) min(1, joint_k(c delta) / kfac_k(c delta))

    The log determinant is the sketch's, which there is too low.

    Attributes:
        sketch: of the gradients of single examples.
        factors: of the same gradients.
    """

    sketch: JointSketch
    factors: KroneckerFactors

    @property
    def sizes(self) -> dict[str, int]:
        """The number of parameters of every tensor, by key."""
        return self.sketch.sizes

    def at(self, precisions: Mapping[str, float], noise: float = 1.0) -> LogDet:
        """Return the sketch's `log det(I + H / (noise delta))`, and the effective numbers, extrapolated.

        Of a sketch that is saturated, these are larger than the slopes.
        """
        found = self.sketch.at(precisions, noise)
        if self.sketch.counts_well(found):
            return found
        level = self.sketch.unsaturated_level(precisions, noise)
        higher = {key: level * precision for key, precision in precisions.items()}
        joint, kfac = self.sketch.at(higher, noise).effective, self.factors.at(higher, noise).effective
        share = {key: min(1.0, joint[key] / number) if number > 0 else 1.0 for key, number in kfac.items()}
        extrapolated = self.factors.at(precisions, noise).effective
        return LogDet(found.value, {key: share[key] * number for key, number in extrapolated.items()})

    def scaled(self, factor: float) -> Self:
        """Return H times `factor`."""
        return type(self)(self.sketch.scaled(factor), self.factors.scaled(factor))


class ExtrapolatedAccumulator:
    """An accumulator that both sketches the gradients of single examples and sums their Kronecker factors.

    Args:
        gradients: how many there will be: examples times columns.
        generator: of the sketch, on the network's device.
    """

    def __init__(self, gradients: int, generator: torch.Generator) -> None:
        self._sketch, self._factors = JointAccumulator(gradients, generator), KfacAccumulator("expand")

    def add_inputs(self, uses: Mapping[str, BatchUse]) -> None:
        """Add the inputs of every tensor in one batch to both."""
        self._sketch.add_inputs(uses)
        self._factors.add_inputs(uses)

    def add_gradients(self, uses: Mapping[str, BatchUse], gradients: Mapping[str, Tensor], first: int) -> None:
        """Add the gradients of one column of a square root of Lambda to both."""
        self._sketch.add_gradients(uses, gradients, first)
        self._factors.add_gradients(uses, gradients, first)

    def gather(self) -> None:
        """Sum the estimates of all ranks."""
        self._sketch.gather()
        self._factors.gather()

    def ggn(self) -> ExtrapolatedSketch:
        """Return both estimates of the Gauss-Newton matrix, as one."""
        return ExtrapolatedSketch(self._sketch.ggn(), self._factors.ggn())
