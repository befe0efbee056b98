"""KFAC-expand factors of FC: W is used once per example (R = 1)."""

from __future__ import annotations

from torch import Tensor

from symdsl.curvature.kronecker import gram


def fully_connected_inputs(inputs: Tensor) -> Tensor:
    """A = sum_n a a^T over whole examples: `[n, plane, row, column] -> [1, C X, C X]`."""
    return gram(inputs.flatten(1)).unsqueeze(0)


def fully_connected_gradients(gradients: Tensor) -> Tensor:
    """sum_n g g^T over whole outputs: `[n, plane, row, column] -> [1, C' Y, C' Y]`."""
    return fully_connected_inputs(gradients)
