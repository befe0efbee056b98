"""The records every source produces and every transform maps."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import attrs
import numpy as np
import torch
from torch import Generator, Tensor

from symdsl.catalog.data import Task
from symdsl.data.memory import MEMORY, Room, chunk_of
from symdsl.data.preprocessing import UNPREPARED, Preprocessing


def as_tensor(values: Any, name: str = "x") -> Tensor:
    """Return a tensor of numbers in any form: also of arrays that are flipped, big-endian or read-only.

    Args:
        values: the numbers.
        name: of what they are, for the message of an error.

    Raises:
        TypeError: they are no numbers, or some of them are masked.
    """
    if np.ma.is_masked(values):
        raise TypeError(f"`{name}` has masked values: fill them in, or leave their examples out")
    try:
        if isinstance(values, np.ndarray):
            values = np.require(values, values.dtype.newbyteorder("="), ["C", "W"])
        found = torch.as_tensor(values)
        if found.layout != torch.strided:
            raise TypeError(f"it is sparse ({found.layout}); give `{name}.to_dense()`")
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(f"`{name}` must be a tensor or an array of numbers: {error}") from error
    return found.clone() if found.is_inference() else found


def shown(tensor: Tensor | None) -> str:
    """Return shape and type of a tensor, which stand for it where its numbers would fill the screen."""
    return "None" if tensor is None else f"{str(tensor.dtype).removeprefix('torch.')} {list(tensor.shape)}"


Watch = Callable[[str, int, int], None]
"""Called with what is being done to the data, the number of examples done, and their total, 0 if unknown."""


def unwatched(what: str, done: int, total: int) -> None:
    """Ignore progress: the default of functions that report it."""


Streams = Callable[[str], Generator]
"""Names a purpose (`train`, `test`, ...) and gets a random stream of its own: the same seed, the same stream."""


@attrs.frozen(eq=False)
class Examples:
    """Images `[example, channel, row, column]` and their targets.

    Attributes:
        x: images, float32 `[example, channel, row, column]`.
        y: class labels, int64 `[example]`, or regression targets, float32 `[example, target]`, and float64 until
            `symdsl.data.load` has applied all transforms.
    """

    x: Tensor = attrs.field(repr=shown)
    y: Tensor = attrs.field(repr=shown)

    def __len__(self) -> int:
        """The number of examples."""
        return len(self.x)

    def __getitem__(self, index: Tensor | slice) -> Examples:
        """Some of the examples."""
        return Examples(self.x[index], self.y[index])

    def to(self, device: torch.device) -> Examples:
        """Return all examples, moved to a device."""
        return Examples(self.x.to(device), self.y.to(device))

    def batch(self, index: Tensor, device: torch.device) -> Examples:
        """Return some of the examples, moved to a device."""
        return self[index.to(self.x.device)].to(device)


@attrs.frozen(eq=False)
class Dataset:
    """Training examples, and test examples that are used for measurements only.

    Attributes:
        train: the examples that a network learns from.
        test: the examples that the final metrics are measured on.
        task: whether `y` holds class labels or regression targets.
        room: where the images are kept.
        preprocessing: the statistics that they were standardized with, and the names of the classes.
    """

    train: Examples
    test: Examples
    task: Task
    room: Room = MEMORY
    preprocessing: Preprocessing = UNPREPARED

    def trained_on(self, device: torch.device) -> Dataset:
        """Return the dataset with its training examples on a device, unless they are mapped from files."""
        return self if self.room.folder is not None else attrs.evolve(self, train=self.train.to(device))


def seeded(*words: object) -> Generator:
    """Return a random generator whose stream depends on the given words alone."""
    digest = hashlib.sha256("/".join(map(str, words)).encode()).digest()
    return Generator().manual_seed(int.from_bytes(digest[:8], "big") >> 1)


def fingerprint(dataset: Dataset) -> str:
    """Return the SHA-256 of a dataset's task, shapes, types and values, as hex digits."""
    digest = hashlib.sha256(dataset.task.encode())
    for tensor in (dataset.train.x, dataset.train.y, dataset.test.x, dataset.test.y):
        digest.update(f"{tuple(tensor.shape)} {tensor.dtype}".encode())
        for part in tensor.detach().split(chunk_of(tensor)):
            digest.update(part.cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()
