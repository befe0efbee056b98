"""The mode of a linearised network, along the diagonal of its curvature, from the gradients of an epoch's batches."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from symdsl.diagnostics import NumericalError

LEAST_BATCHES = 30
"""Batches that an epoch must have for their variance to say what the curvature is."""

_MOMENTS = ("gradient", "curvature")


class LinearisedMode:
    """The weights that a network in training is on its way to.

    MacKay's fixed point gamma_k / ||theta_k||^2 holds at a mode. A network that is trained for a few epochs is far from
    one: the curvature counts directions that its weights have not gone yet, and priors become too narrow. So the mode
    of the network linearised at its present weights takes their place (Antorán et al. 2022, "Adapting the linearised
    Laplace model evidence for modern deep learning"), here by a Newton step along the diagonal of the empirical Fisher
    matrix,

        theta* = theta - (g + delta theta) / (h + delta),    g = N mean of g_b,    h = N variance of sqrt(B) g_b

    with g_b the gradient of the mean loss of a batch of B of the N examples. An epoch has every example once, so that
    the mean is free of the noise of batches; it is one over the weights that the epoch went through.

    Args:
        parameters: by key; their gradients are looked up at every `add`.
    """

    def __init__(self, parameters: Mapping[str, Tensor]) -> None:
        self._parameters = dict(parameters)
        self._sums = {key: torch.zeros_like(one) for key, one in parameters.items()}
        self._squares = {key: torch.zeros_like(one) for key, one in parameters.items()}
        self._batches = self._examples = 0
        self._found: dict[str, tuple[Tensor, Tensor]] = {}

    @torch.no_grad()
    def add(self, examples: int) -> None:
        """Add the present gradients, those of the mean loss of a batch of so many examples."""
        for key, one in self._parameters.items():
            if one.grad is not None:
                self._sums[key].add_(one.grad, alpha=examples)
                self._squares[key].addcmul_(one.grad, one.grad, value=examples)
        self._batches += 1
        self._examples += examples

    @torch.no_grad()
    def close_epoch(self) -> None:
        """Take the gradients since the last call as those of an epoch, if there are enough, and begin the next."""
        for key, total in self._sums.items():
            if self._batches >= LEAST_BATCHES:
                spread = (self._squares[key] - total.square() / self._examples).clamp(min=0)
                self._found[key] = total.clone(), self._examples / (self._batches - 1) * spread
            total.zero_()
            self._squares[key].zero_()
        self._batches = self._examples = 0

    @torch.no_grad()
    def squared_norms(self, precisions: Mapping[str, float]) -> dict[str, float]:
        """Return ||theta*||^2 of every tensor under its precision; of the present weights before a first epoch.

        Args:
            precisions: of the priors, by key; those of other tensors are left out.

        Raises:
            NumericalError: one is not finite, with the tensor's name.
        """
        found = {}
        for key, weights in self._parameters.items():
            if key not in precisions:
                continue
            mode = weights
            if key in self._found:
                gradient, curvature = self._found[key]
                mode = (curvature * weights - gradient) / (curvature + precisions[key])
            found[key] = float(mode.double().square().sum())
            if not math.isfinite(found[key]):
                raise NumericalError(f"the gradients of {key} are not finite")
        return found

    def tensors(self) -> dict[str, Tensor]:
        """Return copies of what a resume needs, on the CPU: gradient and curvature of every tensor."""
        named = ((key, zip(_MOMENTS, both, strict=True)) for key, both in self._found.items())
        return {f"{name}/{key}": one.cpu().clone() for key, both in named for name, one in both}

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Take up what `tensors` gave, at the beginning of an epoch."""
        for key, one in self._parameters.items():
            if f"{_MOMENTS[0]}/{key}" in tensors:
                gradient, curvature = (tensors[f"{name}/{key}"].to(one.device) for name in _MOMENTS)
                self._found[key] = gradient, curvature
