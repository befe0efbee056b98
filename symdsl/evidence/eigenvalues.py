"""Eigenvalues of symmetric matrices that a search can rely on."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from symdsl.diagnostics import NumericalError

CHEAP_SIDE = 4096
"""Up to this side the float64 routine costs seconds at most and is used from the start."""

_JITTER = 1e-10


def symmetric_eigenvalues(matrices: Tensor, name: str) -> Tensor:
    """Return the eigenvalues of positive semi-definite matrices, with negative round-off clamped to zero.

    The float32 routine both raises and returns NaN on rank-deficient blocks, so every answer is checked and the
    computation is repeated more carefully until one is finite.

    Args:
        matrices: `[block, side, side]`, symmetric up to round-off.
        name: what they are, for the message of an error.

    Returns:
        float64 `[block * side]`.

    Raises:
        NumericalError: the matrices are not finite, or no attempt gave finite eigenvalues.
    """
    if not bool(torch.isfinite(matrices).all()):
        raise NumericalError(f"the curvature of {name} is not finite")
    symmetric = (matrices + matrices.mT) / 2
    for attempt in _attempts(symmetric):
        try:
            values: Tensor = torch.linalg.eigvalsh(attempt)
        except torch.linalg.LinAlgError:
            continue
        if bool(torch.isfinite(values).all()):
            return values.to(matrices.device, torch.float64).clamp(min=0).flatten()
    smallest = float(symmetric.diagonal(dim1=-2, dim2=-1).min())
    raise NumericalError(
        f"the eigenvalues of the curvature of {name} did not converge (smallest diagonal {smallest:g})"
    )


def _attempts(matrices: Tensor) -> Iterator[Tensor]:
    """Yield what the routine is tried on, each time more carefully: wider, with a ridge, and on the CPU."""
    if matrices.shape[-1] > CHEAP_SIDE:
        yield matrices
    wide = matrices.double()
    yield wide
    size = wide.diagonal(dim1=-2, dim2=-1).mean(-1)[:, None, None]
    jittered = wide + _JITTER * size * torch.eye(wide.shape[-1], dtype=wide.dtype, device=wide.device)
    yield jittered
    yield jittered.cpu()
