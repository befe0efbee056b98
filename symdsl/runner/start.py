"""Where a search begins: the weights of candidates that break a symmetry, and the prior of every parameter tensor."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Literal

import attrs
import torch
from torch import Tensor

from symdsl import lowering, ranks
from symdsl.analysis.facts import Candidate, Facts, Layer, Prior
from symdsl.analysis.symmetry import breaks
from symdsl.catalog.searches import FEW_EXAMPLES
from symdsl.nn import Network, Path, evaluation_mode, read_by
from symdsl.runner.device import stream

StartKind = Literal["relaxed", "symmetric"]

SETTLING_EXAMPLES = 256
"""Training examples, of which the correlations that initial weights are scaled to are taken."""


@attrs.frozen
class Start:
    """The precisions of the priors that a search begins with, which of them it may move, and the scales of its steps.

    Attributes:
        precisions: of every parameter tensor's prior.
        learned: keys of the tensors whose precision the search may move.
        scales: what the learning rate of every tensor is multiplied by; see `full_scales`.
        zero: keys of the tensors that a symmetric start sets to zero.
    """

    precisions: dict[str, float]
    learned: frozenset[str]
    scales: dict[str, float]
    zero: frozenset[str] = frozenset()


def stated_start(net: Network, facts: Facts) -> Start:
    """Return the priors as the spec has them, from which MAP never moves.

    Args:
        net: the network with its initial weights.
        facts: the checked spec.
    """
    priors = _priors(facts)
    return Start(
        {key: prior.precision for key, prior in priors.items()},
        frozenset(key for key, prior in priors.items() if prior.learned),
        full_scales(net, facts),
    )


def starts(facts: Facts, examples: int) -> tuple[StartKind, ...]:
    """Return how a search may start, the first one first; only one where no candidate breaks a symmetry.

    Args:
        facts: the checked spec.
        examples: training examples, which decide where the spec does not.
    """
    stated = facts.search.start or ("both" if examples <= FEW_EXAMPLES else "relaxed")
    if stated != "both":
        return (stated,)
    return ("relaxed", "symmetric") if any(_breaking(facts)) else ("relaxed",)


def begin(net: Network, facts: Facts, examples: int, kind: StartKind | None = None) -> Start:
    """Return the priors that a search starts from, and set the weights of a symmetric start.

    Every candidate that breaks a symmetry which another of its layer keeps starts near the limit in which it does not.
    Relaxed: its weights are at a tenth of their scale, which is how the network was built. Symmetric: the tensor on its
    output side is zero, so that the network has the symmetry at first. The gradient in that tensor tells from the first
    step on whether the data ask for the candidate; with all tensors of the product small it would vanish (as in LoRA,
    Hu et al. 2022). A network that can fit all of a few examples by its symmetric candidates alone would never ask.

    Where a network fits all of a few examples, the curvature vanishes and learned priors hold nothing back. So there
    the other tensors of the product have fixed priors, of the scale that they start at, unless the spec states theirs.

    Args:
        net: the network with its initial weights; a symmetric start changes them.
        facts: the checked spec.
        examples: training examples.
        kind: how to start; left out, the first of `starts`.
    """
    start = stated_start(net, facts)
    if (kind or starts(facts, examples)[0]) == "relaxed":
        return start
    held, zero = dict[str, Tensor](), set[str]()
    for layer, candidate in _breaking(facts):
        path, place = net.layer(layer.name).paths[candidate.name], f"{layer.name}.{candidate.name}"
        if isinstance(path, Path) and path.linear_in:  # one without says nothing of sides, and stays as it is
            output, *inputs = path.linear_in
            path.get_parameter(output).detach().zero_()
            zero.add(f"{place}.{output}")
            held |= {f"{place}.{name}": path.get_parameter(name).detach() for name in inputs}
    if examples > FEW_EXAMPLES:
        return attrs.evolve(start, zero=frozenset(zero))
    unstated = {key for key, prior in _priors(facts).items() if prior.learned and not prior.stated}
    at_scale = {key: float(1 / held[key].square().mean()) for key in unstated & held.keys()}
    return Start(start.precisions | at_scale, start.learned - at_scale.keys(), start.scales, frozenset(zero))


@torch.no_grad()
def settle(net: Network, x: Tensor, seed: int) -> None:
    """Rescale correlated initial weights to the correlations in what they read.

    A sum of basis functions adds up neighbouring pixels, which in a photograph are alike. Its initial scale is for
    independent ones, and so makes outputs too large, by an order of magnitude where basis functions are wide. The same
    numbers, drawn at random for every position, show by how much. Layers are settled one after the other.

    Args:
        net: the network with its initial weights.
        x: training images, `[example, channel, row, column]`, of which `SETTLING_EXAMPLES` are drawn.
        seed: of what is drawn.
    """
    x = x[torch.randperm(len(x), generator=stream("cpu", seed, "settling"))[:SETTLING_EXAMPLES]].to(net.device)
    generator = stream("cpu", seed, "orders")
    with evaluation_mode(net):
        for _, layer in net.layers():
            paths = [path for _, path in layer.active() if path.correlated and path.linear_in]
            if not paths:
                continue
            read = read_by(net, layer, x)
            drawn = torch.randint(read.numel(), read.shape, generator=generator)
            apart = read.flatten()[drawn.to(read.device)]
            for path in paths:
                found, meant = (path(one).double().square().mean() for one in (read, apart))
                if found > 0 and meant > 0:
                    factor = ranks.from_first(partial(float, (meant / found) ** 0.5))
                    path.get_parameter(path.linear_in[-1]).mul_(factor)


def full_scales(net: Network, facts: Facts) -> dict[str, float]:
    """Return the root mean square of every tensor's weights, by key, as if no candidate and no layer started small.

    A candidate may start at a share of its scale, and the last layer of a residual block does. A tensor that starts at
    zero has 1, the scale of what layers write.

    Args:
        net: the network with its initial weights, none of which a symmetric start has set to zero.
        facts: the checked spec.
    """
    initial = lowering.initial_scales(facts.network.nodes)
    small: dict[str, float] = {}
    for layer in facts.network.layers:
        for candidate in layer.candidates:
            path = net.layer(layer.name).paths[candidate.name]
            factors = path.linear_in if isinstance(path, Path) else ()
            for name in factors:
                scale = candidate.init_scale * initial[layer.name].std
                small[f"{layer.name}.{candidate.name}.{name}"] = scale ** (1 / len(factors))
    tensors = net.tensors()
    sizes = {key: (norm / tensors[key].numel()) ** 0.5 for key, norm in net.squared_norms(tensors).items()}
    return {key: size / small.get(key, 1.0) if size else 1.0 for key, size in sizes.items()}


def _priors(facts: Facts) -> dict[str, Prior]:
    """The prior of every parameter tensor, by key, as the spec has it."""
    found: dict[str, Prior] = {}
    for layer in facts.network.layers:
        for candidate in layer.candidates:
            found |= {f"{layer.name}.{candidate.name}.{tensor.name}": tensor.prior for tensor in candidate.tensors}
        if layer.bias is not None:
            found[f"{layer.name}.bias"] = layer.bias
    return found


def _breaking(facts: Facts) -> Iterator[tuple[Layer, Candidate]]:
    """Yield every candidate that breaks a symmetry which another candidate of its layer keeps."""
    for layer in facts.network.layers:
        preserved = [one.preserves for one in layer.candidates]
        yield from ((layer, one) for one in layer.candidates if breaks(one.preserves, preserved))
