"""The paths whose weights are weighted sums of basis functions: S-FC and S-GFC, S-CONV and S-GCONV."""

from __future__ import annotations

import math
from typing import ClassVar, cast

import torch
from torch import Tensor

from symdsl.analysis.facts import Candidate, Layer
from symdsl.groups import GROUPS, TRIVIAL, Group
from symdsl.kinds.dense.module import by_plane, is_multiplied_out, mixed, multiplied_out, over_positions
from symdsl.kinds.group.module import moved_points
from symdsl.kinds.sparse.basis import Basis, BasisPlan, sites
from symdsl.kinds.sparse.signature import anchor_count
from symdsl.nn import Path, Recorder, Sides, circular_conv, normal_parameter, pair


class SparseFullyConnected(Path):
    """F-FC with w1[c', c, y] = sum_p u1[c', c, p] phi1_p(y) and w2[c', c, x] = sum_p u2[c', c, p] phi2_p(x).

    Of the two orders of the sums the one with less work for the batch is taken: maps are projected on the basis
    functions, or the weights are made once for all examples.

        x~[c, p] = sum_x x[c, x] phi2_p(x)            z[c', c] = sum_p x~[c, p] u2[c', c, p]
        v[c', p] = sum_c z[c', c] u1[c', c, p]        y[c', y] = sum_p v[c', p] phi1_p(y)

    Layer-wise Equivariances (van der Ouderaa et al. 2023), equation 7; with a group, x and y run over group times
    space (appendix A).

    Args:
        in_shape: planes, rows, columns of the input.
        out_shape: planes, rows, columns of the output.
        outer: the basis functions phi1 of the output.
        inner: the basis functions phi2 of the input.
        group: whose elements a channel extends over.
        scale: standard deviation of the output, in the mean over its positions, for an input of unit second moment.
            The variance of the output is C sum_p E[x~_p^2] sum_p mean_y phi1_p(y)^2 times those of u1 and u2, each of
            which takes the square root of what the product needs.
        generator: source of the initial weights.
    """

    linear_in: ClassVar[tuple[str, ...]] = ("u1", "u2")
    correlated: ClassVar[bool] = True

    def __init__(
        self,
        in_shape: tuple[int, int, int],
        out_shape: tuple[int, int, int],
        outer: BasisPlan,
        inner: BasisPlan,
        group: Group = GROUPS[TRIVIAL],
        scale: float = 1.0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.out_shape = out_shape
        pairs = (out_shape[0] // group.order, in_shape[0] // group.order)
        written = sites(*out_shape[1:], group)
        self.basis1, self.basis2 = Basis(written, outer), Basis(sites(*in_shape[1:], group), inner)
        outer_power = pairs[1] * self.basis1.power() / len(written)
        self.u1 = normal_parameter((*pairs, outer.count), (scale / outer_power) ** 0.5, generator)
        self.u2 = normal_parameter((*pairs, inner.count), (scale / self.basis2.power()) ** 0.5, generator)
        self.omega1, self.omega2 = self.basis1.new_omega(), self.basis2.new_omega()
        self.anchors1, self.anchors2 = self.basis1.new_anchors(), self.basis2.new_anchors()

    def expect_mean(self, mean: float) -> None:
        """Rescale the initial values for inputs of a mean; see `Path.expect_mean`."""
        with torch.no_grad():
            self.u2.mul_((self.basis2.power() / self.basis2.power(mean)) ** 0.5)

    def forward(self, x: Tensor, record: Recorder | None = None) -> Tensor:
        """Return the output of F-FC with the weights that the basis functions make; see `Path.forward`."""
        read = by_plane(x).view(len(x), self.u2.shape[1], x.shape[1:].numel() // self.u2.shape[1])
        if record is None and is_multiplied_out(read.shape[2], self.basis1.apart.shape[1]):
            return multiplied_out(read, self.u2 @ self.phi2(), self.u1 @ self.phi1()).reshape(-1, *self.out_shape)
        z = self._read(read)
        if record is not None:
            for name, _ in self.named_parameters():
                uses = (read, z) if name.endswith("2") else (z, None)
                record(name, *uses)
        return self._written(z).reshape(-1, *self.out_shape)

    def phi1(self) -> Tensor:
        """Return the basis functions of the output, `[anchor, site]`."""
        values: Tensor = self.basis1(self.omega1, self.anchors1)
        return values

    def phi2(self) -> Tensor:
        """Return the basis functions of the input, `[anchor, site]`."""
        values: Tensor = self.basis2(self.omega2, self.anchors2)
        return values

    def _read(self, read: Tensor) -> Tensor:
        """z `[n, C', C]`."""
        phi = self.phi2()
        if _through_anchors(len(read), phi, len(self.u2)):
            return mixed(read @ phi.T, self.u2)
        return mixed(read, self.u2 @ phi)

    def _written(self, z: Tensor) -> Tensor:
        """y `[n, C', site]`."""
        phi = self.phi1()
        if _through_anchors(len(z), phi, z.shape[2]):
            return over_positions(z, self.u1) @ phi
        return over_positions(z, self.u1 @ phi)


def _through_anchors(examples: int, phi: Tensor, partners: int) -> bool:
    """Whether projecting maps is less work than making the weights, which every example then shares."""
    anchors, sites = phi.shape
    return examples * anchors * (sites + partners) < partners * sites * (anchors + examples)


class SparseConv(Path):
    """A convolution whose filters are weighted sums of basis functions: w[c', c, q, s] = sum_p u[c', c, p] phi_p(q, s).

    With a group, q = g^-1 h and the filter moves whole with the output's group element, so that the path is equivariant
    to translations and to the group whatever the filter is; without, q is left out. Layer-wise Equivariances (van der
    Ouderaa et al. 2023), equation 6 and appendix A.

    Args:
        in_channels: C; the input has C |G| planes.
        out_channels: C'; the output has C' |G| planes.
        kernel: odd sides of the filter, S^2 taps.
        plan: its basis functions on the |G| S^2 points of a filter.
        stride: every `stride`-th position is kept.
        scale: standard deviation of the output for an input of unit second moment. The variance of the output is that
            of u times C sum_p E[(sum_{q, s} x_{q, s} phi_p(q, s))^2].
        generator: source of the initial weights.
        group: the group that acts.
    """

    samples: ClassVar[bool] = True
    linear_in: ClassVar[tuple[str, ...]] = ("u",)
    correlated: ClassVar[bool] = True
    move: Tensor

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel: Sides,
        plan: BasisPlan,
        stride: Sides = 1,
        scale: float = 1.0,
        generator: torch.Generator | None = None,
        group: Group = GROUPS[TRIVIAL],
    ) -> None:
        super().__init__()
        self.kernel, self.stride, self.order = pair(kernel), pair(stride), group.order
        self.basis = Basis(sites(*self.kernel, group), plan)
        deviation = scale * (in_channels * self.basis.power()) ** -0.5
        self.u = normal_parameter((out_channels, in_channels, plan.count), deviation, generator)
        self.omega, self.anchors = self.basis.new_omega(), self.basis.new_anchors()
        self.register_buffer("move", moved_points(group, kernel), persistent=False)

    def expect_mean(self, mean: float) -> None:
        """Rescale the initial values for inputs of a mean; see `Path.expect_mean`."""
        with torch.no_grad():
            self.u.mul_((self.basis.power() / self.basis.power(mean)) ** 0.5)

    def phi(self) -> Tensor:
        """Return the basis functions, `[anchor, point]`."""
        values: Tensor = self.basis(self.omega, self.anchors)
        return values

    def filters(self) -> Tensor:
        """Return the |G| copies of every filter as those of a plain convolution, `[C' |G|, C |G|, S, S]`."""
        out_channels, in_channels = self.u.shape[:2]
        bank = (self.u @ self.phi())[:, :, self.move].transpose(1, 2)
        return bank.reshape(out_channels * self.order, in_channels * self.order, *self.kernel)

    def forward(self, x: Tensor, record: Recorder | None = None) -> Tensor:
        """Return the convolution of `x` at every `stride`-th position; see `Path.forward`."""
        if record is not None:
            for name, _ in self.named_parameters():
                record(name, x, None)
        return circular_conv(x, self.filters(), self.stride)

    def fine(self, x: Tensor) -> Tensor:
        """Return the convolution of `x` at every position; see `Path.fine`."""
        return circular_conv(x, self.filters())


def _plan(candidate: Candidate, points: int) -> BasisPlan:
    arguments = dict(candidate.arguments)
    return BasisPlan(
        anchor_count(arguments, points),
        moves=arguments["anchors"] == "learned",
        scales=arguments["on"] == "lengthscale",
    )


def sparse(layer: Layer, candidate: Candidate, scale: float, generator: torch.Generator) -> SparseFullyConnected:
    """Build the path of an S-FC candidate."""
    return _sparse_over(GROUPS[TRIVIAL], layer, candidate, scale, generator)


def sparse_group(layer: Layer, candidate: Candidate, scale: float, generator: torch.Generator) -> SparseFullyConnected:
    """Build the path of an S-GFC candidate."""
    return _sparse_over(GROUPS[layer.in_shape.group], layer, candidate, scale, generator)


def _sparse_over(
    group: Group, layer: Layer, candidate: Candidate, scale: float, generator: torch.Generator
) -> SparseFullyConnected:
    outer = _plan(candidate, group.order * layer.out_shape.positions)
    inner = _plan(candidate, group.order * layer.in_shape.positions)
    shapes = layer.in_shape.grid, layer.out_shape.grid
    return SparseFullyConnected(*shapes, outer, inner, group, scale, generator)


def sparse_conv(layer: Layer, candidate: Candidate, scale: float, generator: torch.Generator) -> SparseConv:
    """Build the path of an S-CONV candidate."""
    return _convolution(GROUPS[TRIVIAL], layer, candidate, scale, generator)


def sparse_group_conv(layer: Layer, candidate: Candidate, scale: float, generator: torch.Generator) -> SparseConv:
    """Build the path of an S-GCONV candidate."""
    return _convolution(GROUPS[layer.in_shape.group], layer, candidate, scale, generator)


def _convolution(
    group: Group, layer: Layer, candidate: Candidate, scale: float, generator: torch.Generator
) -> SparseConv:
    kernel = layer.in_shape.sides(cast(int, candidate.argument("k")))
    channels = layer.in_shape.planes // group.order, layer.out_shape.planes // group.order
    plan = _plan(candidate, group.order * math.prod(kernel))
    return SparseConv(*channels, kernel, plan, layer.strides, scale, generator, group)
