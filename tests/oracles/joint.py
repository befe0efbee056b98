"""Gradients in three tensors with a known spectrum, and their determinant from the whole matrix."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

SIZES = {"a": 100, "b": 160, "c": 10}


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def rows(decay: float, count: int = 300, sizes: Mapping[str, int] = SIZES) -> dict[str, Tensor]:
    """Parts of rows, which say in part the same of the examples; singular values across rows fall as n^(-decay/2)."""
    across, _ = torch.linalg.qr(torch.randn(count, count, generator=generator(), dtype=torch.float64))
    scales = torch.arange(1, count + 1, dtype=torch.float64) ** (-decay / 2)
    basis = across * scales @ across.T
    return {
        key: basis @ torch.randn(count, size, generator=generator(seed), dtype=torch.float64)
        for seed, (key, size) in enumerate(sizes.items())
    }


def exactly(found: Mapping[str, Tensor], precisions: Mapping[str, float]) -> tuple[float, dict[str, float]]:
    """log det(I + D^-1/2 H D^-1/2), D of all precisions, and effective numbers from the whole matrix."""
    scaled = torch.cat([part / math.sqrt(precisions[key]) for key, part in found.items()], 1)
    whole = scaled.T @ scaled
    ridge = whole + torch.eye(len(whole), dtype=whole.dtype)
    known = torch.linalg.solve(ridge, whole).diagonal()
    numbers = [float(some.sum()) for some in known.split([part.shape[1] for part in found.values()])]
    return float(torch.logdet(ridge)), dict(zip(found, numbers, strict=True))


def precisions_for(found: Mapping[str, Tensor], effective: float) -> dict[str, float]:
    """Unequal precisions at which the whole has so many effective parameters."""
    low, high = -40.0, 40.0
    for _ in range(40):
        middle = (low + high) / 2
        more = sum(exactly(found, unequal(middle))[1].values()) > effective
        low, high = (middle, high) if more else (low, middle)
    return unequal(low)


def unequal(log_precision: float) -> dict[str, float]:
    return {key: math.exp(log_precision + shift) for shift, key in enumerate(SIZES)}
