"""The Laplace evidence as a function of the prior precisions, at fixed parameters."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import cached_property
from numbers import Integral
from typing import TYPE_CHECKING

import attrs
import torch
from torch import Tensor, nn

from symdsl.evidence.backward import GGN, Curvature, Estimate, LogDet, estimate
from symdsl.evidence.extrapolated import ExtrapolatedAccumulator
from symdsl.evidence.joint import JointAccumulator
from symdsl.evidence.kfac import KfacAccumulator
from symdsl.evidence.loss import Fisher, Likelihood, likelihood_of, parse_fisher
from symdsl.nn import Network, evaluation_mode, outputs_of

if TYPE_CHECKING:
    from symdsl.data import Examples

__all__ = ["Laplace", "fit"]

CURVATURES: dict[str, Curvature] = {
    "kfac-expand": lambda gradients, generator: KfacAccumulator("expand"),
    "kfac-reduce": lambda gradients, generator: KfacAccumulator("reduce"),
    "joint": ExtrapolatedAccumulator,
    "sketch": JointAccumulator,
}
"""Accumulators of the gradients of a pass over the data, by the name of a curvature."""

SMALLEST_NOISE = 1e-12
"""Variance below which the noise of a regression is not taken to fall."""

_HELD = 1e30
"""A precision under which a tensor has no effective parameters."""


@attrs.frozen(eq=False, slots=False)
class Laplace:
    """Laplace's approximation of log p(D | delta) around fixed parameters, for any precisions delta; in nats, summed.

    Attributes:
        precisions: the precision of each parameter tensor's prior.
        noise: variance of the Gaussian likelihood; 1 for classification.
        ggn: the Gauss-Newton matrix at unit noise.
        squared_norms: `||theta_k||^2` of each tensor.
        likelihood: of the targets.
        loss: the likelihood's loss, summed over examples.
        examples: N, the number of examples.
        outputs: numbers predicted per example.
    """

    precisions: Mapping[str, float]
    noise: float
    ggn: GGN = attrs.field(repr=False)
    squared_norms: Mapping[str, float] = attrs.field(repr=False)
    likelihood: Likelihood
    loss: float
    examples: int
    outputs: int

    def log_likelihood(self) -> float:
        """Return log p(D | theta), in nats, summed over examples."""
        return -self.likelihood.nll(self.loss, self.examples, self.outputs, self.noise)

    def log_evidence(self, precisions: Mapping[str, float] | None = None) -> float:
        """Return the Laplace approximation of log p(D | delta), in nats, summed over examples.

        It is log p(D | theta) - 1/2 [sum_k d_k ||theta_k||^2 + log det(I + H / (noise D))].

        Args:
            precisions: to use instead of `self.precisions`; one per tensor.

        Raises:
            ValueError: `precisions` has other keys than `self.precisions`, or one that is not positive.
        """
        at = self if precisions is None else self.with_precisions(precisions)
        return at.log_likelihood() - 0.5 * (math.fsum(at.penalties().values()) + at.log_det.value)

    @cached_property
    def log_det(self) -> LogDet:
        """The log determinant of I + H / (noise D), and the effective numbers of parameters, at these precisions."""
        return self.ggn.at(self.precisions, self.noise)

    def effective_parameters(self) -> dict[str, float]:
        """Return gamma_k of each tensor, between 0 and its number of parameters: by blocks, sum_l l / (l + delta_k)."""
        return self.log_det.effective

    def penalties(self) -> dict[str, float]:
        """Return the penalty delta_k ||theta_k||^2 of each tensor."""
        return {key: precision * self.squared_norms[key] for key, precision in self.precisions.items()}

    def gradient(self) -> dict[str, float]:
        """Return d log p(D | delta) / d log delta_k = (gamma_k - delta_k ||theta_k||^2) / 2, in closed form.

        Where gamma_k is extrapolated it is not the slope of `log_evidence`, whose log determinant is the sketch's.
        """
        effective, penalties = self.effective_parameters(), self.penalties()
        return {key: 0.5 * (effective[key] - penalties[key]) for key in effective}

    def fitted_noise(self) -> float:
        """Return the noise variance of a regression by MacKay: squared error / (numbers observed - effective).

        A number is left for the noise, however many are effective.
        """
        observed = self.examples * self.outputs - self.log_det.total
        return max(2 * self.loss / max(observed, 1.0), SMALLEST_NOISE)

    def log_evidence_without(self, keys: Iterable[str], loss: float) -> float:
        """Return log p(D | delta) of the same network without some tensors, the others at their present values.

        These are held at zero: they have neither penalty nor log determinant. As the others could still be fitted to
        that, the evidence at their mode is no lower.

        Args:
            keys: of the tensors that are left out; a text is one key.
            loss: the likelihood's loss without them, summed over examples.

        Raises:
            ValueError: a tensor of a key has no precision.
        """
        gone = frozenset([keys] if isinstance(keys, str) else keys)
        if unknown := gone - self.precisions.keys():
            raise ValueError(f"`keys` names tensors without a precision: {', '.join(sorted(unknown))}")
        held = {**self.precisions, **dict.fromkeys(gone, _HELD)}
        norms = {**self.squared_norms, **dict.fromkeys(gone, 0.0)}
        return attrs.evolve(self, precisions=held, squared_norms=norms, loss=loss).log_evidence()

    def with_precisions(self, precisions: Mapping[str, float]) -> Laplace:
        """Return the same approximation under another prior.

        Raises:
            ValueError: `precisions` has other keys than `self.precisions`, or one that is not positive.
        """
        if precisions.keys() != self.precisions.keys():
            wrong = ", ".join(sorted(precisions.keys() ^ self.precisions.keys()))
            raise ValueError(f"`precisions` must have one entry per parameter tensor; missing or unknown: {wrong}")
        _check_precisions(precisions)
        return attrs.evolve(self, precisions=dict(precisions))


def _check_precisions(precisions: Mapping[str, float]) -> None:
    for key, value in precisions.items():
        if not 0 < value < math.inf:
            raise ValueError(f"the precision of `{key}` (={value}) must be positive and finite")


def laplace_of(
    net: Network, found: Estimate, likelihood: Likelihood, precisions: Mapping[str, float], noise: float
) -> Laplace:
    """Return the approximation around the parameters of `net`, from an estimate of their curvature.

    Args:
        net: the network.
        found: of its curvature.
        likelihood: of the targets.
        precisions: of the prior, by key; those of tensors without curvature are left out.
        noise: variance of the Gaussian likelihood.
    """
    sizes = found.ggn.sizes
    return Laplace(
        precisions={key: precisions[key] for key in sizes},
        noise=noise,
        ggn=found.ggn,
        squared_norms=net.squared_norms(sizes),
        likelihood=likelihood,
        loss=found.loss,
        examples=found.examples,
        outputs=found.outputs,
    )


def fit(
    net: Network,
    examples: Examples,
    curvature: str = "kfac-expand",
    fisher: str | Fisher = "exact",
    precisions: Mapping[str, float] | None = None,
    noise: float = 1.0,
    seed: int = 0,
    batch: int = 256,
) -> Laplace:
    """Return the Laplace approximation of a network at its present parameters; frozen ones are given.

    In a process group all ranks call it, and the methods of what it returns, alike: they divide the work. The network
    is in evaluation mode meanwhile: no two threads may use it at a time.

    Args:
        net: a network made by `symdsl.compile`.
        examples: training data, tensors `x` `[N, channel, row, column]` and `y`; real-valued `y`, `[N, output]`, means
            a Gaussian likelihood, whole-valued `y`, `[N]`, a categorical one.
        curvature: `kfac-expand` or `kfac-reduce`, a block for every tensor by its Kronecker factors, `joint`, all
            tensors together by sketches of the gradients of single examples, with effective numbers extrapolated by
            Kronecker factors where a sketch is saturated, or `sketch`, the same without these.
        fisher: `exact`, `mc(m)`, `rademacher(m)`, or a `Fisher`.
        precisions: prior precisions by key of `net.tensors()`; 1 for those left out.
        noise: variance of the Gaussian likelihood; 1 for classification.
        seed: of drawn labels, for `mc(m)`, of random signs, for `rademacher(m)`, and of the sums that more than 1,024
            gradients are sketched to, for `joint`; the sketch of a tensor's parameters follows from its key.
        batch: examples at a time; changes nothing but round-off, memory and which labels or signs are drawn.

    Raises:
        TypeError: if `net` or `examples` is of another type, `y` holds neither whole nor real numbers, or `batch` is
            not whole.
        ValueError: if `curvature`, `fisher` or a key of `precisions` is unknown, all parameters are frozen, some were
            added or tied since the network was made, or `examples`, a precision, `noise` or `batch` is not what it
            must be.
        NumericalError: if outputs are not finite, or gradients or eigenvalues when they are first needed.
    """
    if curvature not in CURVATURES:
        raise ValueError(f'`curvature` (="{curvature}") must be one of {", ".join(CURVATURES)}')
    if not isinstance(net, Network):
        raise TypeError(f"`net` (of type {type(net).__name__}) must be a network made by `symdsl.compile`")
    if not isinstance(getattr(examples, "x", None), Tensor) or not isinstance(getattr(examples, "y", None), Tensor):
        raise TypeError(
            f"`examples` (of type {type(examples).__name__}) must be `Examples` of tensors, as `data.train` is"
        )
    parameters = net.tensors()
    _check_all_counted(net, parameters)
    given = dict(precisions or {})
    if unknown := given.keys() - parameters.keys():
        raise ValueError(f"`precisions` names parameters the network does not have: {', '.join(sorted(unknown))}")
    _check_precisions(given)
    likelihood = likelihood_of(examples.y)
    if not 0 < noise < math.inf or (noise != 1 and not likelihood.has_noise):
        raise ValueError(f"`noise` (={noise}) must be positive and finite, and 1 for class labels")
    if not isinstance(batch, Integral) or isinstance(batch, bool):
        raise TypeError(f"`batch` (={batch!r}) must be a whole number")
    if batch < 1:
        raise ValueError(f"`batch` (={batch}) must be at least 1")
    x = examples.x.to(net.dtype) if examples.x.is_floating_point() else examples.x
    y = _targets(net, x, examples.y)
    source = fisher if isinstance(fisher, Fisher) else parse_fisher(str(fisher))
    drawn = torch.Generator(net.device).manual_seed(seed)
    found = estimate(net, x, y, likelihood, source, drawn, CURVATURES[curvature], int(batch))
    return laplace_of(net, found, likelihood, dict.fromkeys(parameters, 1.0) | given, float(noise))


def _check_all_counted(net: Network, parameters: Mapping[str, nn.Parameter]) -> None:
    """Refuse parameters that have no key, or two: neither curvature nor penalty would be theirs."""
    known = {id(parameter): key for key, parameter in parameters.items()}
    tied = next((key for key, parameter in parameters.items() if known[id(parameter)] != key), None)
    if tied is not None:
        raise ValueError(f"`{tied}` and `{known[id(parameters[tied])]}` are one tensor: tied weights are not supported")
    for name, parameter in net.named_parameters():
        if parameter.requires_grad and id(parameter) not in known:
            raise ValueError(f"`{name}` is no parameter of the spec's network: freeze it, or leave it out")


def _targets(net: Network, x: Tensor, y: Tensor) -> Tensor:
    """The targets of examples that a network can learn from: labels `[N]`, int64, or numbers `[N, output]`."""
    if not x.is_floating_point():
        raise TypeError(f"`examples.x` (={x.dtype}) must hold floats, as the network reads them")
    if len(x) != len(y):
        raise ValueError(f"`examples` has {len(x)} inputs, but {len(y)} targets")
    if y.is_complex() or y.dtype == torch.bool:
        raise TypeError(f"`examples.y` (={y.dtype}) must hold integers, which are labels, or floats, which are targets")
    for name, values in {"x": x, "y": y}.items():
        if not bool(values.isfinite().all()):
            raise ValueError(f"`examples.{name}` holds a number that is not finite")
    with evaluation_mode(net):
        width = outputs_of(net, x[:1].clone()).shape[1]
    real = y.is_floating_point()
    y = y.unsqueeze(1) if real and y.ndim == width == 1 else y if real else y.long()
    wanted = [len(x), width] if real else [len(x)]
    if list(y.shape) != wanted:
        raise ValueError(f"`examples.y` is of shape {list(y.shape)}, expected {wanted}")
    wrong = y[(y < 0) | (y >= width)]
    if not real and len(wrong):
        raise ValueError(f"`examples.y` holds the label {int(wrong[0])}, expected 0 to {width - 1}")
    return y
