"""From a learner's final state to the record that `result.json` holds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from symdsl.analysis.facts import Candidate, Layer
from symdsl.data import Dataset, Examples
from symdsl.data.preprocessing import Preprocessing
from symdsl.evidence import Laplace
from symdsl.evidence.prior_updates import LARGEST_PRECISION
from symdsl.runner.learner import Learner, layer_records, path_shares
from symdsl.runner.metrics import evaluate_outputs, noise_std, outputs_of

KEPT_SHARE = 0.01
"""A candidate whose relative effective number is at least this is part of what was learned."""


def describe_run(learner: Learner, dataset: Dataset, laplace: Laplace) -> dict[str, Any]:
    """Final metrics and the layer table (table 4 of Layer-wise Equivariances, 2023).

    The test examples are looked at when the result is written, and never before.

    Args:
        learner: the learner, done.
        dataset: its data.
        laplace: the approximation at the final parameters and priors.
    """
    return {
        "parameters": sum(parameter.numel() for parameter in learner.net.parameters()),
        "train": _without(measure(learner, dataset.train, dataset.preprocessing), "ece"),
        "test": measure(learner, dataset.test, dataset.preprocessing),
        "neg_log_evidence_per_example": dataset.preprocessing.nats - laplace.log_evidence() / laplace.examples,
        **(_noise(learner, dataset) if learner.likelihood.has_noise else {}),
        "layers": [_layer(record, learner, laplace) for record in layer_records(learner.facts)],
    }


def measure(learner: Learner, examples: Examples, preprocessing: Preprocessing) -> dict[str, float | None]:
    """Metrics of the learner's network on some examples; see `evaluate_outputs`."""
    learner.net.eval()
    outputs, targets = outputs_of(learner.net, examples.x), examples.y.to(learner.device)
    return evaluate_outputs(outputs, targets, learner.likelihood, learner.noise, preprocessing)


def _noise(learner: Learner, dataset: Dataset) -> dict[str, float]:
    """The variance of the likelihood as it is trained, and what it is in the units of the targets."""
    targets = dataset.train.y.shape[1]
    return {"noise": learner.noise, "noise_std": noise_std(learner.noise, targets, dataset.preprocessing)}


def _without(metrics: dict[str, float | None], key: str) -> dict[str, float | None]:
    return {name: value for name, value in metrics.items() if name != key}


def _layer(record: Layer, learner: Learner, laplace: Laplace) -> dict[str, Any]:
    effective = laplace.effective_parameters()
    names = [candidate.name for candidate in record.candidates]
    shares = path_shares(record.name, names, effective)
    off = dict(learner.net.layers())[record.name].off
    bias = f"{record.name}.bias"
    chosen = max(names, key=lambda name: shares[name])
    return {
        "name": record.name,
        "chosen": chosen,
        "kept": [name for name in names if shares[name] >= KEPT_SHARE or name == chosen],
        "candidates": [
            {"kind": candidate.name, "parameters": candidate.parameters}
            | _candidate(f"{record.name}.{candidate.name}", candidate, laplace, effective)
            | {"relative": shares[candidate.name], "off": candidate.name in off}
            for candidate in record.candidates
        ],
        "bias": {
            "precision": laplace.precisions[bias],
            "weight_norm_sq": laplace.squared_norms[bias],
            "effective": effective[bias],
        },
    }


def _candidate(
    key: str, candidate: Candidate, laplace: Laplace, effective: Mapping[str, float]
) -> dict[str, float | list[float]]:
    tensors = [f"{key}.{tensor.name}" for tensor in candidate.tensors]
    total = math.fsum(effective.get(tensor, 0.0) for tensor in tensors)
    return {
        "precision": [laplace.precisions.get(tensor, LARGEST_PRECISION) for tensor in tensors],
        "weight_norm_sq": math.fsum(laplace.squared_norms.get(tensor, 0.0) for tensor in tensors),
        "effective": total,
        "normalised": total / candidate.parameters,
    }
