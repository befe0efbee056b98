"""KFAC-expand factors of CONV: W is used at every kept position (Grosse & Martens 2016, eq. 13)."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

from symdsl.nn.convolution import circular_pad


def patch_moment(inputs: Tensor, kernel: int, stride: int) -> Tensor:
    """sum_{n, t} a a^T over the circular patches a of each kept position t.

    Args:
        inputs: `[n, plane, row, column]`, aligned to the sampled phase.
        kernel: odd side S of the patch.
        stride: distance of kept positions.

    Returns:
        `[plane S^2, plane S^2]`, plane major.
    """
    patches = functional.unfold(circular_pad(inputs, kernel), kernel, stride=stride)
    a = patches.transpose(0, 1).flatten(1)
    return a @ a.T


def plane_gradients(gradients: Tensor) -> Tensor:
    """Mean over positions t of sum_n g g^T: `[n, plane, row, column] -> [1, plane, plane]`."""
    _, planes, rows, columns = gradients.shape
    g = gradients.transpose(0, 1).reshape(planes, -1)
    return (g @ g.T).unsqueeze(0) / (rows * columns)
