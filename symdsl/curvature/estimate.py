"""One pass over the data: the Kronecker factors of every parameter tensor."""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import torch
from torch import Tensor

from symdsl.curvature.eigen import symmetric_eigenvalues
from symdsl.curvature.fisher import Fisher
from symdsl.curvature.handlers import Factors, Sharing, handler_for
from symdsl.curvature.kronecker import Factor, Kronecker, gram, plus
from symdsl.curvature.likelihood import Likelihood
from symdsl.curvature.rows import Rows
from symdsl.curvature.sketch import Sketch
from symdsl.nn import Network, Use

_TOGETHER = 256
"""Examples of which a network is least certain that bound determinants as a group."""


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
    bounded: bool = False,
    sketch: int = 0,
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
        sketch: dimensions to which the gradients of single examples are projected, for determinants that are not the
            Kronecker product's; 0 for none. The projections are drawn from `generator`.

    Raises:
        TypeError: a parameter tensor has no handler, or its path did not record its use.
    """
    left: dict[str, Factor] = {}
    right: dict[str, Factor] = {}
    bounds: dict[str, list[Tensor]] = {}
    projections: dict[str, Sketch] = {}
    sketches: dict[str, Factor] = {}
    loss = torch.zeros((), dtype=torch.float64, device=net.device)
    width = 0
    for index, together in _batches(net, x, likelihood, batch, bounded):
        inputs, targets = x[index].to(net.device), y[index].to(net.device)
        uses: dict[str, Use] = {}
        outputs = net(inputs, uses)
        _check_complete(net, uses)
        width = outputs.shape[1]
        loss += likelihood.loss(outputs.detach(), targets)
        for key, use in uses.items():
            right[key] = plus(right.get(key), _right(use, sharing))
        for gradients in _pulled_back(outputs, uses, fisher.columns(likelihood, outputs.detach(), generator)):
            for key, use in uses.items():
                found = gradients[id(use.output)]
                left[key] = plus(left.get(key), _left(use, sharing, found), use.scale**2 / len(x))
                rows = handler_for(use.owner, use.tensor).rows
                if rows is None:
                    continue
                if bounded:
                    bounds.setdefault(key, []).append(_bound(key, use, rows, found, together))
                if sketch:
                    if key not in projections:
                        projections[key] = Sketch(getattr(use.owner, use.tensor).numel(), sketch, generator)
                    moment = _sketched(use, rows, found, projections[key])
                    sketches[key] = plus(sketches.get(key), moment, use.scale**2)
    joined = {key: torch.cat(found) for key, found in bounds.items()}
    blocks = {key: Kronecker(left[key], right[key], joined.get(key), sketches.get(key)) for key in right}
    return Curvature(blocks, float(loss), len(x), width)


def _check_complete(net: Network, uses: dict[str, Use]) -> None:
    for key, parameter in net.tensors().items():
        if parameter.requires_grad and key not in uses:
            raise TypeError(f"the use of `{key}` was not recorded, so that it would have no curvature")


@torch.no_grad()
def _right(use: Use, sharing: Sharing) -> Factor:
    return _factors(use, sharing).right(use.owner, use.inputs)


@torch.no_grad()
def _left(use: Use, sharing: Sharing, gradients: Tensor) -> Factor:
    return _factors(use, sharing).left(use.owner, use.inputs, gradients)


def _batches(
    net: Network, x: Tensor, likelihood: Likelihood, batch: int, bounded: bool
) -> Iterator[tuple[Tensor, bool]]:
    """Indices of examples, a batch at a time, and whether these bound determinants as a group."""
    order = _least_certain_first(net, x, likelihood, batch) if bounded else torch.arange(len(x), device=x.device)
    group = min(_TOGETHER, len(x)) if bounded else 0
    if group:
        yield order[:group], True
    for start in range(group, len(x), batch):
        yield order[start : start + batch], False


@torch.no_grad()
def _least_certain_first(net: Network, x: Tensor, likelihood: Likelihood, batch: int) -> Tensor:
    spread = torch.cat([likelihood.spread(net(inputs.to(net.device))) for inputs in x.split(batch)])
    return torch.argsort(spread, descending=True, stable=True).to(x.device)


@torch.no_grad()
def _bound(key: str, use: Use, rows: Rows, gradients: Tensor, together: bool) -> Tensor:
    """Eigenvalues of the Gram matrix of a batch's rows, or of its diagonal: their squared norms; float64 `[n]`."""
    if not together:
        return rows.squares(use.owner, use.inputs, gradients).double() * use.scale**2
    gram = rows.gram(use.owner, use.inputs, gradients)
    return symmetric_eigenvalues(gram.unsqueeze(0), f"{key}, examples") * use.scale**2


@torch.no_grad()
def _sketched(use: Use, rows: Rows, gradients: Tensor, projection: Sketch) -> Tensor:
    """Sum of the outer products of a batch's projected rows, `[w, w]`."""
    return gram(projection(rows.parts(use.owner, use.inputs, gradients)))


def _factors(use: Use, sharing: Sharing) -> Factors:
    return handler_for(use.owner, use.tensor).factors(sharing)


def _pulled_back(outputs: Tensor, uses: dict[str, Use], columns: Iterator[Tensor]) -> Iterator[dict[int, Tensor]]:
    targets = {id(use.output): use.output for use in uses.values()}
    for column in columns:
        gradients = torch.autograd.grad(outputs, list(targets.values()), column, retain_graph=True)
        yield dict(zip(targets, gradients, strict=True))
