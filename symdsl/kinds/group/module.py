"""GCONV: convolutions on a lifted map, equivariant to translations and to the group.

Its filter is whole, depends on space alone, or is a product: of group and space, or of channels, group and space.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from itertools import product
from typing import ClassVar, cast

import torch
from torch import Tensor
from torch.nn import functional

from symdsl.analysis.facts import Candidate, Layer
from symdsl.groups import GROUPS, TWO_STEPS_FROM, Group
from symdsl.nn import Path, Recorder, Sides, circular_conv, circular_pad, normal_parameter, pair


def moved_taps(group: Group, kernel: Sides) -> Tensor:
    """Return where each element moves the taps of a filter: `[element g, tap s] -> tap g^-1 s`, taps row by row."""
    taps = list(product(*(range(-(side // 2), side // 2 + 1) for side in pair(kernel))))
    rows = []
    for element in range(group.order):
        (a, b), (c, d) = group.elements[group.inverse(element)]
        rows.append([taps.index((a * i + b * j, c * i + d * j)) for i, j in taps])
    return torch.tensor(rows)


def moved_elements(group: Group) -> Tensor:
    """Return where each element moves the others: `[element g, element h] -> element g^-1 h`."""
    order = range(group.order)
    return torch.tensor([[group.compose(group.inverse(g), h) for h in order] for g in order])


def moved_points(group: Group, kernel: Sides) -> Tensor:
    """Return where each element moves the |G| S^2 points of a filter: `[element g, (h, s)] -> (g^-1 h, g^-1 s)`."""
    return (moved_elements(group)[:, :, None] * math.prod(pair(kernel)) + moved_taps(group, kernel)[:, None]).flatten(1)


class GroupPath(Path):
    """The base of all GCONV paths: the group that acts, and how it reads a map lifted to a larger group.

    A map lifted to a group G that contains K is, coset by coset, a map of C [G : K] channels lifted to K; a group
    convolution over K of that map is equivariant to K.

    Args:
        in_channels: C; the input has C |G| planes.
        out_channels: C'; the output has C' |G| planes.
        group: K, the group that acts.
        kernel: odd sides of the filter, S^2 taps.
        stride: every `stride`-th position is kept.
        scale: standard deviation of the output for an input of unit second moment; the product of the tensors has it.
        generator: source of the initial weights.
        lifted: G, the group the map is lifted to; K itself if left out.
    """

    samples: ClassVar[bool] = True
    taps: Tensor
    elements: Tensor
    move: Tensor
    cosets: Tensor

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        group: Group,
        kernel: Sides,
        stride: Sides = 1,
        scale: float = 1.0,
        generator: torch.Generator | None = None,
        lifted: Group | None = None,
    ) -> None:
        super().__init__()
        whole = lifted or group
        self.order = group.order
        self.index = whole.order // group.order
        self.kernel = pair(kernel)
        self.stride = pair(stride)
        self.size = math.prod(self.kernel)
        self.register_buffer("taps", moved_taps(group, kernel), persistent=False)
        self.register_buffer("elements", moved_elements(group), persistent=False)
        self.register_buffer("move", moved_points(group, kernel), persistent=False)
        self.register_buffer("cosets", torch.tensor(whole.cosets(group)), persistent=False)
        self.draw(in_channels * self.index, out_channels * self.index, scale, generator)

    @abstractmethod
    def draw(self, in_channels: int, out_channels: int, scale: float, generator: torch.Generator | None) -> None:
        """Draw the initial weights of a map lifted to K."""

    @abstractmethod
    def convolve(self, x: Tensor, stride: Sides, record: Recorder | None = None) -> Tensor:
        """Return the convolution over K of a map lifted to K, at every `stride`-th position."""

    def forward(self, x: Tensor, record: Recorder | None = None) -> Tensor:
        """Return the group convolution of `x` at every `stride`-th position; see `Path.forward`."""
        return self._mapped(x, self.stride, record)

    def fine(self, x: Tensor) -> Tensor:
        """Return the group convolution of `x` at every position; see `Path.fine`."""
        return self._mapped(x, 1, None)

    def _mapped(self, x: Tensor, stride: Sides, record: Recorder | None) -> Tensor:
        if self.index == 1:
            return self.convolve(x, stride, record)
        y = self.convolve(self._picked(x, self.cosets), stride, record)
        return self._picked(y, torch.argsort(self.cosets))

    def _picked(self, x: Tensor, elements: Tensor) -> Tensor:
        planes: Tensor = x.unflatten(1, (-1, len(elements)))[:, :, elements]
        return planes.flatten(1, 2)


class GroupConv(GroupPath):
    """A circular group convolution: y[c', g, t] = sum_{c, h, s} x[c, h, t + s] w[c', c, g^-1 h, g^-1 s].

    The filter moves with the output's group element and the group index is permuted, so the whole group acts, and
    translations with it (Cohen & Welling 2016, eq. 11).
    """

    linear_in: ClassVar[tuple[str, ...]] = ("w",)

    def draw(self, in_channels: int, out_channels: int, scale: float, generator: torch.Generator | None) -> None:
        """Draw whole filters."""
        shape = (out_channels, in_channels, self.order, *self.kernel)
        self.w = normal_parameter(shape, scale * math.prod(shape[1:]) ** -0.5, generator)

    def convolve(self, x: Tensor, stride: Sides, record: Recorder | None = None) -> Tensor:
        """Return the group convolution of `x`, by a plain one with the |G| copies of each parameter filter."""
        out_channels, in_channels = self.w.shape[:2]
        bank = self.w.flatten(2)[:, :, self.move].transpose(1, 2)
        planes = (out_channels * self.order, in_channels * self.order)
        y = circular_conv(x, bank.reshape(*planes, *self.kernel), stride)
        if record is not None:
            record("w", x, y)
        return y


class PointwiseGroupConv(GroupPath):
    """A circular convolution within every group element: y[c', g, t] = sum_{c, s} x[c, g, t + s] w[c', c, g^-1 s].

    Source: Layer-wise Equivariances (2023), appendix F.3.
    """

    linear_in: ClassVar[tuple[str, ...]] = ("w",)

    def draw(self, in_channels: int, out_channels: int, scale: float, generator: torch.Generator | None) -> None:
        """Draw filters of space."""
        shape = (out_channels, in_channels, *self.kernel)
        self.w = normal_parameter(shape, scale * math.prod(shape[1:]) ** -0.5, generator)

    def convolve(self, x: Tensor, stride: Sides, record: Recorder | None = None) -> Tensor:
        """Return the group convolution of `x`, by one plain convolution per element."""
        out_channels, in_channels = self.w.shape[:2]
        bank = self.w.flatten(2)[:, :, self.taps].permute(2, 0, 1, 3)
        filters = bank.reshape(self.order * out_channels, in_channels, *self.kernel)
        by_element = x.unflatten(1, (in_channels, self.order)).transpose(1, 2).flatten(1, 2)
        grouped = circular_conv(by_element, filters, stride, groups=self.order)
        y: Tensor = grouped.unflatten(1, (self.order, out_channels)).transpose(1, 2).flatten(1, 2)
        if record is not None:
            record("w", x, y)
        return y


class SeparableGroupConv(GroupPath):
    """GCONV with w[c', c, q, s] = w1[c', c, q] w2[c, s], q = g^-1 h: the filter of a channel turns, mixtures do not.

    Source: Layer-wise Equivariances (2023), appendix F.3.
    """

    linear_in: ClassVar[tuple[str, ...]] = ("w1", "w2")

    def draw(self, in_channels: int, out_channels: int, scale: float, generator: torch.Generator | None) -> None:
        """Draw mixtures, and a filter for each channel."""
        shape = (out_channels, in_channels, self.order)
        self.w1 = normal_parameter(shape, (scale / math.prod(shape[1:])) ** 0.5, generator)
        self.w2 = normal_parameter((in_channels, *self.kernel), (scale / self.size) ** 0.5, generator)

    def convolve(self, x: Tensor, stride: Sides, record: Recorder | None = None) -> Tensor:
        """Return the group convolution of `x`, by the whole filter, or in two steps where that is less work."""
        y = self._in_one(x, stride) if len(self.w1) < TWO_STEPS_FROM else self._in_two(x, stride)
        if record is not None:
            record("w1", x, y)
            record("w2", x, y)
        return y

    def filtered(self, padded: Tensor, g: int, stride: Sides) -> Tensor:
        """Return z[c, h, t] = sum_s x[c, h, t + s] w2[c, g^-1 s], what element g reads of a padded map."""
        filters = self.w2.flatten(1)[:, self.taps[g]].repeat_interleave(self.order, 0)
        bank = filters.unflatten(1, (1, *self.kernel))
        return functional.conv2d(padded, bank, stride=stride, groups=len(bank))

    def _in_one(self, x: Tensor, stride: Sides) -> Tensor:
        """One plain convolution by the |G| copies of each filter."""
        bank = torch.einsum("dcgh,cgs->dgchs", self.w1[:, :, self.elements], self.w2.flatten(1)[:, self.taps])
        filters = bank.flatten(2, 3).flatten(0, 1).unflatten(2, self.kernel)
        return circular_conv(x, filters, stride)

    def _in_two(self, x: Tensor, stride: Sides) -> Tensor:
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

    Source: Layer-wise Equivariances (2023), appendix F.3. Evaluated as a chain in which no map has more than C |G|
    planes:

        u[c, g, t] = sum_h x[c, h, t] w1[c, g^-1 h]
        v[c, g, t] = sum_s u[c, g, t + s] w2[c, g^-1 s]
        y[c', g, t] = sum_c v[c, g, t] w0[c', c]
    """

    linear_in: ClassVar[tuple[str, ...]] = ("w0", "w1", "w2")

    def draw(self, in_channels: int, out_channels: int, scale: float, generator: torch.Generator | None) -> None:
        """Draw mixtures, and filters of the group and of space for each channel."""
        part = scale ** (1 / 3)
        self.w0 = normal_parameter((out_channels, in_channels), part * in_channels**-0.5, generator)
        self.w1 = normal_parameter((in_channels, self.order), part * self.order**-0.5, generator)
        self.w2 = normal_parameter((in_channels, *self.kernel), part * self.size**-0.5, generator)

    def convolve(self, x: Tensor, stride: Sides, record: Recorder | None = None) -> Tensor:
        """Return the group convolution of `x`: over the group, then space, then channels."""
        u = self._over_the_group(x)
        v = self._over_space(u, stride)
        by_channel = v.unflatten(1, (-1, self.order)).flatten(2)
        y = torch.matmul(self.w0, by_channel).reshape(len(v), len(self.w0) * self.order, *v.shape[2:])
        if record is not None:
            record("w1", x, u)
            record("w2", u, v)
            record("w0", v, y)
        return y

    def _over_the_group(self, x: Tensor) -> Tensor:
        by_channel = x.unflatten(1, (-1, self.order)).flatten(3)
        return torch.matmul(self.w1[:, self.elements], by_channel).view_as(x)

    def _over_space(self, u: Tensor, stride: Sides) -> Tensor:
        bank = self.w2.flatten(1)[:, self.taps].reshape(-1, 1, *self.kernel)
        return circular_conv(u, bank, stride, groups=len(bank))


FACTORS: dict[str, Callable[..., GroupPath]] = {
    "full": GroupConv,
    "separable": SeparableGroupConv,
    "depthwise": DepthwiseGroupConv,
    "pointwise": PointwiseGroupConv,
}
"""The module of each factor."""


def group_conv(layer: Layer, candidate: Candidate, scale: float, generator: torch.Generator) -> GroupPath:
    """Build the path of a GCONV candidate."""
    module = FACTORS[cast(str, candidate.argument("factor"))]
    group = GROUPS[cast(str, candidate.argument("group"))]
    kernel = layer.in_shape.sides(cast(int, candidate.argument("k")))
    channels, lifted = (layer.in_shape.channels, layer.out_shape.channels), GROUPS[layer.in_shape.group]
    return module(*channels, group, kernel, layer.strides, scale, generator, lifted)
