"""One pass over the data: the Kronecker factors of every parameter tensor."""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import torch
from torch import Tensor

from symdsl.curvature.fisher import Fisher
from symdsl.curvature.handlers import Factors, Sharing, handler_for
from symdsl.curvature.kronecker import Kronecker
from symdsl.curvature.likelihood import Likelihood
from symdsl.nn import Network, Use


@attrs.frozen(eq=False)
class Curvature:
    """What one pass over the data gives the Laplace approximation, at unit noise.

    Attributes:
        blocks: the Gauss-Newton block of every active parameter tensor, summed over examples.
        loss: the likelihood's loss, summed over examples.
        examples: N.
        outputs: width of the network's output.
    """

    blocks: dict[str, Kronecker]
    loss: float
    examples: int
    outputs: int


def estimate(
    net: Network,
    x: Tensor,
    y: Tensor,
    likelihood: Likelihood,
    fisher: Fisher,
    generator: torch.Generator,
    batch: int = 512,
    sharing: Sharing = "expand",
) -> Curvature:
    """Estimates the block-diagonal Gauss-Newton matrix by KFAC.

    Args:
        net: the network; its parameters are left as they are.
        x: inputs `[N, channel, row, column]`, on the network's device.
        y: targets `[N]` or `[N, output]`.
        likelihood: of the targets.
        fisher: which columns of Lambda's square root are propagated.
        generator: source of sampled labels, on the same device.
        batch: examples at a time; changes nothing but round-off and memory.
        sharing: KFAC-expand or KFAC-reduce, for weights that are used several times per example.

    Raises:
        TypeError: a parameter tensor has no handler, or its path did not record its use.
    """
    left: dict[str, Tensor] = {}
    right: dict[str, Tensor] = {}
    loss = torch.zeros((), dtype=torch.float64, device=x.device)
    width = 0
    for inputs, targets in zip(x.split(batch), y.split(batch), strict=True):
        uses: dict[str, Use] = {}
        outputs = net(inputs, uses)
        _check_complete(net, uses)
        width = outputs.shape[1]
        loss += likelihood.loss(outputs.detach(), targets)
        for key, use in uses.items():
            _add(right, key, _right(use, sharing))
        for gradients in _pulled_back(outputs, uses, fisher.columns(likelihood, outputs.detach(), generator)):
            for key, use in uses.items():
                _add(left, key, _left(use, sharing, gradients[id(use.output)]), use.scale**2 / len(x))
    blocks = {key: Kronecker(left[key], right[key]) for key in right}
    return Curvature(blocks, float(loss), len(x), width)


def _check_complete(net: Network, uses: dict[str, Use]) -> None:
    for key, parameter in net.tensors().items():
        if parameter.requires_grad and key not in uses:
            raise TypeError(f"the use of `{key}` was not recorded, so that it would have no curvature")


@torch.no_grad()
def _right(use: Use, sharing: Sharing) -> Tensor:
    return _factors(use, sharing).right(use.owner, use.inputs)


@torch.no_grad()
def _left(use: Use, sharing: Sharing, gradients: Tensor) -> Tensor:
    return _factors(use, sharing).left(use.owner, use.inputs, gradients)


def _factors(use: Use, sharing: Sharing) -> Factors:
    return handler_for(use.owner, use.tensor).factors(sharing)


def _pulled_back(outputs: Tensor, uses: dict[str, Use], columns: Iterator[Tensor]) -> Iterator[dict[int, Tensor]]:
    targets = {id(use.output): use.output for use in uses.values()}
    for column in columns:
        gradients = torch.autograd.grad(outputs, list(targets.values()), column, retain_graph=True)
        yield dict(zip(targets, gradients, strict=True))


def _add(sums: dict[str, Tensor], key: str, term: Tensor, factor: float = 1.0) -> None:
    if key in sums:
        sums[key].add_(term, alpha=factor)
    else:
        sums[key] = term * factor
