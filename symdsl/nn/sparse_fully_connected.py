"""S-FC and S-GFC: F-FC and F-GFC whose weights are weighted sums of basis functions on either side."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from symdsl.groups import GROUPS, TRIVIAL, Group
from symdsl.nn.basis import Basis, BasisPlan, sites
from symdsl.nn.factored import is_multiplied_out, mixed, multiplied_out
from symdsl.nn.initial import normal_parameter
from symdsl.nn.path import Path, Recorder


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
        """See `Path.expect_mean`."""
        with torch.no_grad():
            self.u2.mul_((self.basis2.power() / self.basis2.power(mean)) ** 0.5)

    def forward(self, x: Tensor, record: Recorder | None = None) -> Tensor:
        """See `Path.forward`."""
        read = x.reshape(len(x), self.u2.shape[1], -1)
        if record is None and is_multiplied_out(read.shape[2], self.basis1.apart.shape[1]):
            return multiplied_out(read, self.u2 @ self.phi2(), self.u1 @ self.phi1()).reshape(-1, *self.out_shape)
        z = self._read(read)
        if record is not None:
            for name, _ in self.named_parameters():
                uses = (read, z) if name.endswith("2") else (z, None)
                record(name, *uses)
        return self._written(z).reshape(-1, *self.out_shape)

    def phi1(self) -> Tensor:
        """The basis functions of the output, `[anchor, site]`."""
        values: Tensor = self.basis1(self.omega1, self.anchors1)
        return values

    def phi2(self) -> Tensor:
        """The basis functions of the input, `[anchor, site]`."""
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
            return torch.einsum("ndc,dcp->ndp", z, self.u1) @ phi
        return torch.einsum("ndc,dcy->ndy", z, self.u1 @ phi)


def _through_anchors(examples: int, phi: Tensor, partners: int) -> bool:
    """Whether projecting maps is less work than making the weights, which every example then shares."""
    anchors, sites = phi.shape
    return examples * anchors * (sites + partners) < partners * sites * (anchors + examples)
