"""How the Gauss-Newton sum over labels is taken."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Protocol

import attrs
import torch
from torch import Tensor

from symdsl.curvature.likelihood import Likelihood


class Fisher(Protocol):
    """A choice of columns to propagate back."""

    def columns(self, likelihood: Likelihood, outputs: Tensor, generator: torch.Generator) -> Iterator[Tensor]:
        """Columns `[example, output]` whose outer products sum (in expectation) to Lambda."""
        ...


@attrs.frozen
class Exact:
    """All columns of a square root of Lambda: one backward pass per output."""

    def columns(self, likelihood: Likelihood, outputs: Tensor, generator: torch.Generator) -> Iterator[Tensor]:
        """See `Fisher.columns`."""
        return likelihood.columns(outputs)


@attrs.frozen
class MonteCarlo:
    """`samples` labels drawn from the model's own predictive distribution, never the true ones: unbiased.

    Raises:
        ValueError: `samples` is not positive.
    """

    samples: int = attrs.field()

    @samples.validator
    def _positive(self, attribute: object, value: int) -> None:
        if value < 1:
            raise ValueError(f"`samples` (={value}) must be at least 1")

    def columns(self, likelihood: Likelihood, outputs: Tensor, generator: torch.Generator) -> Iterator[Tensor]:
        """See `Fisher.columns`."""
        for _ in range(self.samples):
            yield likelihood.sampled_column(outputs, generator) * self.samples**-0.5


def parse_fisher(text: str) -> Fisher:
    """Reads `exact` or `mc(m)`.

    Raises:
        ValueError: `text` is neither.
    """
    if text == "exact":
        return Exact()
    if sampled := re.fullmatch(r"mc\((\d+)\)", text):
        return MonteCarlo(int(sampled[1]))
    raise ValueError(f'`fisher` (="{text}") must be "exact" or "mc(m)" with a whole number m')
