"""Reads a dataset from an `.npz` file, trusting nothing in it."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path
from typing import Any, Literal, NoReturn

import attrs
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from symdsl.data.records import Dataset, Examples
from symdsl.diagnostics import RunError

Task = Literal["classification", "regression"]

_NAMES = ("x_train", "y_train", "x_test", "y_test")
# What numpy and the archive reader raise on files that are cut short, are something else or hold pickles.
_UNREADABLE = (zipfile.BadZipFile, zlib.error, ValueError, EOFError, KeyError, NotImplementedError, MemoryError)


def read_arrays(path: Path, task: Task) -> Dataset:
    """The dataset in an `.npz` file.

    `x_*` are images, float or uint8 (then divided by 255), `[example, channel, row, column]` or
    `[example, row, column]`. `y_*` are class labels, integers `[example]`, or regression targets, floats `[example]` or
    `[example, target]`. Pickled objects are refused unread.

    Raises:
        RunError: when the file cannot be read, an array is missing or has the wrong type or number of axes.
    """
    found = _read(path)
    train, test = (
        Examples(_images(found[f"x_{part}"]), _READERS[task](found[f"y_{part}"])) for part in ("train", "test")
    )
    return Dataset(train, test, task)


@attrs.frozen(eq=False)
class _Named:
    """An array with the words that lead an error message about it."""

    title: str
    values: NDArray[Any]

    def refuse(self, fault: str) -> NoReturn:
        raise RunError(f"{self.title} {fault}")


def _read(path: Path) -> dict[str, _Named]:
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            return {name: _Named(f"{path}: `{name}`", _member(path, archive, name)) for name in _NAMES}
    except (AttributeError, TypeError, *_UNREADABLE) as error:
        # A lone array is no archive: it has neither `with` nor names.
        raise RunError(f"{path} is not a readable .npz file: save it again with `numpy.savez`") from error
    except OSError as error:
        raise RunError(f"cannot read {path}: {error.strerror or error}") from error


def _member(path: Path, archive: Any, name: str) -> NDArray[Any]:
    if name not in archive.files:
        raise RunError(f"{path}: `{name}` is missing: the file must hold {', '.join(f'`{each}`' for each in _NAMES)}")
    try:
        values = archive[name]
    except _UNREADABLE:
        values = None
    if not isinstance(values, np.ndarray):
        raise RunError(f"{path}: `{name}` cannot be read: it is damaged or holds Python objects")
    return values


def _images(array: _Named) -> Tensor:
    values = array.values
    if values.ndim not in (3, 4):
        array.refuse(f"has {values.ndim} axes, expected [n, c, h, w] or [n, h, w]")
    if values.dtype != np.uint8 and not np.issubdtype(values.dtype, np.floating):
        array.refuse(f"holds {values.dtype}, expected floats or uint8")
    channels = values.shape[1] if values.ndim == 4 else 1
    x = _float32(values).reshape(len(values), channels, *values.shape[-2:])
    return x / 255 if values.dtype == np.uint8 else x


def _labels(array: _Named) -> Tensor:
    values = array.values
    if not np.issubdtype(values.dtype, np.integer):
        array.refuse(f"holds {values.dtype}, expected integers: classes are labelled by whole numbers")
    if values.ndim != 1:
        array.refuse(f"has {values.ndim} axes, expected one label per example, [n]")
    return torch.from_numpy(values.astype(np.int64))


def _targets(array: _Named) -> Tensor:
    values = array.values
    if not np.issubdtype(values.dtype, np.floating):
        array.refuse(f"holds {values.dtype}, expected floats: regression targets are real numbers")
    if values.ndim not in (1, 2):
        array.refuse(f"has {values.ndim} axes, expected [n] or [n, targets]")
    return _float32(values).reshape(len(values), values.shape[1] if values.ndim == 2 else 1)


_READERS = {"classification": _labels, "regression": _targets}


def _float32(values: NDArray[Any]) -> Tensor:
    with np.errstate(over="ignore"):  # what overflows becomes infinite, and that is looked for later
        return torch.from_numpy(values.astype(np.float32))
