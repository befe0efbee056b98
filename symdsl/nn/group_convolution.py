"""GCONV: convolutions on a lifted map, equivariant to translations and to the group."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import torch
from torch import Tensor

from symdsl.groups import Group
from symdsl.nn.convolution import circular_conv
from symdsl.nn.initial import normal_parameter
from symdsl.nn.path import Path, Recorder


def moved_taps(group: Group, kernel: int) -> Tensor:
    """Where each element moves the taps of a filter: `[element g, tap s] -> tap g^-1 s`, taps row by row."""
    half = kernel // 2
    taps = [(row, column) for row in range(-half, half + 1) for column in range(-half, half + 1)]
    rows = []
    for element in range(group.order):
        (a, b), (c, d) = group.elements[group.inverse(element)]
        rows.append([taps.index((a * i + b * j, c * i + d * j)) for i, j in taps])
    return torch.tensor(rows)


def moved_elements(group: Group) -> Tensor:
    """The group's own permutation: `[element g, element h] -> element g^-1 h`."""
    order = range(group.order)
    return torch.tensor([[group.compose(group.inverse(g), h) for h in order] for g in order])


def moved_points(group: Group, kernel: int) -> Tensor:
    """Both at once: `[element g, (element h, tap s)] -> (g^-1 h, g^-1 s)` among the |G| S^2 points of a filter."""
    return (moved_elements(group)[:, :, None] * kernel**2 + moved_taps(group, kernel)[:, None]).flatten(1)


class GroupPath(Path):
    """What the factors of GCONV share: the group that acts, and how a map lifted to a larger one is seen by it.

    A map lifted to a group G that contains K is, coset by coset, a map of C [G : K] channels lifted to K; a group
    convolution over K of that map is equivariant to K.

    Args:
        group: K, the group that acts.
        kernel: odd side S of the filter.
        stride: every `stride`-th position is kept.
        lifted: G, the group the map is lifted to; K itself if left out.
    """

    samples: ClassVar[bool] = True
    taps: Tensor
    cosets: Tensor

    def __init__(self, group: Group, kernel: int, stride: int, lifted: Group | None) -> None:
        super().__init__()
        whole = lifted or group
        self.order = group.order
        self.index = whole.order // group.order
        self.kernel = kernel
        self.stride = stride
        self.register_buffer("taps", moved_taps(group, kernel), persistent=False)
        self.register_buffer("cosets", torch.tensor(whole.cosets(group)), persistent=False)

    @abstractmethod
    def convolve(self, x: Tensor, stride: int, record: Recorder | None = None) -> Tensor:
        """The convolution over K of a map lifted to K, every `stride`-th position kept."""

    def forward(self, x: Tensor, record: Recorder | None = None) -> Tensor:
        """See `Path.forward`."""
        return self._mapped(x, self.stride, record)

    def fine(self, x: Tensor) -> Tensor:
        """See `Path.fine`."""
        return self._mapped(x, 1, None)

    def _mapped(self, x: Tensor, stride: int, record: Recorder | None) -> Tensor:
        if self.index == 1:
            return self.convolve(x, stride, record)
        y = self.convolve(self._picked(x, self.cosets), stride, record)
        return self._picked(y, torch.argsort(self.cosets))

    def _picked(self, x: Tensor, elements: Tensor) -> Tensor:
        planes: Tensor = x.unflatten(1, (-1, len(elements)))[:, :, elements]
        return planes.flatten(1, 2)


class GroupConv(GroupPath):
    """y[c', g, t] = sum_{c, h, s} x[c, h, t + s] w[c', c, g^-1 h, g^-1 s], circular.

    The filter moves with the output's group element and the group index is permuted, so the whole group acts, and
    translations with it (Cohen & Welling 2016, eq. 11).

    Args:
        in_channels: C; the input has C |G| planes.
        out_channels: C'; the output has C' |G| planes.
        group: the group that acts.
        kernel: odd side S of the filter.
        stride: every `stride`-th position is kept.
        scale: standard deviation of the output for an input of unit second moment.
        generator: source of the initial weights.
        lifted: the group of the map, where it is larger than `group`; channels are still counted as C and C'.
    """

    linear_in: ClassVar[tuple[str, ...]] = ("w",)
    move: Tensor

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
        channels = in_channels * self.index
        shape = (out_channels * self.index, channels, group.order, kernel, kernel)
        self.w = normal_parameter(shape, scale * (channels * group.order * kernel**2) ** -0.5, generator)
        self.register_buffer("move", moved_points(group, kernel), persistent=False)

    def convolve(self, x: Tensor, stride: int, record: Recorder | None = None) -> Tensor:
        """The group convolution of `x`, by a plain one whose filters are the |G| copies of each parameter filter."""
        out_channels, in_channels = self.w.shape[:2]
        bank = self.w.flatten(2)[:, :, self.move].transpose(1, 2)
        planes = (out_channels * self.order, in_channels * self.order)
        y = circular_conv(x, bank.reshape(*planes, self.kernel, self.kernel), stride)
        if record is not None:
            record("w", x, y)
        return y


class PointwiseGroupConv(GroupPath):
    """y[c', g, t] = sum_{c, s} x[c, g, t + s] w[c', c, g^-1 s], circular: GCONV that never mixes group elements.

    Arguments as for `GroupConv`; source: Layer-wise Equivariances (2023), appendix F.3.
    """

    linear_in: ClassVar[tuple[str, ...]] = ("w",)

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
        channels = in_channels * self.index
        shape = (out_channels * self.index, channels, kernel, kernel)
        self.w = normal_parameter(shape, scale * (channels * kernel**2) ** -0.5, generator)

    def convolve(self, x: Tensor, stride: int, record: Recorder | None = None) -> Tensor:
        """The group convolution of `x`, one plain convolution per element."""
        out_channels, in_channels = self.w.shape[:2]
        bank = self.w.flatten(2)[:, :, self.taps].permute(2, 0, 1, 3)
        filters = bank.reshape(self.order * out_channels, in_channels, self.kernel, self.kernel)
        by_element = x.unflatten(1, (in_channels, self.order)).transpose(1, 2).flatten(1, 2)
        grouped = circular_conv(by_element, filters, stride, groups=self.order)
        y: Tensor = grouped.unflatten(1, (self.order, out_channels)).transpose(1, 2).flatten(1, 2)
        if record is not None:
            record("w", x, y)
        return y
