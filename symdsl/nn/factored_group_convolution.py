"""GCONV whose filter is a product: of group and space, or of channels, group and space."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from symdsl.groups import TWO_STEPS_FROM, Group
from symdsl.nn.convolution import circular_conv, circular_pad
from symdsl.nn.group_convolution import GroupPath, moved_elements
from symdsl.nn.initial import normal_parameter
from symdsl.nn.path import Recorder


class SeparableGroupConv(GroupPath):
    """GCONV with w[c', c, q, s] = w1[c', c, q] w2[c, s], q = g^-1 h: the filter of a channel turns, mixtures do not.

    Arguments as for `GroupConv`; source: Layer-wise Equivariances (2023), appendix F.3. The product of the tensors
    carries `scale`.
    """

    linear_in: ClassVar[tuple[str, ...]] = ("w1", "w2")
    elements: Tensor

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        group: Group,
        kernel: int,
        stride: int = 1,
        scale: float = 1.0,
        generator: torch.Generator | None = None,
        lifted: Group | None = None,
    ) -> None:
        super().__init__(group, kernel, stride, lifted)
        channels, mixed = in_channels * self.index, in_channels * self.index * group.order
        shape = (out_channels * self.index, channels, group.order)
        self.w1 = normal_parameter(shape, (scale / mixed) ** 0.5, generator)
        self.w2 = normal_parameter((channels, kernel, kernel), (scale / kernel**2) ** 0.5, generator)
        self.register_buffer("elements", moved_elements(group), persistent=False)

    def convolve(self, x: Tensor, stride: int, record: Recorder | None = None) -> Tensor:
        """The group convolution of `x`: by the filter multiplied out, or in two steps where that is less work."""
        y = self._in_one(x, stride) if len(self.w1) < TWO_STEPS_FROM else self._in_two(x, stride)
        if record is not None:
            record("w1", x, y)
            record("w2", x, y)
        return y

    def filtered(self, padded: Tensor, g: int, stride: int) -> Tensor:
        """z[c, h, t] = sum_s x[c, h, t + s] w2[c, g^-1 s], what element g reads of a padded map."""
        filters = self.w2.flatten(1)[:, self.taps[g]].repeat_interleave(self.order, 0)
        bank = filters.unflatten(1, (1, self.kernel, self.kernel))
        return functional.conv2d(padded, bank, stride=stride, groups=len(bank))

    def _in_one(self, x: Tensor, stride: int) -> Tensor:
        """One plain convolution by the |G| copies of each filter."""
        bank = torch.einsum("dcgh,cgs->dgchs", self.w1[:, :, self.elements], self.w2.flatten(1)[:, self.taps])
        filters = bank.flatten(2, 3).flatten(0, 1).unflatten(2, (self.kernel, self.kernel))
        return circular_conv(x, filters, stride)

    def _in_two(self, x: Tensor, stride: int) -> Tensor:
        """Space, then channels and group; an element at a time, so that no |G|^2 planes are ever held."""
        padded = circular_pad(x, self.kernel)
        mixing = self.w1[:, :, self.elements]
        parts = [
            functional.conv2d(self.filtered(padded, g, stride), mixing[:, :, g].flatten(1)[..., None, None])
            for g in range(self.order)
        ]
        return torch.stack(parts, 2).flatten(1, 2)


class DepthwiseGroupConv(GroupPath):
    """GCONV with w[c', c, q, s] = w0[c', c] w1[c, q] w2[c, s], q = g^-1 h.

    Arguments as for `GroupConv`; source: Layer-wise Equivariances (2023), appendix F.3. The product of the tensors
    carries `scale`. Evaluated as a chain in which no map has more than C |G| planes:

        u[c, g, t] = sum_h x[c, h, t] w1[c, g^-1 h]
        v[c, g, t] = sum_s u[c, g, t + s] w2[c, g^-1 s]
        y[c', g, t] = sum_c v[c, g, t] w0[c', c]
    """

    linear_in: ClassVar[tuple[str, ...]] = ("w0", "w1", "w2")
    elements: Tensor

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        group: Group,
        kernel: int,
        stride: int = 1,
        scale: float = 1.0,
        generator: torch.Generator | None = None,
        lifted: Group | None = None,
    ) -> None:
        super().__init__(group, kernel, stride, lifted)
        channels, part = in_channels * self.index, scale ** (1 / 3)
        self.w0 = normal_parameter((out_channels * self.index, channels), part * channels**-0.5, generator)
        self.w1 = normal_parameter((channels, group.order), part * group.order**-0.5, generator)
        self.w2 = normal_parameter((channels, kernel, kernel), part / kernel, generator)
        self.register_buffer("elements", moved_elements(group), persistent=False)

    def convolve(self, x: Tensor, stride: int, record: Recorder | None = None) -> Tensor:
        """The group convolution of `x`: group, then space, then channels."""
        u = self._over_the_group(x)
        v = self._over_space(u, stride)
        by_channel = v.unflatten(1, (-1, self.order)).flatten(2)
        y = torch.matmul(self.w0, by_channel).reshape(len(v), -1, *v.shape[2:])
        if record is not None:
            record("w1", x, u)
            record("w2", u, v)
            record("w0", v, y)
        return y

    def _over_the_group(self, x: Tensor) -> Tensor:
        by_channel = x.unflatten(1, (-1, self.order)).flatten(3)
        return torch.matmul(self.w1[:, self.elements], by_channel).view_as(x)

    def _over_space(self, u: Tensor, stride: int) -> Tensor:
        bank = self.w2.flatten(1)[:, self.taps].reshape(-1, 1, self.kernel, self.kernel)
        return circular_conv(u, bank, stride, groups=len(bank))
