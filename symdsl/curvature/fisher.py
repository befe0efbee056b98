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

    def number(self, outputs: int) -> int:
        """How many columns there are of `outputs` outputs."""
        ...


@attrs.frozen
class Exact:
    """All columns of a square root of Lambda: one backward pass per output."""

    def columns(self, likelihood: Likelihood, outputs: Tensor, generator: torch.Generator) -> Iterator[Tensor]:
        """See `Fisher.columns`."""
        return likelihood.columns(outputs)

    def number(self, outputs: int) -> int:
        """See `Fisher.number`."""
        return outputs


def _positive(instance: object, attribute: object, value: int) -> None:
    if value < 1:
        raise ValueError(f"`samples` (={value}) must be at least 1")


@attrs.frozen
class MonteCarlo:
    """`samples` labels drawn from the model's own predictive distribution, never the true ones: unbiased.

    Raises:
        ValueError: `samples` is not positive.
    """

    samples: int = attrs.field(validator=_positive)

    def columns(self, likelihood: Likelihood, outputs: Tensor, generator: torch.Generator) -> Iterator[Tensor]:
        """See `Fisher.columns`."""
        for _ in range(self.samples):
            yield likelihood.sampled_column(outputs, generator) * self.samples**-0.5

    def number(self, outputs: int) -> int:
        """See `Fisher.number`."""
        return self.samples


@attrs.frozen
class Signs:
    """`samples` sums of all columns, each column with a random sign in every example: unbiased.

    Where the network is nearly certain of an example, a drawn label almost always has a column that almost vanishes,
    and now and then one that does not; such a sum is as small as the example's Lambda every time.

    Raises:
        ValueError: `samples` is not positive.
    """

    samples: int = attrs.field(validator=_positive)

    def columns(self, likelihood: Likelihood, outputs: Tensor, generator: torch.Generator) -> Iterator[Tensor]:
        """See `Fisher.columns`."""
        for _ in range(self.samples):
            bits = torch.randint(2, outputs.shape, generator=generator, device=outputs.device)
            signs = (2 * bits - 1).to(outputs.dtype) * self.samples**-0.5
            columns = zip(signs.T, likelihood.columns(outputs), strict=True)
            yield sum((sign.unsqueeze(1) * column for sign, column in columns), torch.zeros_like(outputs))

    def number(self, outputs: int) -> int:
        """See `Fisher.number`."""
        return self.samples


_SAMPLED: dict[str, type[MonteCarlo] | type[Signs]] = {"mc": MonteCarlo, "signs": Signs}


def fisher_of(kind: str, samples: int) -> Fisher:
    """The Fisher estimator of a name: `exact`, `mc` or `signs`, the last two with a number of samples."""
    return Exact() if kind == "exact" else _SAMPLED[kind](samples)


def parse_fisher(text: str) -> Fisher:
    """Reads `exact`, `mc(m)` or `signs(m)`.

    Raises:
        ValueError: `text` is none of them.
    """
    if text == "exact":
        return Exact()
    if sampled := re.fullmatch(r"(mc|signs)\((\d+)\)", text):
        return fisher_of(sampled[1], int(sampled[2]))
    raise ValueError(f'`fisher` (="{text}") must be "exact", "mc(m)" or "signs(m)" with a whole number m')
