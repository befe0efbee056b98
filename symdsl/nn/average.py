"""Transformed copies of maps, and the mean over what becomes of them.

A transformation is `T = exp(sum_i eps_i eta_i G_i)` of the coordinates, with generators G_i of the affine group,
learned ranges eta_i, and eps_i even in [-1, 1] (van der Ouderaa & van der Wilk 2022, "Learning invariant weights in
neural networks", eq. 3).
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional

from symdsl.catalog.networks import LARGEST

BLUR = 0.5
"""Standard deviation, in pixels, of the Gaussian that a map is blurred with before it is resampled."""

_GENERATORS: dict[str, tuple[tuple[float, float, float], ...]] = {
    "translate_x": ((0, 0, 2), (0, 0, 0)),
    "translate_y": ((0, 0, 0), (0, 0, 2)),
    "rotation": ((0, -math.pi / 180, 0), (math.pi / 180, 0, 0)),
    "scale_x": ((1, 0, 0), (0, 0, 0)),
    "scale_y": ((0, 0, 0), (0, 1, 0)),
    "shear": ((0, 1, 0), (1, 0, 0)),
}
"""Upper rows of G_i per unit of the language, in coordinates (across, down) in which a map is from -1 to 1."""


def lattice(samples: int, dimensions: int) -> Tensor:
    """Return evenly spread points of the cube [-1, 1]^d, which mirror each other about 0: `[sample, d]`, float64.

    The first coordinates are evenly spaced; the others go round by powers of the root of `z^d = z + 1`, so that no few
    of the points are near each other in any direction.

    Args:
        samples: how many points.
        dimensions: d.
    """
    root = 2.0
    for _ in range(64):
        root = (1 + root) ** (1 / max(dimensions, 2))
    steps = torch.tensor([1 / samples, *(root**-power for power in range(1, dimensions))], dtype=torch.float64)
    number = torch.arange(samples, dtype=torch.float64) - (samples - 1) / 2
    return 2 * (0.5 + number[:, None] * steps).remainder(1.0) - 1


def uniform(samples: int, dimensions: int, generator: torch.Generator | None = None) -> Tensor:
    """Return points drawn uniformly and independently from the cube [-1, 1]^d: `[sample, d]`, float64."""
    return 2 * torch.rand(samples, dimensions, generator=generator, dtype=torch.float64) - 1


class Average(nn.Module):
    """A layer that makes transformed copies of every map, `[n, C, h, w] -> [n S, C, h, w]`, one example's in a row.

    In training mode the transformations are drawn, the same ones for all examples of a pass. In evaluation they are
    those of a lattice.

    Args:
        ranges: eta by generator, in the units of the language.
        samples: S.
        fixed: whether a search must leave the ranges as they are.

    Attributes:
        ranges: eta, `[generator]`, float64.
    """

    ranges: Tensor

    def __init__(self, ranges: Mapping[str, float], samples: int, fixed: bool = False) -> None:
        super().__init__()
        self.generators = tuple(ranges)
        self.samples = samples
        self.fixed = fixed
        self.register_buffer("ranges", torch.tensor(list(ranges.values()), dtype=torch.float64))
        self._drawn: Tensor | None = None
        self._aside = torch.zeros(len(self.generators), dtype=torch.float64)

    def stated(self) -> dict[str, float]:
        """Return the ranges by generator."""
        return dict(zip(self.generators, self.ranges.tolist(), strict=True))

    @torch.no_grad()
    def set_range(self, generator: str, value: float) -> None:
        """Set one range, within its bounds.

        Raises:
            KeyError: it has no such generator.
            ValueError: the range is not a number.
        """
        if generator not in self.generators:
            raise KeyError(generator)
        if math.isnan(value):
            raise ValueError(f"`{generator}` (={value}) must be a number")
        self.ranges[self.generators.index(generator)] = min(max(value, 0.0), LARGEST[generator])

    def draw(self, generator: torch.Generator, spread: float = 0.0) -> None:
        """Draw the transformations of the next passes in training mode.

        Args:
            generator: on the CPU.
            spread: by which the ranges are taken as larger or smaller than they are, as a share of the largest.
        """
        self._drawn = uniform(self.samples, len(self.generators), generator)
        self._aside = uniform(1, len(self.generators), generator)[0].sign() * spread

    def matrices(self, height: int, width: int) -> Tensor:
        """Return the present transformations, upper rows `[S, 2, 3]`, float64, in coordinates from -1 to 1 on a map.

        Turns are turns of pixels, and moves are fractions of a side, also where the sides differ.
        """
        ranges = self.ranges.double()
        if self.training and self._drawn is not None:
            eps = self._drawn
            largest = ranges.new_tensor([LARGEST[name] for name in self.generators])
            ranges = (ranges / largest + self._aside.to(ranges)).clamp(0, 1) * largest
        else:
            eps = (uniform if self.training else lattice)(self.samples, len(self.generators))
        basis = ranges.new_tensor([(*_GENERATORS[name], (0, 0, 0)) for name in self.generators])
        aspect = ranges.new_tensor([[1, height / width, 1], [width / height, 1, 1], [1, 1, 1]])
        algebra = torch.einsum("sk,kij->sij", eps.to(ranges) * ranges, basis * aspect)
        found: Tensor = torch.linalg.matrix_exp(algebra)[:, :2]
        return found

    def forward(self, x: Tensor) -> Tensor:
        """Blur maps a little and resample them, bilinearly, in float32 or better; what moves in continues the edge."""
        wide = x.to(torch.promote_types(x.dtype, torch.float32))  # in bfloat16 coordinates are off by a pixel's share
        return resampled(blurred(wide), self.matrices(*x.shape[2:]).to(wide.dtype)).to(x.dtype)

    def extra_repr(self) -> str:
        """Return the arguments, for printing."""
        return ", ".join([f"{self.stated()}", f"{self.samples}", *(["fixed=True"] if self.fixed else [])])


def blurred(x: Tensor) -> Tensor:
    """Return maps under a Gaussian of three by three pixels, edges continued."""
    wide = functional.pad(x.flatten(0, 1).unsqueeze(1), (1, 1, 1, 1), mode="replicate")
    smooth: Tensor = functional.conv2d(wide, kernel(x))
    return smooth.view_as(x)


def kernel(like: Tensor) -> Tensor:
    """Return the Gaussian, `[1, 1, 3, 3]`."""
    side = math.exp(-0.5 / BLUR**2)
    line = like.new_tensor([side, 1.0, side]) / (1 + 2 * side)
    return torch.outer(line, line)[None, None]


def resampled(x: Tensor, matrices: Tensor) -> Tensor:
    """Return every map under every transformation, `[n S, C, h, w]`, those of one example in a row."""
    samples, (examples, channels, height, width) = len(matrices), x.shape
    grid = functional.affine_grid(matrices, [samples, 1, height, width], align_corners=False)
    planes = x.flatten(0, 1).expand(samples, -1, -1, -1)
    moved = functional.grid_sample(planes, grid, mode="bilinear", padding_mode="border", align_corners=False)
    by_example: Tensor = moved.unflatten(1, (examples, channels)).transpose(0, 1)
    return by_example.flatten(0, 1)


class Mean(nn.Module):
    """A layer that averages over the copies of every example, `[n S, ...] -> [n, ...]`.

    Args:
        since: name of the stage that made the copies.
    """

    def __init__(self, since: str) -> None:
        super().__init__()
        self.since = since

    def forward(self, x: Tensor, samples: int) -> Tensor:
        """Return the mean of each run of `samples` rows."""
        mean: Tensor = x.unflatten(0, (-1, samples)).mean(1)
        return mean

    def extra_repr(self) -> str:
        """Return where the copies began, for printing."""
        return f"since={self.since!r}"
