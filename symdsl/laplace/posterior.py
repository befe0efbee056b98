"""The Laplace evidence as a function of the prior precisions, everything else decomposed once."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import attrs
import torch

from symdsl.curvature import Curvature, Fisher, Likelihood, Spectrum, estimate
from symdsl.curvature.fisher import parse_fisher
from symdsl.curvature.handlers import Sharing
from symdsl.curvature.likelihood import likelihood_of
from symdsl.nn import Network

if TYPE_CHECKING:
    from symdsl.data import Examples


SHARINGS: dict[str, Sharing] = {"kfac-expand": "expand", "kfac-reduce": "reduce"}
"""How each curvature treats weights that are used several times per example."""


@attrs.frozen(eq=False)
class Laplace:
    """log p(D | eta) around fixed parameters, for any precisions eta; all quantities in nats, summed over examples.

    Attributes:
        precisions: the precision of each parameter tensor's prior.
        noise: variance of the Gaussian likelihood; 1 for classification.
        spectra: eigenvalues of each Gauss-Newton block at unit noise.
        squared_norms: `||theta_k||^2` of each tensor.
        likelihood: of the targets.
        loss: the likelihood's loss, summed over examples.
        examples: N.
        outputs: numbers predicted per example.
    """

    precisions: Mapping[str, float]
    noise: float
    spectra: Mapping[str, Spectrum]
    squared_norms: Mapping[str, float]
    likelihood: Likelihood
    loss: float
    examples: int
    outputs: int

    def log_likelihood(self) -> float:
        """log p(D | theta)."""
        return -self.likelihood.nll(self.loss, self.examples, self.outputs, self.noise)

    def log_evidence(self, precisions: Mapping[str, float] | None = None) -> float:
        """log p(D | eta) ~= log p(D | theta) + 1/2 sum_k [P_k log d_k - d_k ||theta_k||^2 - log det(H_k + d_k I)].

        Args:
            precisions: to use instead of `self.precisions`; one per tensor.

        Raises:
            ValueError: `precisions` has other keys than `self.precisions`, or one that is not positive.
        """
        at = self if precisions is None else self.with_precisions(precisions)
        terms = (at._log_prior_volume(key) for key in at.spectra)
        return self.log_likelihood() + 0.5 * math.fsum(terms)

    def _log_prior_volume(self, key: str) -> float:
        precision, spectrum = self.precisions[key], self._spectrum(key)
        fit = spectrum.size * math.log(precision) - precision * self.squared_norms[key]
        return fit - spectrum.log_det(precision)

    def _spectrum(self, key: str) -> Spectrum:
        return self.spectra[key] if self.noise == 1.0 else self.spectra[key].scaled(1 / self.noise)

    def effective_parameters(self) -> dict[str, float]:
        """gamma_k = sum_l l / (l + delta_k) of each tensor: between 0 and its number of parameters."""
        return {key: self._spectrum(key).effective(self.precisions[key]) for key in self.spectra}

    def gradient(self) -> dict[str, float]:
        """d log p(D | eta) / d log delta_k = (gamma_k - delta_k ||theta_k||^2) / 2, closed form."""
        effective = self.effective_parameters()
        return {key: 0.5 * (effective[key] - self.precisions[key] * self.squared_norms[key]) for key in self.spectra}

    def fitted_noise(self) -> float:
        """MacKay's fixed point of the noise variance: squared error / (numbers observed - effective parameters)."""
        observed = self.examples * self.outputs - math.fsum(self.effective_parameters().values())
        return max(2 * self.loss / max(observed, 1.0), 1e-12)

    def with_precisions(self, precisions: Mapping[str, float], noise: float | None = None) -> Laplace:
        """The same approximation under another prior (and noise).

        Raises:
            ValueError: `precisions` has other keys than `self.precisions`, or one that is not positive.
        """
        if precisions.keys() != self.spectra.keys():
            wrong = ", ".join(sorted(precisions.keys() ^ self.spectra.keys()))
            raise ValueError(f"`precisions` must have one entry per parameter tensor; missing or unknown: {wrong}")
        for key, value in precisions.items():
            if not 0 < value < math.inf:
                raise ValueError(f"the precision of `{key}` (={value}) must be positive and finite")
        return attrs.evolve(self, precisions=dict(precisions), noise=self.noise if noise is None else noise)


def from_curvature(
    net: Network, curvature: Curvature, likelihood: Likelihood, precisions: Mapping[str, float], noise: float
) -> Laplace:
    """Decomposes the curvature of `net` once, for every prior to come.

    Raises:
        NumericalError: eigenvalues that cannot be computed, with the parameter tensor's name.
    """
    parameters = net.tensors()
    norms = torch.stack([parameters[key].detach().double().square().sum() for key in curvature.blocks]).tolist()
    return Laplace(
        precisions={key: precisions[key] for key in curvature.blocks},
        noise=noise,
        spectra={key: block.spectrum(key) for key, block in curvature.blocks.items()},
        squared_norms=dict(zip(curvature.blocks, norms, strict=True)),
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
    sketch: int = 0,
) -> Laplace:
    """Laplace approximation of a network at its present parameters.

    Args:
        net: a network made by `symdsl.compile`.
        examples: training data, tensors `x` `[N, channel, row, column]` and `y`; real-valued `y` means a Gaussian
            likelihood, whole-valued `y` a categorical one.
        curvature: `kfac-expand` or `kfac-reduce`.
        fisher: `exact`, `mc(m)`, `signs(m)`, or a `Fisher`.
        precisions: prior precisions by key of `net.tensors()`; 1 for those left out.
        noise: variance of the Gaussian likelihood.
        seed: of drawn labels, for `mc(m)`, and of random signs, for `signs(m)`.
        batch: examples at a time.
        bounded: whether what single examples add bounds the determinants, as in a search unless it says otherwise.
        sketch: dimensions of the random projections that determinants are taken from where they can tell; 0 for none.

    Raises:
        ValueError: an unknown `curvature`, `fisher` or key of `precisions`, or a negative `sketch`.
        NumericalError: eigenvalues that cannot be computed.
    """
    if curvature not in SHARINGS:
        raise ValueError(f'`curvature` (="{curvature}") must be one of {", ".join(SHARINGS)}')
    if sketch < 0:
        raise ValueError(f"`sketch` (={sketch}) must be at least 0")
    parameters = net.tensors()
    given = dict(precisions or {})
    if unknown := given.keys() - parameters.keys():
        raise ValueError(f"`precisions` names parameters the network does not have: {', '.join(sorted(unknown))}")
    likelihood = likelihood_of(examples.y)
    y = examples.y.unsqueeze(1) if likelihood.has_noise and examples.y.ndim == 1 else examples.y
    estimated = estimate(
        net,
        examples.x,
        y.to(examples.x.device),
        likelihood,
        parse_fisher(fisher) if isinstance(fisher, str) else fisher,
        torch.Generator(net.device).manual_seed(seed),
        batch,
        SHARINGS[curvature],
        bounded,
        sketch,
    )
    return from_curvature(net, estimated, likelihood, dict.fromkeys(parameters, 1.0) | given, noise)
