"""KFAC-expand factors of F-FC's two tensors, with the block structure that their sharing gives.

w2 makes z[:, c] from plane c: it is used C times, each time reading a slot of its own, so A has one block per input
plane. w1 makes y[c', :] from z[c', :]: used C' times, one block per output plane. No block is ever densified.
"""

from __future__ import annotations

from torch import Tensor

from symdsl.curvature.kronecker import gram
from symdsl.nn.factored import turned


def input_planes(inputs: Tensor) -> Tensor:
    """A of w2, one block per input plane: `[n, C, row, column] -> [C, X, X]`, summed over examples."""
    return gram(inputs.flatten(2).transpose(0, 1))


def mixed_gradients(gradients: Tensor) -> Tensor:
    """Mean over input planes c of sum_n g g^T, g the gradient in z[:, c]: `[n, C', C] -> [1, C', C']`."""
    g = gradients.transpose(0, 1).flatten(1)
    return (g @ g.T).unsqueeze(0) / gradients.shape[2]


def output_planes(mixed: Tensor) -> Tensor:
    """A of w1, one block per output plane: z `[n, C', C] -> [C', C, C]`, summed over examples."""
    return gram(mixed.transpose(0, 1))


def position_gradients(gradients: Tensor) -> Tensor:
    """Mean over output planes c' of sum_n g g^T, g the gradient in y[c', :]: `[n, C', row, column] -> [1, Y, Y]`."""
    g = gradients.flatten(2).flatten(0, 1)
    return gram(g).unsqueeze(0) / gradients.shape[1]


def plane_uses(inputs: Tensor, gradients: Tensor) -> tuple[Tensor, Tensor]:
    """What w2 reads of every input plane and the gradient in what it makes of it: `[n, C, X]` and `[n, C, C']`."""
    return inputs.flatten(2), turned(gradients.transpose(0, 1))
