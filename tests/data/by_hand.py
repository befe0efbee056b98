"""Data facts written by hand, for tests that start after the language."""

from __future__ import annotations

from typing import Any

import torch

from symdsl.analysis.facts import Data, Step, Value
from symdsl.data import Dataset, Examples
from symdsl.diagnostics import Span

SPAN = Span("test.sym", 1, 1, 1, 2)


def step(called: str, **arguments: Value) -> Step:
    return Step(called, tuple(arguments.items()), SPAN)


def facts(
    source: Step, *transforms: Step, shape: tuple[int, int, int], classes: int = 10, task: Any = "classification"
) -> Data:
    return Data(source, transforms, *shape, classes, task)


def synthetic(*transforms: Step, shape: tuple[int, int, int] = (2, 7, 7), classes: int = 3, train: int = 30) -> Data:
    source = step("synthetic", channels=2, size=7, classes=3, train=train, test=11)
    return facts(source, *transforms, shape=shape, classes=classes)


def dataset(train: torch.Tensor, test: torch.Tensor | None = None) -> Dataset:
    """A dataset of the images given, labelled 0, 1, 2, ..."""
    parts = (train, train if test is None else test)
    return Dataset(*(Examples(x, torch.arange(len(x))) for x in parts), "classification")
