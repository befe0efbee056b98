"""The record of a finished search that `result.json` holds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from torch import Tensor

from symdsl.analysis.averages import averages
from symdsl.analysis.facts import Average, Candidate, Layer, Node
from symdsl.data import Dataset
from symdsl.evidence import Bound, Laplace
from symdsl.evidence.prior_updates import LARGEST_PRECISION
from symdsl.nn import outputs_of
from symdsl.runner.metrics import errors_by_target, evaluate_outputs, noise_by_target, noise_std
from symdsl.runner.shares import layer_shares, path_effective
from symdsl.runner.training import Trainer

KEPT_SHARE = 0.01
"""A candidate whose relative effective number is at least this is part of what was learned."""

Evidence = Laplace | Bound
"""The evidence as a result reports it."""


def describe_run(trainer: Trainer, dataset: Dataset, evidence: Evidence, test_outputs: Tensor) -> dict[str, Any]:
    """Return final metrics and the layer table (table 4 of Layer-wise Equivariances, 2023).

    Args:
        trainer: the trainer, done; its network in evaluation mode.
        dataset: its data.
        evidence: at the final parameters and priors.
        test_outputs: of the network for the test examples, `[example, output]`, which are used when the result is
            written and not before.
    """

    def measured(outputs: Tensor, targets: Tensor) -> dict[str, float | None]:
        likelihood, preprocessing = trainer.likelihood, dataset.preprocessing
        return evaluate_outputs(outputs, targets.to(outputs.device), likelihood, trainer.noise, preprocessing)

    train = measured(outputs_of(trainer.net, dataset.train.x), dataset.train.y)
    ranges = trainer.net.ranges()
    active = dict(trainer.net.active())
    found = [
        _average(begin, body, ranges) for begin, body in averages(trainer.facts.network.nodes) if begin.name in active
    ]
    return {
        "parameters": sum(layer.parameters for layer in trainer.facts.network.layers),
        "train": {name: value for name, value in train.items() if name != "ece"},
        "test": measured(test_outputs, dataset.test.y),
        "neg_log_evidence_per_example": dataset.preprocessing.nats - evidence.log_evidence() / evidence.examples,
        **(_of_targets(trainer, dataset, test_outputs) if trainer.likelihood.has_noise else {}),
        "layers": [_layer(record, trainer, evidence) for record in trainer.facts.network.layers],
        **({"averages": found} if found else {}),
    }


def _average(begin: Average, body: tuple[Node, ...], found: Mapping[str, float]) -> dict[str, Any]:
    """An average: the ranges that it began with and has, in the units of the language."""
    return {
        "name": begin.name,
        "samples": begin.samples,
        "fixed": begin.fixed,
        "start": dict(begin.ranges),
        "ranges": {name: found[f"{begin.name}.{name}"] for name, _ in begin.ranges},
        "layers": [node.name for node in body if isinstance(node, Layer)],
    }


def _of_targets(trainer: Trainer, dataset: Dataset, test_outputs: Tensor) -> dict[str, Any]:
    """The variance of the likelihood as it is trained, in the units of the targets, and of several what each has."""
    preprocessing, count = dataset.preprocessing, dataset.train.y.shape[1]
    found = {"noise": trainer.noise, "noise_std": noise_std(trainer.noise, count, preprocessing)}
    if count == 1:
        return found
    errors = errors_by_target(test_outputs, dataset.test.y.to(test_outputs.device), preprocessing)
    noises = noise_by_target(trainer.noise, count, preprocessing)
    parts = zip(preprocessing.names(count), errors, noises, strict=True)
    return found | {"targets": [{"name": name, "test_rmse": error, "noise_std": noise} for name, error, noise in parts]}


def _layer(record: Layer, trainer: Trainer, evidence: Evidence) -> dict[str, Any]:
    effective = evidence.effective_parameters()
    names = [candidate.name for candidate in record.candidates]
    shares = layer_shares(trainer.net, record, effective)
    pruned = trainer.net.layer(record.name).pruned
    bias = f"{record.name}.bias"
    left_out = record.name not in dict(trainer.net.active())
    chosen = None if left_out else max(names, key=lambda name: (name not in pruned, shares[name]))
    return {
        "name": record.name,
        "chosen": chosen,
        "kept": [] if left_out else [name for name in names if shares[name] >= KEPT_SHARE or name == chosen],
        "candidates": [
            {"kind": candidate.name, "parameters": candidate.parameters}
            | _candidate(f"{record.name}.{candidate.name}", candidate, evidence, effective)
            | {"relative": shares[candidate.name], "pruned": candidate.name in pruned}
            for candidate in record.candidates
        ],
        "bias": {
            "precision": evidence.precisions.get(bias, LARGEST_PRECISION),
            "weight_norm_sq": evidence.squared_norms.get(bias, 0.0),
            "effective": effective.get(bias, 0.0),
        },
    }


def _candidate(
    key: str, candidate: Candidate, evidence: Evidence, effective: Mapping[str, float]
) -> dict[str, float | list[float]]:
    tensors = [f"{key}.{tensor.name}" for tensor in candidate.tensors]
    total = path_effective(key, effective)
    return {
        "precision": [evidence.precisions.get(tensor, LARGEST_PRECISION) for tensor in tensors],
        "weight_norm_sq": math.fsum(evidence.squared_norms.get(tensor, 0.0) for tensor in tensors),
        "effective": total,
        "normalised": total / max(candidate.parameters, 1),
    }
