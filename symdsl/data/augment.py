"""Random flips and shifts of training batches, drawn anew in every epoch."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import torch
from attrs import evolve
from torch import Generator, Tensor

from symdsl.analysis.facts import Data
from symdsl.data.records import Examples
from symdsl.data.transforms import shifted


@attrs.frozen
class Augmentation:
    """Random flips and shifts of training images (appendix F.6 of Layer-wise Equivariances, 2023).

    Attributes:
        flip: whether images are mirrored left to right, each with probability one half.
        shift: images move by a whole number of rows and of columns, uniform in `[-shift, shift]`; zeros move in.
    """

    flip: bool = False
    shift: int = 0

    @classmethod
    def of(cls, data: Data) -> Augmentation:
        """Return the augmentation that a spec asks for; without one, images stay as they are."""
        step = next((step for step in data.transforms if step.name == "augment"), None)
        return cls() if step is None else cls(bool(step.argument("flip")), step.whole("shift"))

    def epoch(
        self, examples: int, stream: Generator, device: torch.device | str
    ) -> Callable[[Examples, Tensor], Examples]:
        """Draw the changes of all examples for one epoch, the same whatever the batches and the device.

        Args:
            examples: how many there are.
            stream: a stream of this epoch alone, on the CPU.
            device: where the batches are.

        Returns:
            From a batch, and the numbers of its examples, to the batch augmented.
        """
        if not (self.flip or self.shift):
            return lambda batch, index: batch
        mirrored = torch.rand(examples, generator=stream).lt(0.5 if self.flip else 0).to(device)
        by = torch.randint(-self.shift, self.shift + 1, (examples, 2), generator=stream).to(device)

        def augmented(batch: Examples, index: Tensor) -> Examples:
            x = torch.where(mirrored[index][:, None, None, None], batch.x.flip(3), batch.x)
            return evolve(batch, x=shifted(x, by[index], self.shift))

        return augmented
