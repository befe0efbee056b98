"""How CONV uses its weights: `w` at every kept position.

Expand sums the outer products of the uses (Grosse & Martens 2016, eq. 13); reduce sums the uses of an example first
(Eschenhagen et al. 2023, eq. 22).
"""

from __future__ import annotations

from itertools import product

import torch
from torch import Tensor
from torch.nn import functional

from symdsl.evidence.rows import Rows
from symdsl.evidence.weight_use import Factors, Handler
from symdsl.nn import Path, circular_pad


def patches(inputs: Tensor, kernel: int, stride: int) -> Tensor:
    """Circular patches at the kept positions: `[n, plane, row, column] -> [n, plane, S^2, position]`."""
    columns = functional.unfold(circular_pad(inputs, kernel), kernel, stride=stride)
    by_plane: Tensor = columns.unflatten(1, (inputs.shape[1], -1))
    return by_plane


def patch_moment(inputs: Tensor, kernel: int, stride: int) -> Tensor:
    """sum_{n, t} a a^T over the circular patches a of each kept position t.

    Args:
        inputs: `[n, plane, row, column]`, aligned to the sampled phase.
        kernel: odd side S of the patch.
        stride: distance of kept positions.

    Returns:
        `[plane S^2, plane S^2]`, plane major.
    """
    moment: Tensor = patch_moments(inputs.unsqueeze(1), kernel, stride)[0]
    return moment


def patch_moments(inputs: Tensor, kernel: int, stride: int) -> Tensor:
    """`patch_moment` of several sets of planes at once, which do not mix.

    Args:
        inputs: `[n, set, plane, row, column]`.
        kernel: as there.
        stride: as there.

    Returns:
        `[set, plane S^2, plane S^2]`.
    """
    if stride == 1:
        return _torus_moments(inputs, kernel)
    columns = patches(inputs.flatten(1, 2), kernel, stride).flatten(1, 2)
    a: Tensor = columns.unflatten(1, (inputs.shape[1], -1)).permute(1, 2, 0, 3).flatten(2)
    return a @ a.mT


def _torus_moments(inputs: Tensor, kernel: int) -> Tensor:
    """`patch_moments` where every position is kept, without forming a patch.

    A torus looks the same from everywhere: the sum of x[t + s] x[t + s']^T over t depends on the distance s' - s alone,
    and transposes with its sign. Of the S^4 pairs of taps only those are computed that differ, 13 of 81 for S = 3.
    """
    taps = list(product(range(kernel), repeat=2))
    correlations = _Correlations(inputs)
    pairs = [[correlations.index(k - i, m - j) for k, m in taps] for i, j in taps]
    moments = torch.stack(correlations.found)[torch.tensor(pairs, device=inputs.device)]
    return moments.permute(2, 3, 0, 4, 1).flatten(3).flatten(1, 2)


class _Correlations:
    """The moments sum_{n, t} x[:, t] x[:, t + d]^T of maps on the torus, each computed once.

    Attributes:
        found: `[set, plane, plane]` each.
    """

    def __init__(self, inputs: Tensor) -> None:
        self.found: list[Tensor] = []
        self._planes = inputs.permute(1, 2, 0, 3, 4).contiguous()
        self._places: dict[tuple[int, int], int] = {}

    def index(self, down: int, right: int) -> int:
        """Where in `found` the moment at a distance is."""
        distance, opposite = self._wrapped(down, right), self._wrapped(-down, -right)
        if distance not in self._places:
            known = self._places.get(opposite)
            self._places[distance] = len(self.found)
            self.found.append(self._moment(distance) if known is None else self.found[known].mT)
        return self._places[distance]

    def _wrapped(self, down: int, right: int) -> tuple[int, int]:
        return down % self._planes.shape[-2], right % self._planes.shape[-1]

    def _moment(self, distance: tuple[int, int]) -> Tensor:
        down, right = distance
        moved = torch.roll(self._planes, (-down, -right), (-2, -1))
        moment: Tensor = self._planes.flatten(2) @ moved.flatten(2).mT
        return moment


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


def filter_uses(inputs: Tensor, gradients: Tensor, kernel: int, stride: int) -> tuple[Tensor, Tensor]:
    """What every position of a convolution reads and the gradient in what it gives.

    Args:
        inputs: `[n, C, row, column]`, aligned to the sampled phase.
        gradients: in the output, `[n, C', row, column]`.
        kernel: odd side S of the filters.
        stride: distance of kept positions.

    Returns:
        `[n, position, C S^2]`, channel major, and `[n, position, C']`.
    """
    return patches(inputs, kernel, stride).flatten(1, 2).mT, gradients.flatten(2).mT


_CONV: dict[str, Handler] = {
    "w": Handler(
        expand=Factors(
            right=lambda path, inputs: patch_moment(inputs, path.w.shape[-1], path.stride).unsqueeze(0),
            left=lambda path, inputs, gradients: plane_gradients(gradients),
        ),
        reduce=Factors(
            right=lambda path, inputs: summed_patch_moment(inputs, path.w.shape[-1], path.stride),
            left=lambda path, inputs, gradients: summed_plane_gradients(gradients),
        ),
        rows=Rows.shared(
            "w", lambda path, inputs, gradients: filter_uses(inputs, gradients, path.w.shape[-1], path.stride)
        ),
    )
}


def conv(path: Path) -> dict[str, Handler]:
    """What the curvature of CONV needs."""
    return _CONV
