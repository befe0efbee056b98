"""The record of an evidence step: effective parameters, and each candidate's share of those of its layer."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from symdsl.analysis.facts import Layer
from symdsl.nn import Network
from symdsl.runner.training import Trainer


def tensors_of(path: str, keys: Iterable[str]) -> list[str]:
    """Return those of the `keys` that name a tensor of `path`, which is written `layer.path`, or of a whole layer."""
    return [key for key in keys if key.startswith(f"{path}.")]


def path_effective(path: str, effective: Mapping[str, float]) -> float:
    """Return the effective number of parameters of `path`, which is written `layer.path`: 0 if it is pruned."""
    return math.fsum(effective[key] for key in tensors_of(path, effective))


def path_shares(layer: str, paths: Iterable[str], effective: Mapping[str, float]) -> dict[str, float]:
    """Return the relative effective number of each path of a layer: 0 for paths that are pruned.

    Args:
        layer: the layer's name.
        paths: the layer's path names.
        effective: effective number of each parameter tensor, keyed `layer.path.tensor`.
    """
    sums = {path: path_effective(f"{layer}.{path}", effective) for path in paths}
    total = math.fsum(sums.values())
    return {path: value / total if total > 0 else 0.0 for path, value in sums.items()}


def layer_shares(net: Network, layer: Layer, effective: Mapping[str, float]) -> dict[str, float]:
    """Return the share of each candidate of a layer, by name: its relative effective number.

    A single candidate that is in use has all, also one without an effective number, fixed or a point estimate.
    """
    names = [candidate.name for candidate in layer.candidates]
    if len(names) == 1 and layer.name in dict(net.active()):
        return {names[0]: 1.0}
    return path_shares(layer.name, names, effective)


def evidence_record(
    trainer: Trainer, neg_log_evidence: float, effective: Mapping[str, float], pruned: Sequence[str] = ()
) -> dict[str, Any]:
    """Return what `metrics.jsonl` has of an evidence step.

    Args:
        trainer: the network, its priors and its noise.
        neg_log_evidence: in nats per training example.
        effective: effective number of each parameter tensor.
        pruned: `layer.path` of every path that was pruned.
    """
    ranges = trainer.net.ranges()
    return {
        "neg_log_evidence_per_example": neg_log_evidence,
        "precisions": dict(trainer.precisions),
        "effective": effective,
        "shares": {layer.name: layer_shares(trainer.net, layer, effective) for layer in trainer.facts.network.layers},
        "noise": trainer.noise,
        **({"ranges": ranges} if ranges else {}),
        "pruned": list(pruned),
    }
