"""The mode of a linearised network, along the diagonal of its curvature, from the gradients of an epoch's batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import torch
from torch import Tensor

from symdsl.diagnostics import NumericalError

_MOMENTS = ("gradient", "curvature")


class LinearisedMode:
    """The weights that a network in training is on its way to.

    MacKay's fixed point gamma_k / ||theta_k||^2 holds at a mode. A network that is trained for a few epochs is far from
    one: the curvature counts directions that its weights have not gone yet, and priors become too narrow. So the mode
    of the network linearised at its present weights takes their place (Antoran et al. 2022, "Adapting the linearised
    Laplace model evidence for modern deep learning"), here by a Newton step along the diagonal of the empirical Fisher
    matrix,

        theta* = theta - g / (h + delta),    g = N E[g_b],    h = N B Var[g_b]

    with g_b the gradient of a batch of B of N examples: of its mean loss, and of the prior over N. An epoch has every
    example once, so that its mean is free of the noise of batches, and its variance is that of single examples over B.

    Args:
        parameters: by key; their gradients are looked up at every `add`.
        examples: N.
    """

    def __init__(self, parameters: Mapping[str, Tensor], examples: int) -> None:
        self._parameters, self._examples = dict(parameters), examples
        self._sums = {key: torch.zeros_like(one) for key, one in parameters.items()}
        self._squares = {key: torch.zeros_like(one) for key, one in parameters.items()}
        self._batches = 0
        self._found: dict[str, tuple[Tensor, Tensor]] = {}

    @torch.no_grad()
    def add(self) -> None:
        """Add the present gradients, those of one batch."""
        keys = [key for key, one in self._parameters.items() if one.grad is not None]
        gradients = [grad for key in keys if (grad := self._parameters[key].grad) is not None]
        torch._foreach_add_([self._sums[key] for key in keys], gradients)
        torch._foreach_addcmul_([self._squares[key] for key in keys], gradients, gradients)
        self._batches += 1

    @torch.no_grad()
    def close_epoch(self) -> None:
        """Take the gradients since the last call as those of an epoch, and begin the next."""
        batch = self._examples / self._batches
        for key, total in self._sums.items():
            mean = total / self._batches
            variance = (self._squares[key] / self._batches - mean.square()).clamp(min=0)
            self._found[key] = self._examples * mean, self._examples * batch * variance
            total.zero_()
            self._squares[key].zero_()
        self._batches = 0

    @torch.no_grad()
    def squared_norms(self, precisions: Mapping[str, float]) -> dict[str, float]:
        """Return ||theta*||^2 of every tensor under these precisions; of the weights themselves before a first epoch.

        Raises:
            NumericalError: one is not finite, with the tensor's name.
        """
        found = {}
        for key, precision in precisions.items():
            weights = self._parameters[key]
            if key in self._found:
                gradient, curvature = self._found[key]
                weights = weights - gradient / (curvature + precision)
            found[key] = float(weights.double().square().sum())
            if not found[key] < float("inf"):
                raise NumericalError(f"the gradients of {key} are not finite")
        return found

    def tensors(self) -> dict[str, Tensor]:
        """Return copies of what a resume needs, on the CPU: gradient and curvature of every tensor."""
        return {f"{name}/{key}": one.cpu().clone() for key, both in self._found.items() for name, one in _named(both)}

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Take up what `tensors` gave, at the beginning of an epoch."""
        device = next(iter(self._sums.values())).device
        for key in self._parameters:
            if f"{_MOMENTS[0]}/{key}" in tensors:
                gradient, curvature = (tensors[f"{name}/{key}"].to(device) for name in _MOMENTS)
                self._found[key] = gradient, curvature


def _named(both: tuple[Tensor, Tensor]) -> Iterator[tuple[str, Tensor]]:
    return zip(_MOMENTS, both, strict=True)
