"""Factors on whole parameter tensors that leave a network's function as it is, but for a factor on its outputs.

Layers without their biases, ReLU, pooling and projections are positively homogeneous: what a layer writes may be e^u
times as large if all its paths and its bias are, and the next layer's paths take the factor back.
"""

from __future__ import annotations

import attrs
from torch import nn

from symdsl.nn.maps import Flatten, Lift, Pool, Project
from symdsl.nn.network import Activation, Network
from symdsl.nn.relaxed import BIAS, RelaxedLayer

_HOMOGENEOUS = (Flatten, Lift, Pool, Project)


@attrs.frozen
class ScaledLayer:
    """What factors on a layer's tensors may do.

    With e^u the factor on what a layer writes and e^v that on what it reads, its bias takes e^u and each of its paths
    e^(u - v), in parts on the tensors it is linear in.

    Attributes:
        paths: the keys of these tensors, path by path; without paths that are off or write nothing but zeros.
        bias: the key of the bias.
        free: whether what the layer writes may take a factor. The input of the network may not.
    """

    paths: tuple[tuple[str, ...], ...]
    bias: str
    free: bool


def scaled_layers(net: Network) -> tuple[ScaledLayer, ...]:
    """The layers of a network in order.

    Around a layer without a path that takes a factor nothing is free, nor is it before what is not homogeneous.
    """
    found: list[ScaledLayer] = []
    for name, stage in net.stages.items():
        if isinstance(stage, RelaxedLayer):
            paths = _paths(name, stage)
            if not paths:
                _hold(found)
            found.append(ScaledLayer(paths, f"{name}.{BIAS}", free=bool(paths)))
        elif not _is_homogeneous(stage):
            _hold(found)
    return tuple(found)


def _hold(layers: list[ScaledLayer]) -> None:
    if layers:
        layers[-1] = attrs.evolve(layers[-1], free=False)


def _is_homogeneous(stage: nn.Module) -> bool:
    return stage.homogeneous if isinstance(stage, Activation) else isinstance(stage, _HOMOGENEOUS)


def _paths(layer: str, stage: RelaxedLayer) -> tuple[tuple[str, ...], ...]:
    """Of the paths that write anything; of none if one of them takes no factor."""
    found = []
    for name, path in stage.active():
        if not path.linear_in:
            return ()
        if all(bool(path.get_parameter(tensor).detach().any()) for tensor in path.linear_in):
            found.append(tuple(f"{layer}.{name}.{tensor}" for tensor in path.linear_in))
    return tuple(found)
