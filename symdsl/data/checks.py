"""Checks that every dataset must pass, whatever its source."""

from __future__ import annotations

import torch
from torch import Tensor

from symdsl.analysis.facts import Data
from symdsl.catalog.data import Task
from symdsl.data.memory import chunk_of
from symdsl.data.records import Dataset, Examples
from symdsl.diagnostics import RunError


def check_dataset(given: Dataset | None) -> None:
    """Raise an error if what was handed over in Python is no dataset.

    Raises:
        TypeError: it is something else.
    """
    if given is not None and not isinstance(given, Dataset):
        raise TypeError(f"`data` (of type {type(given).__name__}) must be made by `symdsl.data.from_tensors`")


def check_handed_over(data: Data, given: Dataset | None) -> None:
    """Raise an error unless data were handed over in Python exactly if the spec says so.

    Raises:
        TypeError: they are no dataset.
        ValueError: they were, but the spec names another source.
        RunError: they were not, but the spec has `data given(...)`.
    """
    check_dataset(given)
    if given is not None and data.source.name != "given":
        raise ValueError(f"the spec learns from `{data.source.name}`: write `data given(...)` to hand data over")
    if given is None and data.source.name == "given":
        raise RunError(
            "the data of this spec are handed over in Python: "
            "`symdsl.search(spec, data=symdsl.data.from_tensors(x_train, y_train, x_test, y_test))`; "
            "with `resume=RUN` in place of `spec` an interrupted run goes on; `symdsl.runner.evaluate(RUN, data=...)` "
            "measures a finished one, and `run.predict(run.prepare(x))` after `run = symdsl.load_run(RUN)` predicts"
        )


def check_values(dataset: Dataset, origin: str, classes: int) -> None:
    """Raise an error if a source delivered values that cannot be used.

    Args:
        dataset: what the source delivered.
        origin: the source's name, or its file, to lead the message.
        classes: labels must be below this; for regression, the number of targets.

    Raises:
        RunError: when a part is empty, types, lengths or shapes disagree, a number is not finite or a label is out of
            range; the message names the first example at fault.
    """
    for part, examples in (("train", dataset.train), ("test", dataset.test)):
        _check_types(examples, dataset.task, part, origin)
        images, targets = len(examples.x), len(examples.y)
        if images != targets:
            raise RunError(f"{origin}: `x_{part}` has {images} examples, but `y_{part}` {targets}")
        if examples.x.numel() == 0:
            raise RunError(f"{origin}: `x_{part}` is empty ({_sides(examples.x)} images, {images} of them)")
        check_finite(examples.x, f"{origin}: `x_{part}")
        check_outcomes(examples.y, dataset.task, f"{origin}: `y_{part}", classes)
    train, test = (_sides(examples.x) for examples in (dataset.train, dataset.test))
    if train != test:
        raise RunError(f"{origin}: `x_train` holds {train} images, but `x_test` {test}")


def _check_types(examples: Examples, task: Task, part: str, origin: str) -> None:
    targets = (torch.int64,) if task == "classification" else (torch.float32, torch.float64)
    for name, held, types, axes in (
        (f"x_{part}", examples.x, (torch.float32,), 4),
        (f"y_{part}", examples.y, targets, 1 if task == "classification" else 2),
    ):
        if not isinstance(held, Tensor) or held.dtype not in types or held.ndim != axes:
            advice = "`symdsl.data.from_tensors` makes examples of the right types"
            raise RunError(f"{origin}: `{name}` must be a tensor of {types[0]} with {axes} axes: {advice}")


def check_task(dataset: Dataset, origin: str, expected: str) -> None:
    """Raise an error if the targets do not fit the task of the spec.

    Raises:
        RunError: they are class labels where it says real numbers, or the other way round.
    """
    if dataset.task != expected:
        found = {"classification": "class labels", "regression": "real numbers"}[dataset.task]
        advice = ": hand over floats" if expected == "regression" else ""
        raise RunError(f"{origin}: the targets are {found}, but the task of the spec is {expected}{advice}")


def check_targets(dataset: Dataset, origin: str) -> None:
    """Raise an error if the targets of a regression are all the same, or not finite, after all transforms.

    Raises:
        RunError: they are.
    """
    if dataset.task != "regression":
        return
    y = dataset.train.y
    if not all(bool(part.y.isfinite().all()) for part in (dataset.train, dataset.test)):
        raise RunError(f"{origin}: targets are too large for float32: `standardize(targets)` scales them")
    if bool((y == y[0]).all()):
        raise RunError(f"{origin}: all targets of `y_train` are the same: there is nothing to learn")


def check_shape(dataset: Dataset, origin: str, expected: tuple[int, int, int]) -> None:
    """Raise an error if the images do not have the shape that the spec was checked with.

    Raises:
        RunError: when they differ.
    """
    found = tuple(dataset.train.x.shape[1:])
    if found != expected:
        said = "x".join(map(str, expected))
        raise RunError(f"{origin}: images come out as {_sides(dataset.train.x)}, but the spec says {said}")


def check_finite(values: Tensor, title: str) -> None:
    """Raise an error if a number is not finite.

    Args:
        values: one entry for each example, along the first axis.
        title: leads the message, up to the backtick before the index.

    Raises:
        RunError: one is not; the message names the first example at fault.
    """
    parts = values.split(chunk_of(values))
    index = _first(torch.cat([~torch.isfinite(part).flatten(1).all(1) for part in parts]))
    if index is not None:
        raise RunError(f"{title}[{index}]` holds a number that is not finite")


def check_outcomes(y: Tensor, task: Task, title: str, classes: int) -> None:
    """Raise an error if labels are out of range, or targets not finite or as many as they must be.

    Args:
        y: labels `[n]`, or targets `[n, target]`.
        task: which of both.
        title: leads the message, up to the backtick before the index.
        classes: that there are, or targets.

    Raises:
        RunError: the message names the first example at fault.
    """
    if task == "regression":
        if y.shape[1] != classes:
            raise RunError(f"{title}` has {y.shape[1]} targets per example, but the spec says {classes}")
        check_finite(y, title)
    elif (index := _first((y < 0) | (y >= classes))) is not None:
        raise RunError(f"{title}[{index}]` (={int(y[index])}) must be a class from 0 to {classes - 1}")


def _first(wrong: Tensor) -> int | None:
    return int(wrong.nonzero()[0]) if bool(wrong.any()) else None


def _sides(x: Tensor) -> str:
    return "x".join(map(str, x.shape[1:]))
