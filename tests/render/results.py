"""Results made by hand: what a search would write about a graph."""

from __future__ import annotations

from typing import Any

from symdsl.graph.build import layers


def result(graph, shares: dict[str, list[float]] | None, objective: str = "laplace") -> dict[str, Any]:  # type: ignore[no-untyped-def]
    return {
        "schema": 1,
        "spec": graph.graph["name"],
        "objective": objective,
        "seed": 7,
        "device": "cpu",
        "parameters": 123,
        "epochs": 2,
        "wall_s": {"total": 2.0, "training": 1.5, "evidence": 0.5},
        "train": {"accuracy": 0.99, "nll": 0.01},
        "test": {"accuracy": 0.957, "nll": 0.12, "ece": 0.02},
        "neg_log_evidence_per_example": 0.5 if shares is not None else None,
        "layers": [_layer(layer, None if shares is None else shares.get(layer.name, [1.0])) for layer in layers(graph)],
    }


def _layer(layer, shares: list[float] | None) -> dict[str, Any]:  # type: ignore[no-untyped-def]
    names = [candidate.name for candidate in layer.candidates]
    if shares is None:
        return {
            "name": layer.name,
            "chosen": None,
            "kept": names,
            "candidates": [_candidate(candidate, None) for candidate in layer.candidates],
        }
    return {
        "name": layer.name,
        "chosen": names[shares.index(max(shares))],
        "kept": [name for name, share in zip(names, shares, strict=True) if share >= 0.01],
        "candidates": [_candidate(*pair) for pair in zip(layer.candidates, shares, strict=True)],
    }


def _candidate(candidate, share: float | None) -> dict[str, Any]:  # type: ignore[no-untyped-def]
    learned = share is not None
    return {
        "kind": candidate.name,
        "parameters": candidate.parameters,
        "precision": [3588348.5 if share == 0 else 0.0751] * len(candidate.tensors),
        "weight_norm_sq": [0.0 if share == 0 else 10.74] * len(candidate.tensors),
        "effective": share * 40 if learned else None,
        "normalised": share * 0.8 if learned else None,
        "relative": share,
    }
