"""Reads datasets and images from `.npz` files, trusting nothing in them."""

from __future__ import annotations

import contextlib
import math
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import IO, Any, Literal, NoReturn, TypeVar

import attrs
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from symdsl.analysis.arrays import NAMES, read_header
from symdsl.catalog.data import Task
from symdsl.data.checks import check_finite
from symdsl.data.memory import MEMORY, Room
from symdsl.data.records import Dataset, Examples, Watch, unwatched
from symdsl.diagnostics import RunError, listing
from symdsl.language.nearby import other_than_file

T = TypeVar("T")

_PIECE = 1 << 22
"""Numbers of images that are read at a time."""

# What numpy and the archive reader raise on files that are cut short, are something else or hold pickles.
_UNREADABLE = (zipfile.BadZipFile, zlib.error, ValueError, EOFError, KeyError, NotImplementedError)


def read_arrays(path: Path, task: Task, room: Room = MEMORY, watch: Watch = unwatched) -> Dataset:
    """Read the dataset in an `.npz` file.

    `x_*` are images, float or uint8 (then divided by 255), `[example, channel, row, column]` or
    `[example, row, column]`. `y_*` are class labels, integers `[example]`, or regression targets, floats `[example]` or
    `[example, target]`. Pickled objects are refused unread.

    Args:
        path: the file.
        task: what `y_*` are.
        room: where the images are kept; they are read a piece at a time.
        watch: called after every piece.

    Raises:
        RunError: when the file cannot be read, an array is missing or has the wrong type or number of axes.
    """
    with _opened(path) as archive:
        missing = next((name for name in NAMES if f"{name}.npy" not in archive.namelist()), None)
        if missing is not None:
            raise RunError(f"{path}: `{missing}` is missing: the file must hold {listing(NAMES)}")
        bytes_held = {_whole(archive, path, f"x_{part}", _holds_bytes) for part in ("train", "test")}
        if len(bytes_held) > 1:
            raise RunError(f"{path}: `x_train` and `x_test` must both hold uint8, which is divided by 255, or floats")

        def examples(part: str) -> Examples:
            images = partial(_images, room=room, tell=partial(watch, f"reading `x_{part}`"))
            x = _whole(archive, path, f"x_{part}", images)
            return Examples(x, _whole(archive, path, f"y_{part}", _READERS[task]))

        return Dataset(examples("train"), examples("test"), task)


def read_images(path: Path, names: Sequence[str]) -> Tensor:
    """Read images `[example, channel, row, column]` from an `.npz` file, as `read_arrays` does.

    Args:
        path: the file.
        names: of arrays, of which the first that is there is read; another is, if it is the only one.

    Raises:
        RunError: the file cannot be read, there is no such array, or it does not hold images of finite numbers.
    """
    with _opened(path) as archive:
        held = [each.removesuffix(".npy") for each in archive.namelist()]
        name = next((one for one in names if one in held), held[0] if len(held) == 1 else None)
        if name is None:
            which = f"{listing(held)}, of which none is called `{names[0]}`" if held else "no arrays"
            raise RunError(f"{path}: holds {which}")
        x = _whole(archive, path, name, partial(_images, room=MEMORY, tell=partial(unwatched, path.name)))
    if not x.numel():
        raise RunError(f"{path}: `{name}` is empty")
    check_finite(x, f"{path}: `{name}")
    return x


def read_outcomes(path: Path, names: Sequence[str], task: Task) -> Tensor:
    """Read labels `[example]`, or targets `[example, target]`, from an `.npz` file, as `read_arrays` does.

    Args:
        path: the file.
        names: of arrays, of which the first that is there is read.
        task: which of both.

    Raises:
        RunError: the file cannot be read, there is no such array, or it holds something else.
    """
    with _opened(path) as archive:
        held = archive.namelist()
        name = next((one for one in names if f"{one}.npy" in held), None)
        if name is None:
            raise RunError(f"{path}: `{names[0]}` is missing: labels or targets stand beside the images")
        return _whole(archive, path, name, _READERS[task])


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[zipfile.ZipFile]:
    """The archive that an `.npz` file is; what goes wrong as it is read is told in one line."""
    try:
        if what := other_than_file(path):
            raise RunError(f"{path}: cannot be read: it is {what}, not a file")
        with zipfile.ZipFile(path) as archive:
            yield archive
    except _UNREADABLE as error:
        raise RunError(f"{path} is not a readable .npz file: save it again with `numpy.savez`") from error
    except MemoryError as error:
        raise RunError(f"there is not enough memory to read {path}") from error
    except OSError as error:
        raise RunError(f"cannot read {path}: {error.strerror or error}") from error


@attrs.frozen(eq=False)
class _Array:
    """An array in a file, of which only the header has been read.

    Attributes:
        title: the words that lead an error message about it.
        shape: of the array.
        dtype: of its numbers.
        columns_first: whether they are in Fortran's order.
        file: stands at the first of them.
    """

    title: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    columns_first: bool
    file: IO[bytes]

    def refuse(self, fault: str) -> NoReturn:
        raise RunError(f"{self.title} {fault}")

    def whole(self) -> NDArray[Any]:
        """All numbers."""
        order: Literal["F", "C"] = "F" if self.columns_first else "C"
        return self._read(math.prod(self.shape)).reshape(self.shape, order=order)

    def pieces(self) -> Iterator[NDArray[Any]]:
        """Some examples after the other; all at once, where an example is not in one piece."""
        if self.columns_first:
            yield self.whole()
            return
        each = math.prod(self.shape[1:])
        some = max(1, _PIECE // max(1, each))
        for start in range(0, self.shape[0], some):
            count = min(some, self.shape[0] - start)
            yield self._read(count * each).reshape(count, *self.shape[1:])

    def _read(self, count: int) -> NDArray[Any]:
        content = self.file.read(count * self.dtype.itemsize)
        return np.frombuffer(content, self.dtype, count) if count else np.empty(0, self.dtype)


def _whole(archive: zipfile.ZipFile, path: Path, name: str, read: Callable[[_Array], T]) -> T:
    """Return what `read` makes of an array."""
    title = f"{path}: `{name}`"
    try:
        with archive.open(f"{name}.npy") as file:
            header = read_header(file, archive.getinfo(f"{name}.npy").file_size)
            if header.dtype.hasobject:
                raise ValueError("to read Python objects is to run what the file says")
            return read(_Array(title, header.shape, header.dtype, header.columns_first, file))
    except _UNREADABLE as error:
        raise RunError(f"{title} cannot be read: it is damaged or holds Python objects") from error


def _holds_bytes(array: _Array) -> bool:
    return array.dtype == np.uint8


def _images(array: _Array, room: Room, tell: Callable[[int, int], None]) -> Tensor:
    if len(array.shape) not in (3, 4):
        array.refuse(f"has {len(array.shape)} axes, expected [n, c, h, w] or [n, h, w]")
    if array.dtype != np.uint8 and not np.issubdtype(array.dtype, np.floating):
        array.refuse(f"holds {array.dtype}, expected floats or uint8")
    if array.columns_first and room.folder is not None:
        array.refuse(
            "is stored column by column, so that it cannot be read a piece at a time, and does not fit in memory: save "
            "`numpy.ascontiguousarray` of it"
        )
    channels = array.shape[1:-2] or (1,)
    x, done = room.empty(array.shape[0], *channels, *array.shape[-2:]), 0
    for piece in array.pieces():
        values = _float32(piece).reshape(len(piece), *x.shape[1:])
        x[done : done + len(piece)] = values / 255 if array.dtype == np.uint8 else values
        done += len(piece)
        tell(done, len(x))
    return x


def _labels(array: _Array) -> Tensor:
    if not np.issubdtype(array.dtype, np.integer):
        array.refuse(f"holds {array.dtype}, expected integers: classes are labelled by whole numbers")
    if len(array.shape) != 1:
        array.refuse(f"has {len(array.shape)} axes, expected one label per example, [n]")
    return torch.from_numpy(array.whole().astype(np.int64))


def _targets(array: _Array) -> Tensor:
    if not np.issubdtype(array.dtype, np.floating):
        array.refuse(f"holds {array.dtype}, expected floats: regression targets are real numbers")
    if len(array.shape) not in (1, 2):
        array.refuse(f"has {len(array.shape)} axes, expected [n] or [n, targets]")
    return torch.from_numpy(array.whole().astype(np.float64)).reshape(array.shape[0], *(array.shape[1:] or (1,)))


_READERS = {"classification": _labels, "regression": _targets}


def _float32(values: NDArray[Any]) -> Tensor:
    with np.errstate(over="ignore"):  # what overflows becomes infinite, and that is looked for later
        return torch.from_numpy(values.astype(np.float32))
