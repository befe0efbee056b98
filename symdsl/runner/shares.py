"""The share of the effective parameters of a layer that each of its candidates has."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from symdsl.analysis.facts import Facts
from symdsl.runner.start import layer_records


def tensors_of(path: str, keys: Iterable[str]) -> list[str]:
    """Return those of the `keys` that name a tensor of `path`, which is written `layer.path`."""
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


def layer_shares(facts: Facts, effective: Mapping[str, float]) -> dict[str, dict[str, float]]:
    """Return the relative effective number of every candidate, by layer and candidate; see `path_shares`."""
    return {
        layer.name: path_shares(layer.name, [one.name for one in layer.candidates], effective)
        for layer in layer_records(facts)
    }
