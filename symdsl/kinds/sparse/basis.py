"""Basis functions phi_p(t) = exp(-omega_p^2 |t - z_p|^2), on a grid or on a group times a grid."""

from __future__ import annotations

import math

import attrs
import torch
from torch import Tensor, nn

from symdsl.groups import GROUPS, TRIVIAL, Group

_WEIGHTS = (1.0, 1.0, 0.5, 0.5, 0.5, 0.5)
"""The weights of the six coordinates in a squared distance: two of the place, four of the element's matrix."""


def sites(rows: int, columns: int, group: Group = GROUPS[TRIVIAL]) -> Tensor:
    """Return the points of group times grid, element by element and row by row.

    Returns:
        `[site, 6]`: row, column, and the four entries of the element's matrix. Half the squared distance of two
        matrices is the mean squared distance to which the two elements carry a point of the unit circle.
    """
    grid = torch.cartesian_prod(torch.arange(rows), torch.arange(columns))
    matrices = torch.tensor(group.elements).flatten(1)
    places = (grid.repeat(len(matrices), 1), matrices.repeat_interleave(len(grid), 0))
    return torch.cat(places, 1).double()


def squared_distances(anchors: Tensor, points: Tensor) -> Tensor:
    """Return squared distances `[anchor, site]` between points as `sites` gives them; exact, as halves of integers."""
    total = points.new_zeros(len(anchors), len(points))
    for index, weight in enumerate(_WEIGHTS):
        total += weight * (anchors[:, index, None] - points[:, index]).square()
    return total


def spread(points: Tensor, count: int) -> Tensor:
    """Return the indices of `count` points, each as far as possible from those before (farthest point sampling).

    Among equally far ones the one is taken that brings the mean of all taken closest to the middle of the map, so that
    no side is favoured; the first is therefore in the middle. Nothing is random.

    Args:
        points: `[site, 6]`, as `sites` gives them.
        count: how many, at most all.
    """
    centred = points - points.mean(0)
    nearest = torch.full((len(points),), math.inf, dtype=points.dtype)
    lean = torch.zeros_like(centred[0])
    weights = torch.tensor(_WEIGHTS, dtype=points.dtype)
    chosen: list[Tensor] = []
    for _ in range(count):
        imbalance = (lean + centred).square().sum(1)
        chosen.append(torch.where(nearest == nearest.max(), imbalance, math.inf).argmin())
        lean = lean + centred[chosen[-1]]
        nearest = torch.minimum(nearest, (points - points[chosen[-1]]).square() @ weights)
    return torch.stack(chosen)


@attrs.frozen
class BasisPlan:
    """The number of anchors of a basis, and which of its parameters are learned.

    Attributes:
        count: P, the number of anchors.
        moves: whether the anchors are learned.
        scales: whether omega is learned, one for each anchor.
    """

    count: int
    moves: bool = False
    scales: bool = False


class Basis(nn.Module):
    """The values of P basis functions on a set of sites; it owns no parameter, but makes those of its path.

    Until it is learned, `omega^2 = P / sites`: a basis function has fallen to 1/e at the mean distance of neighbouring
    anchors.

    Args:
        points: `[site, 6]`, as `sites` gives them.
        plan: number of anchors, and what is learned of them.
    """

    apart: Tensor
    places: Tensor
    starts: Tensor

    def __init__(self, points: Tensor, plan: BasisPlan) -> None:
        super().__init__()
        self.plan = plan
        self.start = math.sqrt(plan.count / len(points))
        anchors = points[spread(points, plan.count)]
        apart = squared_distances(anchors, points)
        for name, value in (("apart", apart), ("places", points[:, :2].T), ("starts", anchors[:, :2].T)):
            self.register_buffer(name, value.to(torch.get_default_dtype()), persistent=False)

    def new_omega(self) -> nn.Parameter | None:
        """Return the parameter omega `[P]`, or `None` if it is not learned."""
        return nn.Parameter(torch.full((self.plan.count,), self.start)) if self.plan.scales else None

    def new_anchors(self) -> nn.Parameter | None:
        """Return how far each anchor has moved, `[P, 2]` in pixels, zero at first, or `None` if anchors are fixed."""
        return nn.Parameter(torch.zeros(self.plan.count, 2)) if self.plan.moves else None

    def forward(self, omega: Tensor | None, moved: Tensor | None) -> Tensor:
        """Return phi `[anchor, site]` for the parameters that `new_omega` and `new_anchors` made."""
        return torch.exp(-self._rates(omega)[:, None] * self._squared(moved))

    def _rates(self, omega: Tensor | None) -> Tensor:
        """omega^2 of every anchor."""
        return self.apart.new_full((len(self.apart),), self.start**2) if omega is None else omega.square()

    def _offsets(self, moved: Tensor | None) -> Tensor:
        """Return the offset from each anchor to each place, `[anchor, 2, site]`."""
        offsets = self.places - self.starts.T[:, :, None]
        return offsets if moved is None else offsets - moved[:, :, None]

    def _squared(self, moved: Tensor | None) -> Tensor:
        if moved is None:
            return self.apart
        return self.apart + (moved[:, :, None] * (moved[:, :, None] - 2 * self._offsets(None))).sum(1)

    def slopes_in_omega(self, omega: Tensor, moved: Tensor | None) -> Tensor:
        """Return d phi_p / d omega_p = -2 omega_p |t - z_p|^2 phi_p, `[anchor, 1, site]`."""
        phi: Tensor = self(omega, moved)
        return (-2 * omega[:, None] * self._squared(moved) * phi)[:, None]

    def slopes_in_anchors(self, omega: Tensor | None, moved: Tensor) -> Tensor:
        """Return d phi_p / d z_p = 2 omega_p^2 (t - z_p) phi_p, `[anchor, 2, site]`."""
        phi: Tensor = self(omega, moved)
        return 2 * self._rates(omega)[:, None, None] * self._offsets(moved) * phi[:, None]

    def power(self, mean: float = 0.0) -> float:
        """Return sum_p E[(sum_t x_t phi_p(t))^2] at the start, for independent x_t of unit second moment.

        Args:
            mean: of x_t. It adds up where the deviations from it average out.
        """
        phi = self(self.new_omega(), self.new_anchors()).detach().double()
        return float((1 - mean**2) * phi.square().sum() + mean**2 * phi.sum(1).square().sum())
