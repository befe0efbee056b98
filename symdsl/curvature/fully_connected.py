"""KFAC-expand factors of FC: W is used once per example (R = 1)."""

from __future__ import annotations

from torch import Tensor

from symdsl.curvature.kronecker import Factor, outer_products


def fully_connected_inputs(inputs: Tensor) -> Factor:
    """A = sum_n a a^T over whole examples: `[n, plane, row, column] -> [1, C X, C X]`, of rank n at most."""
    return outer_products(inputs.flatten(1))


def fully_connected_gradients(gradients: Tensor) -> Factor:
    """sum_n g g^T over whole outputs: `[n, plane, row, column] -> [1, C' Y, C' Y]`, of rank n at most."""
    return fully_connected_inputs(gradients)
