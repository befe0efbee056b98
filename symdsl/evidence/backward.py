"""A pass over the data: batches forwards, columns of a square root of Lambda backwards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import attrs
import torch
from torch import Tensor

from symdsl.evidence.loss import Fisher, Likelihood
from symdsl.nn import Network, Use


@attrs.frozen(eq=False)
class Passed:
    """What every pass over the data leaves behind.

    Attributes:
        loss: the likelihood's loss, summed over examples.
        examples: N.
        outputs: width of the network's output.
    """

    loss: float
    examples: int
    outputs: int


@attrs.frozen(eq=False)
class Forward:
    """A batch at the network's outputs.

    Attributes:
        examples: how many these are.
        outputs: `[n, output]`.
        uses: of every parameter tensor, by key.
        loss: the likelihood's loss, summed over the batch, float64.
    """

    examples: int
    outputs: Tensor
    uses: dict[str, Use]
    loss: Tensor

    def columns(
        self, likelihood: Likelihood, fisher: Fisher, generator: torch.Generator
    ) -> Iterator[dict[str, Tensor]]:
        """For each column of a square root of Lambda: the gradient in what every use gives, by key."""
        targets = {id(use.output): use.output for use in self.uses.values()}
        for column in fisher.columns(likelihood, self.outputs.detach(), generator):
            gradients = torch.autograd.grad(self.outputs, list(targets.values()), column, retain_graph=True)
            found = dict(zip(targets, gradients, strict=True))
            yield {key: found[id(use.output)] for key, use in self.uses.items()}


def in_order(x: Tensor, batch: int) -> tuple[Tensor, ...]:
    """Indices of all examples as they come, a batch at a time, where `x` is."""
    order = torch.arange(len(x), device=x.device)
    return torch.split(order, batch)


def forward(net: Network, x: Tensor, y: Tensor, likelihood: Likelihood, batches: Iterable[Tensor]) -> Iterator[Forward]:
    """Every batch at the network's outputs.

    Args:
        net: the network; its parameters are left as they are.
        x: inputs `[N, channel, row, column]`; a batch at a time goes to the network's device.
        y: targets `[N]` or `[N, output]`, where `x` is.
        likelihood: of the targets.
        batches: indices of examples.

    Raises:
        TypeError: a path did not record its use of a parameter tensor.
    """
    for index in batches:
        inputs, targets = x[index].to(net.device), y[index].to(net.device)
        uses: dict[str, Use] = {}
        outputs = net(inputs, uses)
        _check_complete(net, uses)
        yield Forward(len(inputs), outputs, uses, likelihood.loss(outputs.detach(), targets).double())


def _check_complete(net: Network, uses: dict[str, Use]) -> None:
    for key, parameter in net.tensors().items():
        if parameter.requires_grad and key not in uses:
            raise TypeError(f"the use of `{key}` was not recorded, so that it would have no curvature")
