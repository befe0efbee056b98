"""Likelihoods, and how the sum over labels in their Gauss-Newton matrix is taken."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

import attrs
import torch
from torch import Tensor
from torch.nn import functional


@attrs.frozen(eq=False)
class Expected:
    """The expectation of a loss at unit noise over independent Gaussian outputs.

    Attributes:
        loss: a scalar, summed over examples; gradients in mean and variance flow through it.
        gradient: the expected derivative of the loss in each output, `[example, output]`.
        hessian: the expected second derivative, `[example, output]`.
    """

    loss: Tensor
    gradient: Tensor
    hessian: Tensor


class Categorical:
    """The softmax likelihood of classes; outputs are logits. Lambda = diag(p) - p p^T, the Hessian of `loss` in them.

    Attributes:
        has_noise: whether there is a noise variance to learn.
    """

    has_noise = False

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return the cross entropy summed over examples, in nats."""
        return functional.cross_entropy(outputs, targets, reduction="sum")

    def expected(self, mean: Tensor, variance: Tensor, targets: Tensor, normal: Tensor) -> Expected:
        """Return the expected cross entropy and its derivatives, as means over draws of independent Gaussian outputs.

        Args:
            mean: of the outputs, `[example, output]`.
            variance: of the outputs, `[example, output]`.
            targets: of the examples.
            normal: standard normal numbers, `[draw, example, output]`.
        """
        logits = mean + variance.sqrt() * normal
        loss = functional.cross_entropy(logits.flatten(0, 1), targets.repeat(len(normal)), reduction="sum")
        p = logits.detach().softmax(2)
        labels = functional.one_hot(targets, p.shape[2])
        return Expected(loss / len(normal), p.mean(0) - labels, (p * (1 - p)).mean(0))

    def constant_loss(self, targets: Tensor) -> float:
        """Return the least `loss` of constant outputs: the entropy of the labels' frequencies, times their number."""
        counts = targets.bincount().double()
        return float(torch.special.entr(counts / len(targets)).sum()) * len(targets)

    def loss_hessian_sqrt(self, outputs: Tensor) -> Iterator[Tensor]:
        """Yield columns `[example, output]` whose outer products sum to Lambda: sqrt(p_k) (e_k - p) for every k."""
        p = outputs.softmax(1)
        labels = torch.eye(p.shape[1], dtype=p.dtype, device=p.device)
        for k in range(p.shape[1]):
            yield p[:, k : k + 1].sqrt() * (labels[k] - p)

    def sampled_column(self, outputs: Tensor, generator: torch.Generator) -> Tensor:
        """Return e_k - p for a label k that the model drew, whose outer product has Lambda for its expectation."""
        p = outputs.softmax(1)
        label = torch.multinomial(p, 1, generator=generator)
        return torch.zeros_like(p).scatter_(1, label, 1.0) - p

    def nll(self, loss: float, examples: int, outputs: int, noise: float) -> float:
        """Return the negative log-likelihood in nats, summed over examples, which is the summed `loss` itself."""
        return loss


class Gaussian:
    """The likelihood of targets with independent Gaussian noise; outputs are means. Lambda = I at unit noise.

    Its methods are those of `Categorical`.
    """

    has_noise = True

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return half the squared error, summed over examples and outputs."""
        return 0.5 * (outputs - targets).square().sum()

    def expected(self, mean: Tensor, variance: Tensor, targets: Tensor, normal: Tensor) -> Expected:
        """Return the expectation itself: the variance adds half of it to the loss."""
        missed = mean - targets
        loss = 0.5 * (missed.square() + variance).sum()
        return Expected(loss, missed.detach(), torch.ones_like(missed))

    def constant_loss(self, targets: Tensor) -> float:
        """Return half the squared distance of the targets from their mean, summed over examples and outputs."""
        return 0.5 * float((targets - targets.mean(0)).double().square().sum())

    def loss_hessian_sqrt(self, outputs: Tensor) -> Iterator[Tensor]:
        """Yield the unit vectors, one column for each output."""
        for unit in torch.eye(outputs.shape[1], dtype=outputs.dtype, device=outputs.device):
            yield unit.expand_as(outputs)

    def sampled_column(self, outputs: Tensor, generator: torch.Generator) -> Tensor:
        """Return a column of standard normal noise."""
        return torch.randn(outputs.shape, dtype=outputs.dtype, device=outputs.device, generator=generator)

    def nll(self, loss: float, examples: int, outputs: int, noise: float) -> float:
        """Return loss / noise + 1/2 log(2 pi noise) per number, summed over all numbers; `noise` is the variance."""
        return loss / noise + 0.5 * examples * outputs * math.log(2 * math.pi * noise)


Likelihood = Categorical | Gaussian
"""A likelihood log p(target | output), up to a scale that the Laplace evidence adds."""

LIKELIHOODS: dict[str, Likelihood] = {"classification": Categorical(), "regression": Gaussian()}
"""The likelihood of each task."""


def likelihood_of(targets: Tensor) -> Likelihood:
    """Return the likelihood that suits `targets`: Gaussian for real numbers, categorical for whole ones."""
    return LIKELIHOODS["regression" if targets.is_floating_point() else "classification"]


@attrs.frozen
class Exact:
    """The choice of all columns of a square root of Lambda to propagate back: one backward pass per output."""

    def loss_hessian_sqrt(
        self, likelihood: Likelihood, outputs: Tensor, generator: torch.Generator
    ) -> Iterator[Tensor]:
        """Yield all columns `[example, output]`, whose outer products sum to Lambda."""
        return likelihood.loss_hessian_sqrt(outputs)

    def number(self, outputs: int) -> int:
        """Return the number of columns, which is the number of outputs."""
        return outputs


def _positive(choice: object, attribute: object, samples: int) -> None:
    if samples < 1:
        raise ValueError(f"`samples` (={samples}) must be at least 1")


@attrs.frozen
class MonteCarlo:
    """`samples` labels drawn from the model's own predictive distribution, never the true ones: unbiased.

    Raises:
        ValueError: `samples` is not positive.
    """

    samples: int = attrs.field(validator=_positive)

    def loss_hessian_sqrt(
        self, likelihood: Likelihood, outputs: Tensor, generator: torch.Generator
    ) -> Iterator[Tensor]:
        """Yield columns `[example, output]` for drawn labels, whose outer products sum to Lambda in expectation."""
        for _ in range(self.samples):
            yield likelihood.sampled_column(outputs, generator) * self.samples**-0.5

    def number(self, outputs: int) -> int:
        """Return the number of columns, which is the number of samples."""
        return self.samples


@attrs.frozen
class Rademacher:
    """`samples` sums of columns, each column in one of them with a random sign in every example: unbiased.

    There are no more sums than columns; as many are exact. Where the network is nearly certain of an example, a drawn
    label almost always has a column that almost vanishes, and now and then one that does not; such a sum is as small as
    the example's Lambda every time.

    Raises:
        ValueError: `samples` is not positive.
    """

    samples: int = attrs.field(validator=_positive)

    def loss_hessian_sqrt(
        self, likelihood: Likelihood, outputs: Tensor, generator: torch.Generator
    ) -> Iterator[Tensor]:
        """Yield sums `[example, output]` of columns, whose outer products sum to Lambda in expectation."""
        bits = torch.randint(2, outputs.shape, generator=generator, device=outputs.device)
        signs = (2 * bits - 1).to(outputs.dtype)
        sums = [torch.zeros_like(outputs) for _ in range(self.number(outputs.shape[1]))]
        for k, column in enumerate(likelihood.loss_hessian_sqrt(outputs)):
            sums[k % len(sums)] += signs[:, k : k + 1] * column
        yield from sums

    def number(self, outputs: int) -> int:
        """Return the number of sums, at most one for each output."""
        return min(self.samples, outputs)


Fisher = Exact | MonteCarlo | Rademacher
"""A choice of the columns of a square root of Lambda to propagate back."""

_SAMPLED: dict[str, type[MonteCarlo] | type[Rademacher]] = {"mc": MonteCarlo, "rademacher": Rademacher}


def fisher_of(kind: str, samples: int) -> Fisher:
    """Return the Fisher estimator `exact`, `mc` or `rademacher`, the last two with a number of samples."""
    return Exact() if kind == "exact" else _SAMPLED[kind](samples)


def parse_fisher(text: str) -> Fisher:
    """Return the Fisher estimator that the text `exact`, `mc(m)` or `rademacher(m)` names.

    Raises:
        ValueError: `text` is none of them.
    """
    if text == "exact":
        return Exact()
    if sampled := re.fullmatch(r"(mc|rademacher)\((\d+)\)", text):
        return fisher_of(sampled[1], int(sampled[2]))
    raise ValueError(f'`fisher` (="{text}") must be "exact", "mc(m)" or "rademacher(m)" with a whole number m')
