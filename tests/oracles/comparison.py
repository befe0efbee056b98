"""Random numbers, and comparisons that no wrong value, wrong shape or NaN passes."""

from __future__ import annotations

import torch
from torch import Tensor


def assert_same(found: Tensor, expected: Tensor, relative: float = 1e-10) -> None:
    """Demands equal shapes, finite numbers, and a difference below `relative` times the largest expected number."""
    assert found.shape == expected.shape, f"shape {tuple(found.shape)} is not {tuple(expected.shape)}"
    assert bool(torch.isfinite(found).all()), "found a number that is not finite"
    assert bool(torch.isfinite(expected).all()), "expected a number that is not finite"
    worst = float((found.detach().double() - expected.detach().double()).abs().max()) if found.numel() else 0.0
    scale = max(float(expected.detach().double().abs().max()), 1e-300) if found.numel() else 1.0
    assert worst <= relative * scale, f"largest difference {worst:g} exceeds {relative:g} of {scale:g}"


def noise(*shape: int, seed: int = 0) -> Tensor:
    """Return standard normal numbers in float64 that depend on shape and seed alone."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
