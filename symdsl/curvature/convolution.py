"""KFAC factors of CONV: W is used at every kept position.

Expand sums the outer products of the uses (Grosse & Martens 2016, eq. 13); reduce sums the uses of an example first
(Eschenhagen et al. 2023, eq. 22).
"""

from __future__ import annotations

import torch
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


def patch_sums(inputs: Tensor, kernel: int, stride: int) -> Tensor:
    """Every example's sum over kept positions of its circular patches; no patch is ever formed.

    Args:
        inputs: `[n, plane, row, column]`, aligned to the sampled phase.
        kernel: odd side S of the patch.
        stride: distance of kept positions.

    Returns:
        `[n, plane, S^2]`.
    """
    phases = inputs.unflatten(3, (-1, stride)).unflatten(2, (-1, stride)).sum((2, 4))
    half = kernel // 2
    taps = torch.arange(-half, half + 1, device=inputs.device) % stride
    sums: Tensor = phases[:, :, taps][..., taps].flatten(2)
    return sums


def summed_patch_moment(inputs: Tensor, kernel: int, stride: int) -> Tensor:
    """(1/R) sum_n a a^T, a the sum of an example's R patches: `[1, plane S^2, plane S^2]`, plane major."""
    uses = inputs.shape[2] * inputs.shape[3] / stride**2
    return moment_of_sums(patch_sums(inputs, kernel, stride).flatten(1), uses)


def summed_plane_gradients(gradients: Tensor) -> Tensor:
    """(1/R) sum_n g g^T, g summed over the R positions: `[n, plane, row, column] -> [1, plane, plane]`."""
    return moment_of_sums(gradients.sum((2, 3)), gradients.shape[2] * gradients.shape[3])


def moment_of_sums(sums: Tensor, uses: float) -> Tensor:
    """(1/R) sum_n s s^T of what each example sums over its R `uses`: `[n, side] -> [1, side, side]`."""
    return (sums.T @ sums).unsqueeze(0) / uses
