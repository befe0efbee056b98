"""How the dense paths use their weights; no block is ever densified.

| tensor | blocks | R | reads | gives |
|---|---|---|---|---|
| FC w | 1 | 1 | x, all planes and positions | y, all planes and positions |
| F-FC w1 | output planes c' | 1 | z[c', :] | y[c', :] |
| F-FC w2 | input planes c | 1 | x[c, :] | z[:, c] |
"""

from __future__ import annotations

from torch import Tensor

from symdsl.evidence.weight_use import WeightUse
from symdsl.nn import Path


def fully_connected(path: Path) -> dict[str, WeightUse]:
    """Return how FC uses its weight."""
    return {"w": WeightUse(lambda path, x: x.flatten(1)[:, None, None], lambda path, x, y: y.flatten(1)[:, None, None])}


def factored(path: Path) -> dict[str, WeightUse]:
    """Return how F-FC and F-GFC use their weights."""
    return {
        "w1": WeightUse(lambda path, z: z.unsqueeze(2), lambda path, z, y: by_output_plane(z, y)),
        "w2": WeightUse(lambda path, x: x.unsqueeze(2), lambda path, x, z: by_input_plane(z)),
    }


def by_output_plane(z: Tensor, gradients: Tensor) -> Tensor:
    """Return the gradient in y as a block for each output plane of z `[n, C', C]`: `[n, C', 1, Y]`."""
    return gradients.reshape(*z.shape[:2], 1, -1)


def by_input_plane(gradients: Tensor) -> Tensor:
    """Return the gradient in z `[n, C', C]` as a block for each input plane: `[n, C, 1, C']`."""
    return gradients.mT.unsqueeze(2)
