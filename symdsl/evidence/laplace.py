"""The Laplace evidence as a function of the prior precisions, everything else decomposed once."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Protocol

import attrs
import torch

from symdsl.analysis.facts import Full, Kfac
from symdsl.catalog.searches import PROJECTED_ROWS, PROJECTED_WIDTH
from symdsl.evidence.estimate import Curvature, estimate
from symdsl.evidence.loss import Fisher, Likelihood, likelihood_of, parse_fisher
from symdsl.evidence.project import Projection, project
from symdsl.evidence.weight_use import Sharing
from symdsl.nn import Network

if TYPE_CHECKING:
    from symdsl.data import Examples


SHARINGS: dict[str, Sharing] = {"kfac-expand": "expand", "kfac-reduce": "reduce"}
"""How KFAC treats weights that are used several times per example, by the name of a curvature."""


class Determinant(Protocol):
    """The Gauss-Newton matrix H at unit noise, as far as the evidence asks for it; D holds all precisions."""

    @property
    def sizes(self) -> Mapping[str, int]:
        """Parameters of every tensor."""
        ...

    def volume(self, precisions: Mapping[str, float]) -> float:
        """log det(I + D^-1/2 H D^-1/2), in nats."""
        ...

    def effective(self, precisions: Mapping[str, float]) -> dict[str, float]:
        """Effective number of parameters of every tensor: minus the slopes of the volume in its log precision."""
        ...


@attrs.frozen(eq=False)
class Laplace:
    """log p(D | eta) around fixed parameters, for any precisions eta; all quantities in nats, summed over examples.

    Attributes:
        precisions: the precision of each parameter tensor's prior.
        noise: variance of the Gaussian likelihood; 1 for classification.
        determinant: of the Gauss-Newton matrix at unit noise.
        squared_norms: `||theta_k||^2` of each tensor.
        likelihood: of the targets.
        loss: the likelihood's loss, summed over examples.
        examples: N.
        outputs: numbers predicted per example.
    """

    precisions: Mapping[str, float]
    noise: float
    determinant: Determinant
    squared_norms: Mapping[str, float]
    likelihood: Likelihood
    loss: float
    examples: int
    outputs: int

    def log_likelihood(self) -> float:
        """log p(D | theta)."""
        return -self.likelihood.nll(self.loss, self.examples, self.outputs, self.noise)

    def log_evidence(self, precisions: Mapping[str, float] | None = None) -> float:
        """log p(D | eta) ~= log p(D | theta) - 1/2 sum_k d_k ||theta_k||^2 - 1/2 log det(I + D^-1/2 H D^-1/2).

        Args:
            precisions: to use instead of `self.precisions`; one per tensor.

        Raises:
            ValueError: `precisions` has other keys than `self.precisions`, or one that is not positive.
        """
        at = self if precisions is None else self.with_precisions(precisions)
        return at.log_likelihood() - 0.5 * (
            math.fsum(at.penalties().values()) + at.determinant.volume(at._at_unit_noise())
        )

    def _at_unit_noise(self) -> dict[str, float]:
        """Precisions under which H at unit noise counts as H / noise does under those of the prior."""
        return {key: precision * self.noise for key, precision in self.precisions.items()}

    def effective_parameters(self) -> dict[str, float]:
        """gamma_k of each tensor, between 0 and its number of parameters: by blocks, sum_l l / (l + delta_k)."""
        return self.determinant.effective(self._at_unit_noise())

    def penalties(self) -> dict[str, float]:
        """delta_k ||theta_k||^2 of each tensor."""
        return {key: precision * self.squared_norms[key] for key, precision in self.precisions.items()}

    def gradient(self, numbers: Mapping[str, float] | None = None) -> dict[str, float]:
        """d log p(D | eta) / d log delta_k = (gamma_k - delta_k ||theta_k||^2) / 2, closed form.

        Args:
            numbers: gamma by key; the effective numbers if left out.
        """
        effective, penalties = self.effective_parameters() if numbers is None else numbers, self.penalties()
        return {key: 0.5 * (effective[key] - penalties[key]) for key in effective}

    def fitted_noise(self) -> float:
        """MacKay's fixed point of the noise variance: squared error / (numbers observed - effective parameters)."""
        observed = self.examples * self.outputs - math.fsum(self.effective_parameters().values())
        return max(2 * self.loss / max(observed, 1.0), 1e-12)

    def with_precisions(self, precisions: Mapping[str, float], noise: float | None = None) -> Laplace:
        """The same approximation under another prior (and noise).

        Raises:
            ValueError: `precisions` has other keys than `self.precisions`, or one that is not positive.
        """
        if precisions.keys() != self.precisions.keys():
            wrong = ", ".join(sorted(precisions.keys() ^ self.precisions.keys()))
            raise ValueError(f"`precisions` must have one entry per parameter tensor; missing or unknown: {wrong}")
        for key, value in precisions.items():
            if not 0 < value < math.inf:
                raise ValueError(f"the precision of `{key}` (={value}) must be positive and finite")
        return attrs.evolve(self, precisions=dict(precisions), noise=self.noise if noise is None else noise)


def estimator(approximation: Kfac | Full) -> Callable[..., Curvature | Projection]:
    """The pass over the data that estimates a curvature: `estimate` or `project`, its own settings filled in."""
    if isinstance(approximation, Full):
        return partial(project, width=approximation.width, rows=approximation.rows)
    return partial(estimate, sharing=approximation.sharing, bounded=approximation.bounded)


def from_curvature(
    net: Network,
    curvature: Curvature | Projection,
    likelihood: Likelihood,
    precisions: Mapping[str, float],
    noise: float,
) -> Laplace:
    """Decomposes the curvature of `net` once, for every prior to come.

    Raises:
        NumericalError: eigenvalues that cannot be computed, with the parameter tensor's name.
    """
    determinant = curvature.determinant()
    return Laplace(
        precisions={key: precisions[key] for key in determinant.sizes},
        noise=noise,
        determinant=determinant,
        squared_norms=net.squared_norms(determinant.sizes),
        likelihood=likelihood,
        loss=curvature.loss,
        examples=curvature.examples,
        outputs=curvature.outputs,
    )


def fit(
    net: Network,
    examples: Examples,
    curvature: str = "kfac-expand",
    fisher: str | Fisher = "exact",
    precisions: Mapping[str, float] | None = None,
    noise: float = 1.0,
    seed: int = 0,
    batch: int = 512,
    bounded: bool = False,
    width: int = PROJECTED_WIDTH,
    rows: int = PROJECTED_ROWS,
) -> Laplace:
    """Laplace approximation of a network at its present parameters.

    Args:
        net: a network made by `symdsl.compile`.
        examples: training data, tensors `x` `[N, channel, row, column]` and `y`; real-valued `y` means a Gaussian
            likelihood, whole-valued `y` a categorical one.
        curvature: `kfac-expand` or `kfac-reduce`, a block for every tensor by its Kronecker factors, or `full`, all
            tensors together by random projections of single examples' gradients.
        fisher: `exact`, `mc(m)`, `signs(m)`, or a `Fisher`.
        precisions: prior precisions by key of `net.tensors()`; 1 for those left out.
        noise: variance of the Gaussian likelihood.
        seed: of drawn labels, for `mc(m)`, of random signs, for `signs(m)`, and of projections, for `full`.
        batch: examples at a time.
        bounded: of `kfac`: whether what single examples add bounds the determinants, as in a search by default.
        width: of `full`: numbers that a gradient is projected to in each tensor that has more.
        rows: of `full`: rows that all examples' columns are projected to if there are more.

    Raises:
        ValueError: an unknown `curvature`, `fisher` or key of `precisions`, or a `width` or `rows` below 1.
        RunError: with `full`, a tensor of a kind that does not give the gradients of single examples.
        NumericalError: eigenvalues that cannot be computed, or gradients that are not finite.
    """
    if curvature not in {*SHARINGS, "full"}:
        raise ValueError(f'`curvature` (="{curvature}") must be one of {", ".join(SHARINGS)}, full')
    for name, number in (("width", width), ("rows", rows)):
        if number < 1:
            raise ValueError(f"`{name}` (={number}) must be at least 1")
    parameters = net.tensors()
    given = dict(precisions or {})
    if unknown := given.keys() - parameters.keys():
        raise ValueError(f"`precisions` names parameters the network does not have: {', '.join(sorted(unknown))}")
    likelihood = likelihood_of(examples.y)
    y = examples.y.unsqueeze(1) if likelihood.has_noise and examples.y.ndim == 1 else examples.y
    source = parse_fisher(fisher) if isinstance(fisher, str) else fisher
    drawn, targets = torch.Generator(net.device).manual_seed(seed), y.to(examples.x.device)
    approximation = Full(width, rows) if curvature == "full" else Kfac(SHARINGS[curvature], bounded)
    estimated = estimator(approximation)(net, examples.x, targets, likelihood, source, drawn, batch=batch)
    return from_curvature(net, estimated, likelihood, dict.fromkeys(parameters, 1.0) | given, noise)
