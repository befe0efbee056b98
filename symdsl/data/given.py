"""Datasets made of what a program has in memory."""

from __future__ import annotations

from collections.abc import Sized
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, default_collate
from torch.utils.data import Dataset as TorchDataset

from symdsl.data.records import Dataset, Examples, as_tensor

_BATCH = 512


@torch.inference_mode(False)
def from_tensors(x_train: Any, y_train: Any, x_test: Any, y_test: Any) -> Dataset:
    """Return a dataset made of tensors or arrays, for a spec with `data given(...)`.

    Args:
        x_train: images, floats or uint8 (then divided by 255), `[example, channel, row, column]` or
            `[example, row, column]`.
        y_train: class labels, integers `[example]`, or regression targets, floats `[example]` or `[example, target]`.
        x_test: images like those of `x_train`.
        y_test: targets like those of `y_train`.

    Raises:
        TypeError: if images or targets are not of these types, or training and test data differ in type.
        ValueError: if they have another number of axes.
    """
    x_train, x_test = as_tensor(x_train, "x_train"), as_tensor(x_test, "x_test")
    train = Examples(_images(x_train, "x_train"), _targets(y_train, "y_train"))
    test = Examples(_images(x_test, "x_test"), _targets(y_test, "y_test"))
    if (x_train.dtype == torch.uint8) != (x_test.dtype == torch.uint8):
        raise TypeError("`x_train` and `x_test` must be both uint8, which is divided by 255, or both floats")
    if train.y.dtype != test.y.dtype:
        raise TypeError(
            f"`y_train` (={train.y.dtype}) and `y_test` (={test.y.dtype}) must be both labels or both floats"
        )
    return Dataset(train, test, "regression" if train.y.is_floating_point() else "classification")


def from_datasets(train: TorchDataset[Any], test: TorchDataset[Any]) -> Dataset:
    """Return a dataset made of two datasets of torch, for a spec with `data given(...)`.

    Args:
        train: pairs of an image (a tensor `[channel, row, column]` or `[row, column]`) and a target; each is read once.
        test: the same.

    Raises:
        TypeError: if an example is not such a pair, or of another type than `from_tensors` takes.
        ValueError: if images or targets have different shapes, or a dataset is empty.
    """
    return from_tensors(*_collected(train, "train"), *_collected(test, "test"))


def _collected(dataset: TorchDataset[Any], name: str) -> tuple[Tensor, Tensor]:
    if not hasattr(dataset, "__getitem__"):
        raise TypeError(f"`{name}` (a {type(dataset).__name__}) must be a dataset, whose examples have numbers")
    if not isinstance(dataset, Sized) or len(dataset) == 0:
        raise ValueError(f"`{name}` must be a dataset with a length of at least 1")
    own = torch.Generator()  # else the loader draws from the global one
    found = list(DataLoader(dataset, batch_size=_BATCH, collate_fn=list, generator=own))
    try:
        batches = [default_collate(some) for some in found]
    except (TypeError, KeyError) as error:
        raise TypeError(f"`{name}` must hold pairs of an image, a tensor, and a target: {error}") from error
    except RuntimeError as error:
        raise ValueError(f"{_unlike(name)}: {error}") from error
    if not all(isinstance(one, list) and len(one) == 2 and isinstance(one[0], Tensor) for one in batches):
        raise TypeError(f"`{name}` must hold pairs of an image, a tensor, and a target")
    if not all(isinstance(y, Tensor) for _, y in batches):
        raise TypeError(f"the targets of `{name}` must be numbers, or tensors of them")
    pairs = [pair for some in found for pair in some]
    if len({torch.as_tensor(x).dtype == torch.uint8 for x, _ in pairs}) > 1:
        raise TypeError(f"the images of `{name}` must be all uint8, which is divided by 255, or all floats")
    if len({torch.as_tensor(y).is_floating_point() for _, y in pairs}) > 1:
        raise TypeError(f"the targets of `{name}` must be all labels or all floats")
    try:
        return torch.cat([x for x, _ in batches]), torch.cat([y for _, y in batches])
    except RuntimeError as error:
        raise ValueError(f"{_unlike(name)}: {error}") from error


def _unlike(name: str) -> str:
    return f"the images of `{name}` must all have the same shape, and so must the targets"


def _images(x: Tensor, name: str) -> Tensor:
    if x.dtype != torch.uint8 and not x.is_floating_point():
        raise TypeError(f"`{name}` (={x.dtype}) must hold floats or uint8")
    if x.ndim not in (3, 4):
        raise ValueError(f"`{name}` (of shape {list(x.shape)}) must be [n, c, h, w] or [n, h, w]")
    x = x.detach().cpu().float() / 255 if x.dtype == torch.uint8 else x.detach().cpu().float()
    return x if x.ndim == 4 else x.unsqueeze(1)


def _targets(values: Any, name: str) -> Tensor:
    if isinstance(values, np.ndarray) and values.dtype.kind in "US":
        raise TypeError(f"`{name}` holds texts: `numpy.unique({name}, return_inverse=True)[1]` numbers classes from 0")
    y = as_tensor(values, name).detach().cpu()
    if y.is_complex() or y.dtype == torch.bool:
        raise TypeError(f"`{name}` (={y.dtype}) must hold integers, which are labels, or floats, which are targets")
    if y.ndim not in ((1, 2) if y.is_floating_point() else (1,)):
        raise ValueError(f"`{name}` (of shape {list(y.shape)}) must be [n], or of floats [n, targets]")
    if y.is_floating_point():
        return y.double() if y.ndim == 2 else y.double()[:, None]  # float32 only after `standardize(targets)`
    return y.long()
