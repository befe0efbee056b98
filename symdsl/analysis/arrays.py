"""The contents of an `.npz` file, from the headers of its arrays and a limited number of its labels."""

from __future__ import annotations

import io
import math
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import attrs

from symdsl.analysis.doubts import doubts_of_labels, doubts_of_many, doubts_of_shape, doubts_of_targets
from symdsl.catalog.data import ELSEWHERE, BadDataError, Outline, Task, located
from symdsl.language.nearby import nearest, other_than_file

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_SOME = 1 << 16
"""How many numbers of regression targets are read to check a spec, which stays fast."""

NAMES = ("x_train", "y_train", "x_test", "y_test")

_MOST_CLASSES = 1_000_000
MOST_LABELS = 32 * 2**20
"""Bytes that class labels may take, so that checking a spec stays fast; as `uint8` that is as many labels."""

_NUMBERED = "number the classes from 0, as `numpy.unique({}, return_inverse=True)[1]` does"
_ONE_HOT = "of labels that are one-hot, save `y.argmax(1)`"

_PIECE = 2**20
_LONGEST_HEADER = 2**16
_QUICK = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""How numpy stores arrays; other ways to compress may take long, or gigabytes, to unpack a little."""


@attrs.frozen
class Header:
    """The type, shape and order of an array, from the header of its file.

    Attributes:
        shape: of the array.
        dtype: of its numbers.
        columns_first: whether they are in Fortran's order.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    columns_first: bool


def outline_of_arrays(path: str, task: str) -> Outline:
    """Return the shapes and labels of the dataset in an `.npz` file.

    Args:
        path: the file, relative to the working directory; `~` is the home directory.
        task: `classification`, `regression`, or `auto`: by the type of the targets.

    Raises:
        BadDataError: if it is missing, damaged, or its arrays do not belong together.
    """
    file = located(path)
    try:
        return _read(file, task)
    except FileNotFoundError as error:
        near = nearest(file, ".npz")
        help = f"did you mean `{near.as_posix()}`?" if near else ELSEWHERE
        raise BadDataError(f"there is no file `{path}`", help) from error
    except (OSError, RuntimeError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise BadDataError(f"`{path}` is not a readable .npz file: save it again with `numpy.savez`") from error


class _Frugal(io.BufferedReader):
    """A file that hands out little at a time, however much of it an archive claims to be its table of contents."""

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(_PIECE if size is None or size < 0 else min(size, _PIECE))


def _read(path: Path, task: str) -> Outline:
    if what := other_than_file(path):
        raise BadDataError(f"`{path}` is {what}, not a file")
    with _Frugal(io.FileIO(path)) as file, zipfile.ZipFile(file) as archive:
        missing = [name for name in NAMES if f"{name}.npy" not in archive.namelist()]
        if missing:
            raise BadDataError(f"`{path}` lacks `{missing[0]}`; it must hold {', '.join(NAMES)}")
        headers = {name: _header(archive, name) for name in NAMES}
        image, chosen = _image(headers), _task(headers["y_train"], task)
        outline = Outline(*image, 1, headers["x_train"].shape[0], headers["x_test"].shape[0], chosen)
        doubts = doubts_of_shape(*image)
        if chosen == "classification":
            labels = _labels(archive, headers["y_train"])
            _check_alike(headers["y_train"], headers["y_test"], chosen)
            own = doubts_of_labels(labels)
            if task == "auto":
                own = own or doubts_of_many(labels)
            return attrs.evolve(outline, classes=int(labels.max()) + 1, doubts=(*doubts, *own))
        targets = _some_targets(archive, headers["y_train"])
        if task == "auto":  # who writes `task = regression` has thought of it
            doubts = (*doubts, *doubts_of_targets(targets))
        classes = _targets(headers["y_train"])
        _check_alike(headers["y_train"], headers["y_test"], chosen)
        return attrs.evolve(outline, classes=classes, targets=_scales(targets), doubts=doubts)


def _image(headers: Mapping[str, Header]) -> tuple[int, int, int]:
    """Channels, rows and columns of an example, of arrays that are checked to hold images, and targets for each."""
    for part in ("train", "test"):
        x, y = headers[f"x_{part}"].shape, headers[f"y_{part}"].shape
        if not x or not y or x[0] != y[0] or x[0] == 0:
            counts = f"`x_{part}` {x} and `y_{part}` {y}"
            raise BadDataError(f"{counts} must have the same number of examples, at least one")
        held = headers[f"x_{part}"].dtype
        if held.kind != "f" and held != "uint8":
            help = "save `x.astype(numpy.uint8)` if all are from 0 to 255, or `x.astype(numpy.float32)`"
            raise BadDataError(f"`x_{part}` holds {held}, expected floats or uint8", help)
    shape, tested = headers["x_train"].shape, headers["x_test"].shape
    if len(shape) not in (3, 4) or 0 in shape:
        columns = (
            f"`x[:, None, None, :]` makes rows signals, `input signal(1, {shape[-1]})`; `x[:, :, None, None]` makes "
            f"the columns of a table channels: `input image({shape[-1]}, 1, 1)`"
        )
        message = f"`x_train` must be [n, c, h, w] or [n, h, w], found {list(shape)}"
        raise BadDataError(message, columns if len(shape) == 2 else "")
    trained_on, tested_on = headers["x_train"].dtype, headers["x_test"].dtype
    if (trained_on == "uint8") != (tested_on == "uint8"):
        counts = f"`x_train` holds {trained_on} and `x_test` {tested_on}"
        raise BadDataError(f"{counts}: both must hold uint8, which is divided by 255, or both floats")
    if tested[1:] != shape[1:]:
        raise BadDataError(f"`x_train` {list(shape)} and `x_test` {list(tested)} must be images of one shape")
    height, width = shape[-2:]
    return shape[1] if len(shape) == 4 else 1, height, width


def _scales(targets: NDArray[Any]) -> tuple[float, float]:
    """The least standard deviation of columns of targets `[example, target]` that vary, and the largest RMS of all.

    What is not there, or not finite, is 1.
    """
    import numpy as np

    if not len(targets):
        return 1.0, 1.0
    exact = targets.astype(float)
    with np.errstate(all="ignore"):
        deviations, most = exact.std(0), float(np.sqrt(np.square(exact).mean(0).max()))
        least = float(deviations[np.ptp(exact, 0) > 0].min(initial=np.inf))
    return least if np.isfinite(least) else 1.0, most if np.isfinite(most) else 1.0


def _header(archive: zipfile.ZipFile, name: str) -> Header:
    if archive.getinfo(f"{name}.npy").compress_type not in _QUICK:
        raise BadDataError(f"`{name}` is compressed in a way that numpy does not use: save it with `numpy.savez`")
    with archive.open(f"{name}.npy") as file:
        header = read_header(file, archive.getinfo(f"{name}.npy").file_size)
    if header.dtype.kind not in "fiu":
        help = _NUMBERED.format(name) if name.startswith("y") and header.dtype.kind != "c" else ""
        if help and header.dtype.kind == "b" and len(header.shape) > 1:
            help = _ONE_HOT
        raise BadDataError(f"`{name}` must hold numbers, found {header.dtype}", help)
    return header


def read_header(file: IO[bytes], size: int) -> Header:
    """Read the header of an array, and leave the file at the array's first number.

    Args:
        file: from its beginning.
        size: bytes from there to the end of the array. Nobody need make room for numbers that are not there.

    Raises:
        ValueError: it promises more or fewer numbers than follow, or what numpy raises.
    """
    from numpy.lib import format

    head = io.BytesIO(file.read(_LONGEST_HEADER))
    version = format.read_magic(head)
    read = format.read_array_header_1_0 if version == (1, 0) else format.read_array_header_2_0
    shape, columns_first, dtype = read(head)
    file.seek(head.tell())
    if not dtype.hasobject and head.tell() + math.prod(shape) * dtype.itemsize != size:
        raise ValueError(f"an array of shape {tuple(shape)} does not take {size - head.tell()} bytes")
    return Header(tuple(shape), dtype, columns_first)


def _task(header: Header, task: str) -> Task:
    whole = header.dtype.kind in "iu"
    if task == "classification" and not whole:
        raise BadDataError(f"class labels must be whole numbers, but `y_train` holds {header.dtype}")
    if task == "regression" and whole:
        help = "save `y.astype(float)`, of the test data too"
        raise BadDataError(f"regression targets must be floats, but `y_train` holds {header.dtype}", help)
    return "classification" if whole else "regression"


def _check_alike(train: Header, test: Header, task: Task) -> None:
    """Refuse targets of the test data that are not what those of the training data are."""
    classes = task == "classification"
    if (test.dtype.kind in "iu") != classes:
        wanted = "whole numbers" if classes else "floats"
        raise BadDataError(f"`y_test` holds {test.dtype}, expected {wanted}, as in `y_train` ({train.dtype})")
    each = () if classes else (1,)
    if (test.shape[1:] or each) != (train.shape[1:] or each):
        raise BadDataError(f"`y_train` {train.shape} and `y_test` {test.shape} must have the same targets per example")


def _targets(header: Header) -> int:
    """The number of targets of an example."""
    if len(header.shape) > 2:
        raise BadDataError(f"`y_train` has {len(header.shape)} axes, too many for regression")
    if len(header.shape) == 2 and not header.shape[1]:
        raise BadDataError(f"`y_train` (of shape {list(header.shape)}) holds no target")
    return header.shape[1] if len(header.shape) == 2 else 1


def _labels(archive: zipfile.ZipFile, header: Header) -> NDArray[Any]:
    from numpy.lib import format

    if len(header.shape) > 1:
        one_hot = len(header.shape) == 2 and header.shape[1] > 1
        help = _ONE_HOT if one_hot else "save `y.reshape(-1)`"
        raise BadDataError(f"`y_train` has {len(header.shape)} axes, too many for classification", help)
    if math.prod(header.shape) * header.dtype.itemsize > MOST_LABELS:
        held = f"{math.prod(header.shape):,} labels as {header.dtype}"
        raise BadDataError(f"`y_train` holds {held}, more than {MOST_LABELS // 2**20} MiB: save fewer, or as uint8")
    with archive.open("y_train.npy") as file:
        labels: NDArray[Any] = format.read_array(file, allow_pickle=False)
    if labels.min() < 0:
        raise BadDataError(
            f"`y_train` holds the label {labels.min()}; classes are numbered from 0", _NUMBERED.format("y_train")
        )
    if labels.max() < 1:
        raise BadDataError("`y_train` holds a single class")
    if labels.max() >= _MOST_CLASSES:
        message = f"`y_train` holds the label {labels.max()}, but labels are below {_MOST_CLASSES:,}"
        raise BadDataError(message, _NUMBERED.format("y_train"))
    return labels


def _some_targets(archive: zipfile.ZipFile, header: Header) -> NDArray[Any]:
    """The targets of the first examples, `[example, target]`."""
    import numpy as np

    columns = _targets(header)
    examples = min(header.shape[0], _SOME // columns)
    runs, length = (columns, examples) if header.columns_first else (1, examples * columns)
    with archive.open("y_train.npy") as file:
        read_header(file, archive.getinfo("y_train.npy").file_size)
        begin, content = file.tell(), b""
        for run in range(runs):
            file.seek(begin + run * header.shape[0] * header.dtype.itemsize)
            content += file.read(length * header.dtype.itemsize)
    return np.frombuffer(content, header.dtype).reshape((examples, columns), order="F" if header.columns_first else "C")
