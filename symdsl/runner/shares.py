"""The record of an evidence step: effective parameters, and each candidate's share of those of its layer."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

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
        "shares": {
            layer.name: path_shares(layer.name, [one.name for one in layer.candidates], effective)
            for layer in trainer.facts.network.layers
        },
        "noise": trainer.noise,
        **({"ranges": ranges} if ranges else {}),
        "pruned": list(pruned),
    }
