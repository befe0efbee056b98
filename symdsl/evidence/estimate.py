"""One pass over the data: the Kronecker factors of every parameter tensor."""

from __future__ import annotations

import attrs
import torch
from torch import Tensor

from symdsl.evidence.backward import Passed, forward, in_order
from symdsl.evidence.eigenvalues import symmetric_eigenvalues
from symdsl.evidence.kfac import Blocks, Factor, Kronecker, plus
from symdsl.evidence.loss import Fisher, Likelihood
from symdsl.evidence.rows import Rows
from symdsl.evidence.weight_use import Factors, Sharing, handler_for
from symdsl.nn import Network, Use

_TOGETHER = 256
"""Examples of which a network is least certain that bound determinants as a group."""


@attrs.frozen(eq=False)
class Curvature(Passed):
    """What one pass over the data gives the Laplace approximation, at unit noise.

    Attributes:
        blocks: the Gauss-Newton block of every active parameter tensor, summed over examples.
    """

    blocks: dict[str, Kronecker]

    def determinant(self) -> Blocks:
        """Of all blocks and any prior, everything decomposed.

        Raises:
            NumericalError: eigenvalues that cannot be computed, with the parameter tensor's name.
        """
        return Blocks({key: block.spectrum(key) for key, block in self.blocks.items()})


def estimate(
    net: Network,
    x: Tensor,
    y: Tensor,
    likelihood: Likelihood,
    fisher: Fisher,
    generator: torch.Generator,
    batch: int = 512,
    sharing: Sharing = "expand",
    bounded: bool = False,
) -> Curvature:
    """Estimates the block-diagonal Gauss-Newton matrix by KFAC.

    Args:
        net: the network; its parameters are left as they are.
        x: inputs `[N, channel, row, column]`; a batch at a time goes to the network's device.
        y: targets `[N]` or `[N, output]`, where `x` is.
        likelihood: of the targets.
        fisher: which columns of Lambda's square root are propagated.
        generator: source of drawn labels and random signs, on the network's device.
        batch: examples at a time; changes nothing but round-off and memory.
        sharing: KFAC-expand or KFAC-reduce, for weights that are used several times per example.
        bounded: whether to keep what bounds the determinants of the blocks. The examples of which the network is least
            certain then come first, and are a group whose inner products all count.

    Raises:
        TypeError: a parameter tensor has no handler, or its path did not record its use.
    """
    left: dict[str, Factor] = {}
    right: dict[str, Factor] = {}
    bounds: dict[str, list[Tensor]] = {}
    loss = torch.zeros((), dtype=torch.float64, device=net.device)
    width = 0
    batches = _least_certain_together(net, x, likelihood, batch) if bounded else in_order(x, batch)
    for number, ahead in enumerate(forward(net, x, y, likelihood, batches)):
        loss += ahead.loss
        width = ahead.outputs.shape[1]
        for key, use in ahead.uses.items():
            right[key] = plus(right.get(key), _right(use, sharing))
        for gradients in ahead.columns(likelihood, fisher, generator):
            for key, use in ahead.uses.items():
                found = gradients[key]
                left[key] = plus(left.get(key), _left(use, sharing, found), use.scale**2 / len(x))
                handler = handler_for(use.owner, use.tensor)
                if bounded and handler.rows is not None and not handler.whole:
                    bounds.setdefault(key, []).append(_bound(key, use, handler.rows, found, number == 0))
    joined = {key: torch.cat(found) for key, found in bounds.items()}
    blocks = {key: Kronecker(left[key], right[key], joined.get(key)) for key in right}
    return Curvature(float(loss), len(x), width, blocks)


@torch.no_grad()
def _right(use: Use, sharing: Sharing) -> Factor:
    return _factors(use, sharing).right(use.owner, use.inputs)


@torch.no_grad()
def _left(use: Use, sharing: Sharing, gradients: Tensor) -> Factor:
    return _factors(use, sharing).left(use.owner, use.inputs, gradients)


@torch.no_grad()
def _least_certain_together(net: Network, x: Tensor, likelihood: Likelihood, batch: int) -> list[Tensor]:
    """Indices of examples, a batch at a time; the first batch are those of which the network is least certain."""
    spread = torch.cat([likelihood.spread(net(inputs.to(net.device))) for inputs in x.split(batch)])
    order = torch.argsort(spread, descending=True, stable=True).to(x.device)
    return [order[:_TOGETHER], *(order[start : start + batch] for start in range(_TOGETHER, len(order), batch))]


@torch.no_grad()
def _bound(key: str, use: Use, rows: Rows, gradients: Tensor, together: bool) -> Tensor:
    """Eigenvalues of the Gram matrix of a batch's rows, or of its diagonal: their squared norms; float64 `[n]`."""
    if not together:
        return rows.squares(use.owner, use.inputs, gradients).double() * use.scale**2
    gram = rows.gram(use.owner, use.inputs, gradients)
    return symmetric_eigenvalues(gram.unsqueeze(0), f"{key}, examples") * use.scale**2


def _factors(use: Use, sharing: Sharing) -> Factors:
    return handler_for(use.owner, use.tensor).factors(sharing)
