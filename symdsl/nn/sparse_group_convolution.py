"""S-GCONV: a group convolution whose filters are weighted sums of basis functions on group times space."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from symdsl.groups import Group
from symdsl.nn.basis import Basis, BasisPlan, sites
from symdsl.nn.convolution import circular_conv
from symdsl.nn.group_convolution import moved_elements, moved_taps
from symdsl.nn.initial import normal_parameter
from symdsl.nn.path import Path, Recorder


class SparseGroupConv(Path):
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

    samples: ClassVar[bool] = True
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
        super().__init__()
        self.order = group.order
        self.kernel = kernel
        self.stride = stride
        self.basis = Basis(sites(kernel, kernel, group), plan)
        deviation = scale * (in_channels * self.basis.power()) ** -0.5
        self.u = normal_parameter((out_channels, in_channels, plan.count), deviation, generator)
        self.omega = self.basis.new_omega()
        self.anchors = self.basis.new_anchors()
        move = moved_elements(group)[:, :, None] * kernel**2 + moved_taps(group, kernel)[:, None]
        self.register_buffer("move", move.flatten(1), persistent=False)

    def expect_mean(self, mean: float) -> None:
        """See `Path.expect_mean`."""
        with torch.no_grad():
            self.u.mul_((self.basis.power() / self.basis.power(mean)) ** 0.5)

    def moves(self) -> Tensor:
        """`[element g, (element h, tap s)] -> index of (g^-1 h, g^-1 s)` among the |G| S^2 points of a filter."""
        return self.move

    def phi(self) -> Tensor:
        """The basis functions, `[anchor, (element, tap)]`."""
        values: Tensor = self.basis(self.omega, self.anchors)
        return values

    def filters(self) -> Tensor:
        """The |G| copies of every filter as those of a plain convolution, `[C' |G|, C |G|, S, S]`."""
        out_channels, in_channels = self.u.shape[:2]
        bank = (self.u @ self.phi())[:, :, self.move].transpose(1, 2)
        return bank.reshape(out_channels * self.order, in_channels * self.order, self.kernel, self.kernel)

    def forward(self, x: Tensor, record: Recorder | None = None) -> Tensor:
        """See `Path.forward`."""
        if record is not None:
            for name, _ in self.named_parameters():
                record(name, x, None)
        return circular_conv(x, self.filters(), self.stride)

    def fine(self, x: Tensor) -> Tensor:
        """See `Path.fine`."""
        return circular_conv(x, self.filters())
