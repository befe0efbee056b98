"""A lower bound of the evidence, by a Gaussian posterior of the last layer's weights.

For features phi_n of the examples and outputs f_nc = w_c^T phi_n, the posterior q is independent between outputs, with
one full covariance for each, and

    log p(D) >= E_q[log p(y | f)] - KL(q || prior)

(van der Ouderaa & van der Wilk 2022, "Learning invariant weights in neural networks", eqs. 9 and 10). Under q the
outputs of an example are Gaussian, and are drawn instead of the weights.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property

import attrs
import torch
from torch import Tensor

from symdsl.evidence.loss import Expected


@attrs.frozen(eq=False, slots=False)
class WeightPosterior:
    """The posterior q(w_c) = N(mean_c, Lambda_c^-1) of the weights of every output c, float64.

    What the data say is kept apart from the prior, Lambda_c = hessian_c + diag(prior) and Lambda_c mean_c = linear_c,
    so that q follows a change of the prior at once.

    Attributes:
        hessian: `[output, feature, feature]`.
        linear: `[output, feature]`.
        prior: precision of the prior of a feature's weight, `[feature]`.
    """

    hessian: Tensor
    linear: Tensor
    prior: Tensor

    @classmethod
    def at_prior(cls, outputs: int, prior: Tensor) -> WeightPosterior:
        """Return the posterior before any data, which is the prior."""
        return cls(prior.new_zeros(outputs, len(prior), len(prior)), prior.new_zeros(outputs, len(prior)), prior)

    @classmethod
    def around(cls, mean: Tensor, prior: Tensor) -> WeightPosterior:
        """Return the posterior of a mean, `[output, feature]`, as wide as its prior."""
        return attrs.evolve(cls.at_prior(len(mean), prior), linear=mean * prior)

    @cached_property
    def cholesky(self) -> Tensor:
        """The lower Cholesky factor of Lambda, `[output, feature, feature]`."""
        found: Tensor = torch.linalg.cholesky(self.hessian + torch.diag(self.prior))
        return found

    @cached_property
    def covariance(self) -> Tensor:
        """The inverse of Lambda, `[output, feature, feature]`."""
        return torch.cholesky_inverse(self.cholesky)

    @cached_property
    def mean(self) -> Tensor:
        """The mean of the weights, `[output, feature]`."""
        return torch.cholesky_solve(self.linear.unsqueeze(2), self.cholesky).squeeze(2)

    def outputs(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """Return mean and variance of the outputs, `[example, output]`, of features `[example, feature]`."""
        spread = (features @ self.covariance) * features
        return features @ self.mean.T, spread.sum(2).T

    def second_moments(self) -> Tensor:
        """Return E[w^2], summed over outputs: `[feature]`."""
        return (self.mean.square() + self.covariance.diagonal(dim1=1, dim2=2)).sum(0)

    def effective(self) -> Tensor:
        """Return how many parameters the data determine, `[feature]`: the sum of 1 - prior precision x variance."""
        return len(self.mean) - self.prior * self.covariance.diagonal(dim1=1, dim2=2).sum(0)

    def divergence(self) -> float:
        """Return KL(q || prior) in nats, summed over outputs."""
        outputs, features = self.mean.shape
        log_det = 2 * self.cholesky.diagonal(dim1=1, dim2=2).log().sum() - outputs * self.prior.log().sum()
        return 0.5 * float(self.prior @ self.second_moments() - outputs * features + log_det)

    def step(self, features: Tensor, expected: Expected, noise: float, weight: float, share: float) -> WeightPosterior:
        """Return the posterior after a step along the natural gradient of the bound (Khan & Lin 2017).

        Args:
            features: of a batch, `[example, feature]`.
            expected: gradients and curvatures of its loss in the outputs, under this posterior.
            noise: variance of the likelihood.
            weight: training examples that each one of the batch stands for.
            share: of the way to where the batch, taken for all data, would have the posterior, in [0, 1].
        """
        curved = expected.hessian / noise
        towards = curved * (features @ self.mean.T) - expected.gradient / noise
        hessian = weight * (features.T @ (curved.T.unsqueeze(2) * features))
        linear = weight * (towards.T @ features)
        return attrs.evolve(
            self, hessian=torch.lerp(self.hessian, hessian, share), linear=torch.lerp(self.linear, linear, share)
        )


@attrs.frozen(eq=False)
class Bound:
    """A lower bound of log p(D | delta), of all training examples, in nats.

    Attributes:
        log_likelihood: E_q[log p(y | f)], summed over examples.
        divergence: KL(q || prior).
        examples: N.
        precisions: of the priors of all parameter tensors, by key.
        squared_norms: of the tensors at the mean of q.
        effective: how many of the last layer's weights the data determine, by key; 0 for tensors that are point
            estimates.
    """

    log_likelihood: float
    divergence: float
    examples: int
    precisions: Mapping[str, float]
    squared_norms: Mapping[str, float]
    effective: Mapping[str, float]

    def log_evidence(self) -> float:
        """Return the bound."""
        return self.log_likelihood - self.divergence

    def effective_parameters(self) -> Mapping[str, float]:
        """Return the effective number of each parameter tensor that has one."""
        return self.effective


def normal_pairs(draws: int, like: Tensor, generator: torch.Generator) -> Tensor:
    """Return standard normal numbers of the shape of `like`, `draws` times, each with its opposite: `[draw, ...]`."""
    half = torch.randn(math.ceil(draws / 2), *like.shape, dtype=like.dtype, device=like.device, generator=generator)
    return torch.cat((half, -half))
