"""S-GCONV: a group convolution whose filters are weighted sums of basis functions on group times space."""

from __future__ import annotations

import torch
from torch import Tensor

from symdsl.groups import Group
from symdsl.nn.basis import Basis, BasisPlan, sites
from symdsl.nn.group_convolution import moved_points
from symdsl.nn.sparse_convolution import BasisConv


class SparseGroupConv(BasisConv):
    """GCONV with w[c', c, q, s] = sum_p u[c', c, p] phi_p(q, s), q = g^-1 h.

    The filter moves whole with the output's group element, so the path is equivariant to translations and to the group
    whatever the filter is. Layer-wise Equivariances (van der Ouderaa et al. 2023), appendix A.

    Args:
        in_channels: C; the input has C |G| planes.
        out_channels: C'; the output has C' |G| planes.
        group: the group that acts.
        kernel: odd side S of the filter.
        plan: its basis functions on the |G| S^2 points of a filter.
        stride: every `stride`-th position is kept.
        scale: standard deviation of the output for an input of unit second moment. The variance of the output is that
            of u times C sum_p E[(sum_{q, s} x_{q, s} phi_p(q, s))^2].
        generator: source of the initial weights.
    """

    move: Tensor

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        group: Group,
        kernel: int,
        plan: BasisPlan,
        stride: int = 1,
        scale: float = 1.0,
        generator: torch.Generator | None = None,
    ) -> None:
        basis = Basis(sites(kernel, kernel, group), plan)
        super().__init__((out_channels, in_channels), basis, kernel, stride, scale, generator)
        self.order = group.order
        self.register_buffer("move", moved_points(group, kernel), persistent=False)

    def filters(self) -> Tensor:
        """The |G| copies of every filter as those of a plain convolution, `[C' |G|, C |G|, S, S]`."""
        out_channels, in_channels = self.u.shape[:2]
        bank = (self.u @ self.phi())[:, :, self.move].transpose(1, 2)
        return bank.reshape(out_channels * self.order, in_channels * self.order, self.kernel, self.kernel)
