"""Steps in the scale of every parameter tensor, beside those of its elements."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor


class Scales:
    """The logarithm of a factor on each parameter tensor, trained as any parameter is.

    Adam divides what pulls on a weight by the noise of its gradient. That of the likelihood is large and the prior's
    pull on one weight small, so that after a fixed number of steps networks are larger than at their mode, and surer:
    the Gauss-Newton matrix is too small there, and the evidence too good. Along the scale s of a whole tensor the
    prior's pull adds up and the noise averages out: the gradient in log s is <theta, gradient in theta>.

    Args:
        parameters: tensors by key.

    Attributes:
        logs: a scalar for each tensor, zero between steps.
    """

    def __init__(self, parameters: Mapping[str, Tensor]) -> None:
        self._parameters = parameters
        self.logs = {key: torch.zeros_like(parameter.detach().sum()) for key, parameter in parameters.items()}

    @torch.no_grad()
    def differentiate(self) -> None:
        """Takes the gradients in the logarithms from those of the tensors; without one, a tensor keeps its scale."""
        for key, log in self.logs.items():
            parameter = self._parameters[key]
            log.grad = None if parameter.grad is None else (parameter * parameter.grad).sum()

    @torch.no_grad()
    def apply(self) -> None:
        """Multiplies the tensors by their factors, which are one again afterwards."""
        for key, log in self.logs.items():
            self._parameters[key].mul_(log.exp())
            log.zero_()
