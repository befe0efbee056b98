"""The gradient in a layer's bias."""

from __future__ import annotations

from torch import Tensor


def bias_jacobian(gradients: Tensor, order: int) -> Tensor:
    """The gradient of every example in the bias, summed over positions and group elements.

    Args:
        gradients: in the layer's output, `[n, C' |G|, row, column]`.
        order: |G|.

    Returns:
        `[n, C']`.
    """
    jacobian: Tensor = gradients.sum((2, 3)).unflatten(1, (-1, order)).sum(2)
    return jacobian
