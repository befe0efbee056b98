"""How the dense paths use their weights.

FC uses `w` once per example (R = 1). Of F-FC, w2 makes z[:, c] from plane c: it is used C times, each time reading a
slot of its own, so A has one block per input plane. w1 makes y[c', :] from z[c', :]: used C' times, one block per
output plane. No block is ever densified.
"""

from __future__ import annotations

from torch import Tensor

from symdsl.evidence.kfac import Factor, gram, outer_products
from symdsl.evidence.rows import Rows
from symdsl.evidence.weight_use import Handler
from symdsl.kinds.dense.module import turned
from symdsl.nn import Path


def fully_connected_inputs(inputs: Tensor) -> Factor:
    """A = sum_n a a^T over whole examples: `[n, plane, row, column] -> [1, C X, C X]`, of rank n at most."""
    return outer_products(inputs.flatten(1))


def fully_connected_gradients(gradients: Tensor) -> Factor:
    """sum_n g g^T over whole outputs: `[n, plane, row, column] -> [1, C' Y, C' Y]`, of rank n at most."""
    return fully_connected_inputs(gradients)


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


_FULLY_CONNECTED: dict[str, Handler] = {
    "w": Handler.unshared(
        right=lambda path, inputs: fully_connected_inputs(inputs),
        left=lambda path, inputs, gradients: fully_connected_gradients(gradients),
        rows=Rows.once(lambda path, inputs, gradients: (inputs.flatten(1), gradients.flatten(1))),
    )
}


def fully_connected(path: Path) -> dict[str, Handler]:
    """What the curvature of FC needs."""
    return _FULLY_CONNECTED


_FACTORED: dict[str, Handler] = {
    "w1": Handler.unshared(
        right=lambda path, mixed: output_planes(mixed),
        left=lambda path, mixed, gradients: position_gradients(gradients.reshape(len(mixed), len(path.w1), -1)),
        rows=Rows.slotted(lambda path, mixed, gradients: (mixed, gradients.reshape(len(mixed), len(path.w1), -1))),
    ),
    "w2": Handler.unshared(
        right=lambda path, inputs: input_planes(inputs),
        left=lambda path, inputs, gradients: mixed_gradients(gradients),
        rows=Rows.slotted(lambda path, inputs, gradients: plane_uses(inputs, gradients)),
    ),
}


def factored(path: Path) -> dict[str, Handler]:
    """What the curvature of F-FC and F-GFC needs."""
    return _FACTORED
