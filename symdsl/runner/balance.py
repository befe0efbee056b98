"""Steps under which the candidates of a layer learn equally fast."""

from __future__ import annotations

from collections.abc import Iterable

from symdsl.analysis.facts import Candidate, Layer
from symdsl.analysis.symmetry import breaks


def balanced_steps(layers: Iterable[Layer]) -> dict[str, float]:
    """Factors, at most 1, on the steps of those tensors that would otherwise learn faster than what keeps a symmetry.

    A step of Adam moves every weight by about the learning rate, and a sum of m inputs by up to m times that (Yang et
    al. 2022, Tensor Programs V, table 3). So a candidate is learned the sooner the more inputs it sums, whatever is
    believed of it, and the evidence then finds what was learned. Where a candidate breaks a symmetry that another one
    of its layer keeps, a tensor of it with more inputs than any of those that break none steps by that much less.

    Args:
        layers: of the network.

    Returns:
        the factor by the tensor's key, `layer.candidate.tensor`; keys that are left out take whole steps.
    """
    factors = {}
    for layer in layers:
        preserved = [one.preserves for one in layer.candidates]
        breaking = {one.name: breaks(one.preserves, preserved) for one in layer.candidates}
        most = max(max(_inputs(one).values()) for one in layer.candidates if not breaking[one.name])
        for candidate in layer.candidates:
            for tensor, inputs in _inputs(candidate).items():
                if breaking[candidate.name] and inputs > most:
                    factors[f"{layer.name}.{candidate.name}.{tensor}"] = most / inputs
    return factors


def _inputs(candidate: Candidate) -> dict[str, int]:
    """How many inputs a sum by each tensor has: the side of its Kronecker factor A."""
    return {tensor.name: tensor.right.side for tensor in candidate.tensors}
