"""How CONV uses its filters: at every kept position t, where they read the circular patch around it."""

from __future__ import annotations

import math
from functools import reduce
from itertools import product
from operator import add

import torch
from torch import Tensor
from torch.nn import functional

from symdsl.evidence.kfac import gram
from symdsl.evidence.weight_use import WeightUse, in_parts
from symdsl.nn import Path, Sides, circular_pad, pair

FILTERS = WeightUse(
    inputs=lambda path, x: by_position(patches(x, path.kernel, path.stride)),
    gradients=lambda path, x, y: y.flatten(2).mT.unsqueeze(1),
    input_moment=lambda path, x: patch_moment(x, path.kernel, path.stride),
    input_sum=lambda path, x: patch_sums(x, path.kernel, path.stride).flatten(1).unsqueeze(1),
)
"""How whole filters are used, `[C, point]` for each output plane."""


def conv(path: Path) -> dict[str, WeightUse]:
    """Return how CONV uses its filters."""
    return {"w": FILTERS}


def patches(inputs: Tensor, kernel: Sides, stride: Sides) -> Tensor:
    """Return circular patches at the kept positions: `[n, plane, row, column] -> [n, plane, S^2, position]`."""
    columns = functional.unfold(circular_pad(inputs, kernel), pair(kernel), stride=pair(stride))
    by_plane: Tensor = columns.unflatten(1, (inputs.shape[1], -1))
    return by_plane


def patch_sums(inputs: Tensor, kernel: Sides, stride: Sides) -> Tensor:
    """Return the sums of `patches` over positions, `[n, plane, S^2]`; they depend on the phase of a tap alone."""
    down, right = pair(stride)
    phases = inputs.unflatten(3, (-1, right)).unflatten(2, (-1, down)).sum((2, 4))
    rows, columns = (
        torch.arange(-(side // 2), side // 2 + 1, device=inputs.device) % step
        for side, step in zip(pair(kernel), (down, right), strict=True)
    )
    sums: Tensor = phases[:, :, rows[:, None], columns]
    return sums.flatten(2)


def by_position(patches: Tensor) -> Tensor:
    """Arrange one use per position: `[n, plane, tap, position] -> [n, 1, position, plane tap]`."""
    return patches.flatten(1, 2).mT.unsqueeze(1)


def patch_moment(inputs: Tensor, kernel: Sides, stride: Sides) -> Tensor:
    """Return sum_{n, t} a a^T over the circular patches a of each kept position t.

    Where every position is kept, no patch is formed: a torus looks the same from everywhere, so that the sum of
    x[t + s] x[t + s']^T over t depends on the distance s' - s alone, and transposes with its sign. Of the S^4 pairs of
    taps only those are computed that differ, 13 of 81 for S = 3. Some examples at a time bound what is unfolded, and
    keep the maps of the torus in the cache.

    Args:
        inputs: `[n, plane, row, column]`, aligned to the sampled phase.
        kernel: odd sides of the patch.
        stride: distance of kept positions.

    Returns:
        `[1, plane S^2, plane S^2]`, plane major.
    """
    numbers = inputs.shape[1:].numel() * math.prod(pair(kernel))
    if pair(stride) == (1, 1):
        return reduce(add, (_moment_on_torus(part, kernel) for (part,) in in_parts(numbers, inputs)))
    read = (by_position(patches(part, kernel, stride)).flatten(0, 2) for (part,) in in_parts(numbers, inputs))
    return reduce(add, map(gram, read)).unsqueeze(0)


def _moment_on_torus(inputs: Tensor, kernel: Sides) -> Tensor:
    """Return the moment of patches at every position; see `patch_moment`."""
    taps = list(product(*map(range, pair(kernel))))
    rows, columns = inputs.shape[-2:]
    planes = inputs.transpose(0, 1).contiguous()
    moments: dict[tuple[int, int], Tensor] = {}  # by distance
    used = []
    for (i, j), (k, m) in product(taps, taps):
        distance, opposite = ((k - i) % rows, (m - j) % columns), ((i - k) % rows, (j - m) % columns)
        if distance not in moments:
            moved = torch.roll(planes, (-distance[0], -distance[1]), (-2, -1))
            known = moments.get(opposite)
            moments[distance] = planes.flatten(1) @ moved.flatten(1).T if known is None else known.T
        used.append(moments[distance])
    joined: Tensor = torch.stack(used).unflatten(0, (len(taps), len(taps)))
    return joined.permute(2, 0, 3, 1).flatten(2).flatten(0, 1).unsqueeze(0)
