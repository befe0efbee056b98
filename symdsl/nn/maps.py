"""Layers without parameters: lift, project, pool, flatten."""

from __future__ import annotations

from typing import Literal

from torch import Tensor, nn

Reduction = Literal["max", "mean"]


class Lift(nn.Module):
    """A layer that copies images to every group element: f[c, g, t] = x[c, t], `[n, C, h, w] -> [n, C |G|, h, w]`."""

    def __init__(self, order: int) -> None:
        super().__init__()
        self.order = order

    def forward(self, x: Tensor) -> Tensor:
        """Copy `x` to every group element."""
        return x.repeat_interleave(self.order, dim=1)

    def extra_repr(self) -> str:
        """Return the argument, for printing."""
        return f"{self.order}"


class Project(nn.Module):
    """A layer that reduces over the group, `[n, C |G|, h, w] -> [n, C, h, w]`."""

    def __init__(self, order: int, reduction: Reduction) -> None:
        super().__init__()
        self.order = order
        self.reduction = reduction

    def forward(self, x: Tensor) -> Tensor:
        """Return the maximum or the mean over group elements."""
        lifted: Tensor = x.unflatten(1, (-1, self.order))
        return lifted.amax(2) if self.reduction == "max" else lifted.mean(2)

    def extra_repr(self) -> str:
        """Return the arguments, for printing."""
        return f'{self.order}, "{self.reduction}"'


class Pool(nn.Module):
    """A layer that reduces over all positions, `[n, P, h, w] -> [n, P, 1, 1]`."""

    def __init__(self, reduction: Reduction) -> None:
        super().__init__()
        self.reduction = reduction

    def forward(self, x: Tensor) -> Tensor:
        """Return the maximum or the mean over positions."""
        return x.amax((2, 3), keepdim=True) if self.reduction == "max" else x.mean((2, 3), keepdim=True)

    def extra_repr(self) -> str:
        """Return the argument, for printing."""
        return f'"{self.reduction}"'


class Flatten(nn.Module):
    """A layer that turns a map into a vector, kept as `[n, features, 1, 1]` so that a head is a usual layer."""

    def forward(self, x: Tensor) -> Tensor:
        """Flatten all dimensions but that of the examples."""
        return x.flatten(1).unsqueeze(-1).unsqueeze(-1)
