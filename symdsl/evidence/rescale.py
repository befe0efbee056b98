"""The mode of the objective in the scales of a network's tensors, and what effective numbers are worth there.

Laplace's evidence is that of a mode, which fixed numbers of steps end far from: a network larger than at its mode is
surer of what it fits than its prior allows. In the scales of `symdsl.nn.scaling` the mode follows from the outputs
alone.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from statistics import fmean, geometric_mean

import attrs
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from symdsl.evidence.loss import Likelihood
from symdsl.nn.scaling import ScaledLayer

LARGEST_OUTPUT_FACTOR = 2.0
"""Bound on the factor on the outputs, either way: the mode of a network that does not fit yet is zero."""

_LARGEST_FACTOR = 1e4
"""The same for what one layer hands to the next, so that no exponential overflows."""

Numbers = NDArray[np.float64]


@attrs.frozen(eq=False)
class _Scales:
    """The objective in the logarithms of the factors on what each layer writes.

    Attributes:
        layers: of the network.
        penalties: by key.
        reach: for each path, its layer's place.
        means: for each path, the geometric mean of its tensors' penalties: each one's, once they are equal.
        parts: for each path, the number of its tensors.
        biases: for each layer, the penalty of its bias.
    """

    layers: Sequence[ScaledLayer]
    penalties: Mapping[str, float]
    reach: NDArray[np.intp]
    means: Numbers
    parts: Numbers
    biases: Numbers

    @classmethod
    def of(cls, layers: Sequence[ScaledLayer], penalties: Mapping[str, float]) -> _Scales:
        paths = [(place, keys) for place, layer in enumerate(layers) for keys in layer.paths]
        return cls(
            layers,
            penalties,
            np.array([place for place, _ in paths], dtype=np.intp),
            np.array([geometric_mean(penalties[key] for key in keys) for _, keys in paths]),
            np.array([float(len(keys)) for _, keys in paths]),
            np.array([penalties[layer.bias] for layer in layers]),
        )

    def penalty(self, levels: Numbers) -> tuple[float, Numbers]:
        """1/2 sum_k penalty_k and its slopes."""
        pulls = self.means * np.exp(2 * np.diff(levels, prepend=0.0)[self.reach] / self.parts)
        held = self.biases * np.exp(2 * levels)
        by_layer = np.bincount(self.reach, pulls, len(levels))
        slopes = held + by_layer - np.append(by_layer[1:], 0.0)
        return 0.5 * float((self.parts * pulls).sum() + held.sum()), slopes

    def bounds(self) -> list[tuple[float, float]]:
        """Of each level."""
        limits = [math.log(_LARGEST_FACTOR)] * (len(self.layers) - 1) + [math.log(LARGEST_OUTPUT_FACTOR)]
        return [(-limit, limit) if one.free else (0.0, 0.0) for limit, one in zip(limits, self.layers, strict=True)]

    def factors(self, levels: Numbers) -> dict[str, float]:
        """On every tensor; those of a path have equal penalties afterwards."""
        found = {one.bias: math.exp(level) for one, level in zip(self.layers, levels, strict=True)}
        rises = np.diff(levels, prepend=0.0)[self.reach]
        paths = (keys for one in self.layers for keys in one.paths)
        for keys, rise, mean in zip(paths, rises, self.means, strict=True):
            for key in keys:
                found[key] = math.exp(rise / len(keys)) * math.sqrt(mean / self.penalties[key])
        return found


def mode_of_scales(
    layers: Sequence[ScaledLayer],
    penalties: Mapping[str, float],
    outputs: Tensor,
    targets: Tensor,
    likelihood: Likelihood,
    noise: float = 1.0,
) -> dict[str, float]:
    """The factors on a network's tensors that take the objective to its minimum along them.

    Minimises `loss(e^u outputs) / noise + 1/2 sum_k penalty_k`, summed over examples, e^u the factor on what the last
    layer writes, which stays within `LARGEST_OUTPUT_FACTOR`.

    Args:
        layers: as `scaled_layers` gives them; at least one.
        penalties: `delta_k ||theta_k||^2` of their tensors, by key.
        outputs: of the network, for all training examples, `[example, output]`.
        targets: of these examples.
        likelihood: of the targets.
        noise: variance of the Gaussian likelihood.

    Returns:
        A factor for every key in `layers`.
    """
    from scipy.optimize import minimize

    scales, exact = _Scales.of(layers, penalties), outputs.detach().double()

    def objective(levels: Numbers) -> tuple[float, Numbers]:
        u = exact.new_tensor(levels[-1]).requires_grad_()
        loss = likelihood.loss(exact * u.exp(), targets) / noise
        (slope,) = torch.autograd.grad(loss, u)
        value, slopes = scales.penalty(levels)
        slopes[-1] += float(slope)
        return (value + loss.item()) / len(exact), slopes / len(exact)

    found = minimize(
        objective,
        np.zeros(len(layers)),
        jac=True,
        method="L-BFGS-B",
        bounds=scales.bounds(),
        options={"maxiter": 1000, "maxcor": 30, "ftol": 1e-14, "gtol": 1e-9},
    )
    return scales.factors(found.x)


def shared_numbers(
    layers: Sequence[ScaledLayer], effective: Mapping[str, float], learned: Collection[str]
) -> dict[str, float]:
    """Effective numbers as precisions that are learned at modes go by them.

    Layers that trade factors have equal penalties at a mode, whatever their precisions, and the evidence of the mode
    does not change where a factor on one layer's precisions is taken back by another's. The slopes at fixed
    parameters know nothing of it; followed, they would take precisions, and with them the parameters, ever further
    apart. So such layers share their effective numbers, each as much of them as it has penalty at a mode; so do the
    tensors of one path. Within a layer every path and the bias keep their parts.

    Args:
        layers: as `scaled_layers` gives them.
        effective: effective number of each tensor.
        learned: keys of the tensors whose precision is learned; a layer with another one keeps its own number.
    """
    found = dict(effective)
    for chain in _chains(layers):
        members = [one for one in chain if _is_learned(one, learned) and _of_paths(one, effective) > 0]
        for one, factor in zip(members, _factors_on_numbers(members, effective), strict=True):
            found[one.bias] = factor * effective[one.bias]
            for keys in one.paths:
                found |= dict.fromkeys(keys, factor * fmean(effective[key] for key in keys))
    return found


def _factors_on_numbers(members: Sequence[ScaledLayer], effective: Mapping[str, float]) -> list[float]:
    """What makes the paths of each layer worth those and the bias of the layer before, at the same sum over layers."""
    paths = [_of_paths(one, effective) for one in members]
    growth = [1 + effective[one.bias] / number for one, number in zip(members, paths, strict=True)]
    relative = [math.prod(growth[:place]) for place in range(len(members) + 1)]
    total = math.fsum(number * more for number, more in zip(paths, growth, strict=True))
    share = total / math.fsum(relative[1:]) if members else 0.0
    return [share * part / number for part, number in zip(relative, paths, strict=False)]


def _chains(layers: Sequence[ScaledLayer]) -> Iterator[list[ScaledLayer]]:
    """Layers between which factors may be traded."""
    chain: list[ScaledLayer] = []
    for one in layers:
        chain.append(one)
        if not one.free:
            yield chain
            chain = []
    if chain:
        yield chain


def _is_learned(layer: ScaledLayer, learned: Collection[str]) -> bool:
    return all(key in learned for key in (layer.bias, *(key for keys in layer.paths for key in keys)))


def _of_paths(layer: ScaledLayer, effective: Mapping[str, float]) -> float:
    return math.fsum(fmean(effective[key] for key in keys) for keys in layer.paths)
