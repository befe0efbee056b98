"""S-CONV: a convolution whose filters are weighted sums of basis functions."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import torch
from torch import Tensor

from symdsl.nn.basis import Basis, BasisPlan, sites
from symdsl.nn.convolution import circular_conv
from symdsl.nn.initial import normal_parameter
from symdsl.nn.path import Path, Recorder


class BasisConv(Path):
    """What convolutions share whose filters are weighted sums of basis functions.

    Attributes:
        basis: the basis functions on the points of a filter.
        u: the weights `[C', C, anchor]`.
        omega: the lengthscales, if they are learned.
        anchors: how far the anchors have moved, if they are learned.
    """

    samples: ClassVar[bool] = True
    linear_in: ClassVar[tuple[str, ...]] = ("u",)
    basis: Basis
    u: torch.nn.Parameter
    omega: torch.nn.Parameter | None
    anchors: torch.nn.Parameter | None

    def __init__(
        self,
        channels: tuple[int, int],
        basis: Basis,
        kernel: int,
        stride: int,
        scale: float,
        generator: torch.Generator | None,
    ) -> None:
        super().__init__()
        self.kernel = kernel
        self.stride = stride
        self.basis = basis
        deviation = scale * (channels[1] * basis.power()) ** -0.5
        self.u = normal_parameter((*channels, basis.plan.count), deviation, generator)
        self.omega = basis.new_omega()
        self.anchors = basis.new_anchors()

    def expect_mean(self, mean: float) -> None:
        """See `Path.expect_mean`."""
        with torch.no_grad():
            self.u.mul_((self.basis.power() / self.basis.power(mean)) ** 0.5)

    def phi(self) -> Tensor:
        """The basis functions, `[anchor, point]`."""
        values: Tensor = self.basis(self.omega, self.anchors)
        return values

    @abstractmethod
    def filters(self) -> Tensor:
        """The filters of a plain convolution, `[out plane, in plane, S, S]`."""

    def forward(self, x: Tensor, record: Recorder | None = None) -> Tensor:
        """See `Path.forward`."""
        if record is not None:
            for name, _ in self.named_parameters():
                record(name, x, None)
        return circular_conv(x, self.filters(), self.stride)

    def fine(self, x: Tensor) -> Tensor:
        """See `Path.fine`."""
        return circular_conv(x, self.filters())


class SparseConv(BasisConv):
    """CONV with w[c', c, s] = sum_p u[c', c, p] phi_p(s): equivariant to translations, whatever the filter is.

    Layer-wise Equivariances (van der Ouderaa et al. 2023), equation 6.

    Args:
        in_planes: planes of the input.
        out_planes: planes of the output.
        kernel: odd side S of the filter.
        plan: its basis functions on the S^2 taps.
        stride: every `stride`-th position is kept.
        scale: standard deviation of the output for an input of unit second moment. The variance of the output is that
            of u times C sum_p E[(sum_s x_s phi_p(s))^2].
        generator: source of the initial weights.
    """

    def __init__(
        self,
        in_planes: int,
        out_planes: int,
        kernel: int,
        plan: BasisPlan,
        stride: int = 1,
        scale: float = 1.0,
        generator: torch.Generator | None = None,
    ) -> None:
        basis = Basis(sites(kernel, kernel), plan)
        super().__init__((out_planes, in_planes), basis, kernel, stride, scale, generator)

    def filters(self) -> Tensor:
        """w `[C', C, S, S]`."""
        filters: Tensor = (self.u @ self.phi()).unflatten(2, (self.kernel, self.kernel))
        return filters
