"""Transformed copies of an image, one pixel after the other, in pixels around the middle of the map."""

from __future__ import annotations

import math
from itertools import product

import torch
from torch import Tensor

from symdsl.analysis.facts import Average

GOLDEN = (math.sqrt(5) - 1) / 2


def points(samples: int, dimensions: int) -> list[list[float]]:
    """The lattice of the evaluation, for one or two ranges: one goes by 1/S, the other by the golden ratio."""
    steps = [1 / samples, GOLDEN][:dimensions]
    numbers = [number - (samples - 1) / 2 for number in range(samples)]
    return [[2 * ((0.5 + number * step) % 1.0) - 1 for step in steps] for number in numbers]


def algebra(generator: str, size: float, height: int, width: int) -> Tensor:
    """size times the generator, in pixels."""
    found = torch.zeros(3, 3, dtype=torch.float64)
    match generator:
        case "translate_x":
            found[0, 2] = size * width
        case "translate_y":
            found[1, 2] = size * height
        case "rotation":
            found[0, 1], found[1, 0] = -math.radians(size), math.radians(size)
        case "scale_x":
            found[0, 0] = size
        case "scale_y":
            found[1, 1] = size
        case "shear":
            found[0, 1] = found[1, 0] = size
    return found


def exponential(matrix: Tensor) -> Tensor:
    """By its series."""
    total = term = torch.eye(3, dtype=torch.float64)
    for number in range(1, 60):
        term = term @ matrix / number
        total = total + term
    return total


def blurred(x: Tensor) -> Tensor:
    """`[plane, row, column]` under a Gaussian of half a pixel, edges continued."""
    height, width = x.shape[1:]
    weight = [math.exp(-2 * step**2) for step in (-1, 0, 1)]
    found = torch.zeros_like(x)
    for i, j in product(range(height), range(width)):
        for (down, p), (right, q) in product(zip((-1, 0, 1), weight, strict=True), repeat=2):
            row, column = min(max(i + down, 0), height - 1), min(max(j + right, 0), width - 1)
            found[:, i, j] += p * q / sum(weight) ** 2 * x[:, row, column]
    return found


def moved(x: Tensor, transformation: Tensor) -> Tensor:
    """The map whose value at p is that of `x` at T p, bilinearly, edges continued."""
    height, width = x.shape[1:]
    found = torch.zeros_like(x)
    for i, j in product(range(height), range(width)):
        at = torch.tensor([j - (width - 1) / 2, i - (height - 1) / 2, 1.0], dtype=torch.float64)
        across, down, _ = (transformation @ at).tolist()
        row = min(max(down + (height - 1) / 2, 0), height - 1)
        column = min(max(across + (width - 1) / 2, 0), width - 1)
        for y, x_ in product((math.floor(row), math.floor(row) + 1), (math.floor(column), math.floor(column) + 1)):
            weight = (1 - abs(row - y)) * (1 - abs(column - x_))
            if weight > 0:
                found[:, i, j] += weight * x[:, y, x_]
    return found


def copies(node: Average, x: Tensor) -> list[Tensor]:
    """The transformed copies of `[channel, element, row, column]`."""
    height, width = x.shape[2:]
    smooth = blurred(x[:, 0])
    found = []
    for eps in points(node.samples, len(node.ranges)):
        parts = [
            algebra(name, size * value, height, width) for size, (name, value) in zip(eps, node.ranges, strict=True)
        ]
        found.append(moved(smooth, exponential(torch.stack(parts).sum(0)))[:, None])
    return found
