"""The exact Gauss-Newton block of a layer's bias."""

from __future__ import annotations

from torch import Tensor


def bias_gradients(gradients: Tensor, order: int) -> Tensor:
    """sum_n j j^T, j the gradient in the bias: summed over positions and group elements before the product.

    Args:
        gradients: in the layer's output, `[n, C' |G|, row, column]`.
        order: |G|.

    Returns:
        `[1, C', C']`.
    """
    j: Tensor = gradients.sum((2, 3)).unflatten(1, (-1, order)).sum(2)
    return (j.T @ j).unsqueeze(0)
