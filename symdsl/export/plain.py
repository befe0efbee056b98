"""The plain PyTorch modules that a learned layer becomes; an exported `model.py` has the text of these classes."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional


class Sum(nn.Module):
    """A module that adds up what a layer's terms make of a map, and a bias for each plane: `[n, *shape]`."""

    def __init__(self, shape: tuple[int, int, int], *terms: nn.Module) -> None:
        super().__init__()
        self.shape = shape
        self.terms = nn.ModuleList(terms)
        self.bias = nn.Parameter(torch.zeros(shape[0]))

    def forward(self, x: Tensor) -> Tensor:
        """Return the sum of the terms and the bias."""
        y = self.bias[:, None, None].expand(x.shape[0], *self.shape)
        for term in self.terms:
            y = y + term(x)
        return y


class Convolution(nn.Module):
    """A convolution on the torus; of every `stride`-th position the phase is kept whose values have most energy.

    Kernel and stride are of a side of the map, or of its rows and its columns.
    """

    def __init__(
        self, planes: int, outputs: int, kernel: int | tuple[int, int], stride: int | tuple[int, int] = 1
    ) -> None:
        super().__init__()
        rows, columns = (kernel, kernel) if isinstance(kernel, int) else kernel
        self.stride = (stride, stride) if isinstance(stride, int) else stride
        self.weight = nn.Parameter(torch.zeros(outputs, planes, rows, columns))

    def forward(self, x: Tensor) -> Tensor:
        """Wrap the map around its edges and convolve it."""
        rows, columns = self.weight.shape[2] // 2, self.weight.shape[3] // 2
        if rows:
            x = torch.cat((x[:, :, -rows:], x, x[:, :, :rows]), 2)
        if columns:
            x = torch.cat((x[..., -columns:], x, x[..., :columns]), 3)
        y = functional.conv2d(x, self.weight)
        return y if self.stride == (1, 1) else self.strongest_phase(y)

    def strongest_phase(self, y: Tensor) -> Tensor:
        """Thin a map out so that what is kept moves with the image."""
        apart = y.unflatten(3, (-1, self.stride[1])).unflatten(2, (-1, self.stride[0]))
        phases = apart.permute(0, 3, 5, 1, 2, 4).flatten(1, 2)
        best = phases.square().sum((2, 3, 4)).argmax(1)
        kept: Tensor = phases.gather(1, best[:, None, None, None, None].expand(-1, 1, *phases.shape[2:]))
        return kept.squeeze(1)

    def extra_repr(self) -> str:
        """Return the arguments, for printing."""
        outputs, planes, *kernel = self.weight.shape
        sides, stride = (one[0] if one[0] == one[1] else tuple(one) for one in (kernel, self.stride))
        return f"{planes}, {outputs}, {sides}" + ("" if stride == 1 else f", stride={stride}")


class FullyConnected(nn.Module):
    """A fully connected layer: every number of the output reads every number of the input."""

    def __init__(self, shape: tuple[int, int, int], out_shape: tuple[int, int, int]) -> None:
        super().__init__()
        self.shape, self.out_shape = shape, out_shape
        self.weight = nn.Parameter(torch.zeros(math.prod(out_shape), math.prod(shape)))

    def forward(self, x: Tensor) -> Tensor:
        """Multiply by the weight."""
        y: Tensor = functional.linear(x.flatten(1), self.weight).unflatten(1, self.out_shape)
        return y

    def extra_repr(self) -> str:
        """Return the arguments, for printing."""
        return f"{self.shape}, {self.out_shape}"


class RandomFeatures(nn.Module):
    """Cosines of random frequencies of the whole map, which training leaves as they are."""

    weight: Tensor
    phase: Tensor

    def __init__(self, shape: tuple[int, int, int], out_shape: tuple[int, int, int]) -> None:
        super().__init__()
        self.shape, self.out_shape = shape, out_shape
        self.register_buffer("weight", torch.zeros(math.prod(out_shape), math.prod(shape)))
        self.register_buffer("phase", torch.zeros(math.prod(out_shape)))

    def forward(self, x: Tensor) -> Tensor:
        """Return the features, whose squares sum up to about one."""
        angles = functional.linear(x.flatten(1), self.weight, self.phase)
        y: Tensor = (2 / self.phase.shape[0]) ** 0.5 * angles.cos().unflatten(1, self.out_shape)
        return y

    def extra_repr(self) -> str:
        """Return the arguments, for printing."""
        return f"{self.shape}, {self.out_shape}"


class Factored(nn.Module):
    """A dense layer with w[c', y, c, x] = outer[c', c, y] inner[c', c, x], the planes in runs of one channel."""

    def __init__(
        self, channels: int, positions: int, out_channels: int, out_positions: int, out_shape: tuple[int, int, int]
    ) -> None:
        super().__init__()
        self.out_shape = out_shape
        self.outer = nn.Parameter(torch.zeros(out_channels, channels, out_positions))
        self.inner = nn.Parameter(torch.zeros(out_channels, channels, positions))

    def forward(self, x: Tensor) -> Tensor:
        """Sum over positions, then over channels."""
        mixed = torch.einsum("ncx,dcx->ndc", x.reshape(x.shape[0], *self.inner.shape[1:]), self.inner)
        return torch.einsum("ndc,dcy->ndy", mixed, self.outer).reshape(x.shape[0], *self.out_shape)

    def extra_repr(self) -> str:
        """Return the arguments, for printing."""
        out_channels, channels, positions = self.inner.shape
        return f"{channels}, {positions}, {out_channels}, {self.outer.shape[2]}, {self.out_shape}"


class Residual(nn.Sequential):
    """Modules one after the other, whose output is added to their input."""

    def forward(self, x: Tensor) -> Tensor:
        """Return x + body(x)."""
        y: Tensor = x + super().forward(x)
        return y


class Copies(nn.Module):
    """A module that blurs every map a little and moves it in many ways: `[n copies, channel, row, column]`."""

    grid: Tensor
    kernel: Tensor

    def __init__(self, copies: int, height: int, width: int) -> None:
        super().__init__()
        self.register_buffer("kernel", torch.zeros(1, 1, 3, 3))
        self.register_buffer("grid", torch.zeros(copies, height, width, 2))

    def forward(self, x: Tensor) -> Tensor:
        """Resample the maps; what moves in continues the edge."""
        copies, height, width, _ = self.grid.shape
        wide = functional.pad(x.reshape(-1, 1, height, width), (1, 1, 1, 1), mode="replicate")
        smooth = functional.conv2d(wide, self.kernel).reshape(1, -1, height, width).expand(copies, -1, -1, -1)
        y = functional.grid_sample(smooth, self.grid, mode="bilinear", padding_mode="border", align_corners=False)
        by_map = y.reshape(copies, -1, x.shape[1], height, width).transpose(0, 1)
        return by_map.reshape(-1, x.shape[1], height, width)

    def extra_repr(self) -> str:
        """Return the arguments, for printing."""
        copies, height, width, _ = self.grid.shape
        return f"{copies}, {height}, {width}"


class Mean(nn.Module):
    """A module that takes the mean over the copies of every example."""

    def __init__(self, copies: int) -> None:
        super().__init__()
        self.copies = copies

    def forward(self, x: Tensor) -> Tensor:
        """Return the mean of each run of copies."""
        return x.reshape(-1, self.copies, *x.shape[1:]).mean(1)

    def extra_repr(self) -> str:
        """Return the argument, for printing."""
        return f"{self.copies}"
