"""Likelihoods: what a network's outputs say of the targets, and the columns of their Hessian's square root."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Protocol

import torch
from torch import Tensor
from torch.nn import functional


class Likelihood(Protocol):
    """log p(target | output), up to a scale that the Laplace evidence adds."""

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Summed over examples: the term that training minimises, at unit noise; a scalar."""
        ...

    def constant_loss(self, targets: Tensor) -> float:
        """The least `loss` of outputs that are the same for every example, summed over all of `targets`."""
        ...

    def columns(self, outputs: Tensor) -> Iterator[Tensor]:
        """Columns `[example, output]` whose outer products sum to Lambda, the Hessian of `loss` in the outputs."""
        ...

    def sampled_column(self, outputs: Tensor, generator: torch.Generator) -> Tensor:
        """One random column `[example, output]` whose outer product has Lambda for its expectation."""
        ...

    def spread(self, outputs: Tensor) -> Tensor:
        """Trace of Lambda, `[example]`."""
        ...

    def nll(self, loss: float, examples: int, outputs: int, noise: float) -> float:
        """Negative log-likelihood in nats, summed over examples, from the summed `loss`."""
        ...

    @property
    def has_noise(self) -> bool:
        """Whether there is a noise variance to learn."""
        ...


class Categorical:
    """Classes by softmax; outputs are logits. Lambda = diag(p) - p p^T."""

    has_noise = False

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Cross entropy summed over examples, in nats."""
        return functional.cross_entropy(outputs, targets, reduction="sum")

    def constant_loss(self, targets: Tensor) -> float:
        """The entropy of the labels' frequencies, in nats, times the number of examples."""
        counts = targets.bincount().double()
        return float(torch.special.entr(counts / len(targets)).sum()) * len(targets)

    def columns(self, outputs: Tensor) -> Iterator[Tensor]:
        """One column per label k: sqrt(p_k) (e_k - p)."""
        p = outputs.softmax(1)
        labels = torch.eye(p.shape[1], dtype=p.dtype, device=p.device)
        for k in range(p.shape[1]):
            yield p[:, k : k + 1].sqrt() * (labels[k] - p)

    def sampled_column(self, outputs: Tensor, generator: torch.Generator) -> Tensor:
        """e_k - p for a label k drawn from p: the gradient of the log-likelihood of a label the model itself drew."""
        p = outputs.softmax(1)
        label = torch.multinomial(p, 1, generator=generator)
        return torch.zeros_like(p).scatter_(1, label, 1.0) - p

    def spread(self, outputs: Tensor) -> Tensor:
        """1 - sum_k p_k^2: nothing where the network is certain."""
        return 1 - outputs.softmax(1).square().sum(1)

    def nll(self, loss: float, examples: int, outputs: int, noise: float) -> float:
        """The cross entropy itself."""
        return loss


class Gaussian:
    """Targets with independent Gaussian noise; outputs are means. Lambda = I at unit noise."""

    has_noise = True

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Half the squared error, summed over examples and outputs."""
        return 0.5 * (outputs - targets).square().sum()

    def constant_loss(self, targets: Tensor) -> float:
        """Half the squared distance of the targets from their mean."""
        return 0.5 * float((targets - targets.mean(0)).double().square().sum())

    def columns(self, outputs: Tensor) -> Iterator[Tensor]:
        """The unit vectors."""
        for unit in torch.eye(outputs.shape[1], dtype=outputs.dtype, device=outputs.device):
            yield unit.expand_as(outputs)

    def sampled_column(self, outputs: Tensor, generator: torch.Generator) -> Tensor:
        """Standard normal noise."""
        return torch.randn(outputs.shape, dtype=outputs.dtype, device=outputs.device, generator=generator)

    def spread(self, outputs: Tensor) -> Tensor:
        """The number of outputs, for every example."""
        return outputs.new_full((len(outputs),), outputs.shape[1])

    def nll(self, loss: float, examples: int, outputs: int, noise: float) -> float:
        """loss / noise + 1/2 log(2 pi noise) per number, `noise` the variance."""
        return loss / noise + 0.5 * examples * outputs * math.log(2 * math.pi * noise)


LIKELIHOODS: dict[str, Likelihood] = {"classification": Categorical(), "regression": Gaussian()}
"""The likelihood of each task."""


def likelihood_of(targets: Tensor) -> Likelihood:
    """The likelihood that suits `targets`: Gaussian for real numbers, categorical for whole ones."""
    return LIKELIHOODS["regression" if targets.is_floating_point() else "classification"]
