"""Published datasets, in the files and folders that torchvision reads and fetches."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import torch

from symdsl.analysis.facts import Data
from symdsl.catalog.data import located
from symdsl.data.memory import Room
from symdsl.data.records import Dataset, Examples, Streams, Watch
from symdsl.diagnostics import RunError

# What torchvision raises on files that are not what they are called, and where fetching fails.
_TROUBLE = (RuntimeError, ValueError, TypeError, AssertionError, EOFError, OSError, KeyError)

_LOCK = ".download.lock"
"""File in the root that a process locks while it fetches a dataset."""


@attrs.frozen
class _Collection:
    """The files of a dataset.

    Attributes:
        title: how people call it.
        reader: name of its class in `torchvision.datasets`.
        folder: where the files lie, below `root`.
        files: their names.
        origin: where they come from.
    """

    title: str
    reader: str
    folder: str
    files: tuple[str, ...]
    origin: str


_IDX = tuple(f"{part}-{what}-ubyte" for part in ("train", "t10k") for what in ("images-idx3", "labels-idx1"))
_CIFAR = "https://www.cs.toronto.edu/~kriz"
_MNIST = _Collection("MNIST", "MNIST", "MNIST/raw", _IDX, "https://ossci-datasets.s3.amazonaws.com/mnist/")
_FASHION_MNIST = _Collection(
    "Fashion-MNIST", "FashionMNIST", "FashionMNIST/raw", _IDX, "https://github.com/zalandoresearch/fashion-mnist"
)
_CIFAR10 = _Collection(
    "CIFAR-10",
    "CIFAR10",
    "cifar-10-batches-py",
    (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch", "batches.meta"),
    f"{_CIFAR}/cifar-10-python.tar.gz",
)
_CIFAR100 = _Collection(
    "CIFAR-100", "CIFAR100", "cifar-100-python", ("train", "test", "meta"), f"{_CIFAR}/cifar-100-python.tar.gz"
)


def mnist(data: Data, streams: Streams, room: Room, watch: Watch) -> Dataset:
    """Read MNIST, 60,000 training and 10,000 test images in [0, 1], from `root`; fetch it there if `download`.

    Raises:
        RunError: a file is missing, damaged or cannot be fetched; the message names it. So do the functions below.
    """
    return _idx_dataset(_MNIST, data)


def fashion_mnist(data: Data, streams: Streams, room: Room, watch: Watch) -> Dataset:
    """Read Fashion-MNIST, 60,000 training and 10,000 test images, as `mnist` does."""
    return _idx_dataset(_FASHION_MNIST, data)


def cifar10(data: Data, streams: Streams, room: Room, watch: Watch) -> Dataset:
    """Read CIFAR-10, 50,000 training and 10,000 test RGB photographs, as `mnist` does."""
    return _cifar_dataset(_CIFAR10, data)


def cifar100(data: Data, streams: Streams, room: Room, watch: Watch) -> Dataset:
    """Read CIFAR-100, 50,000 training and 10,000 test RGB photographs with fine labels, as `mnist` does."""
    return _cifar_dataset(_CIFAR100, data)


def _idx_dataset(collection: _Collection, data: Data) -> Dataset:
    from torchvision.datasets.mnist import read_image_file, read_label_file

    folder = _folder(collection, data)
    train_x, train_y, test_x, test_y = (
        _read(collection, folder / name, read)
        for name, read in zip(collection.files, (read_image_file, read_label_file) * 2, strict=True)
    )
    return Dataset(_grey(train_x, train_y), _grey(test_x, test_y), "classification")


def _grey(images: torch.Tensor, labels: torch.Tensor) -> Examples:
    return Examples(images[:, None].float().div_(255), labels.long())


def _read(collection: _Collection, path: Path, read: Any) -> torch.Tensor:
    try:
        found: torch.Tensor = read(str(path))
    except _TROUBLE as error:
        raise RunError(_damaged(collection, path)) from error
    return found


def _cifar_dataset(collection: _Collection, data: Data) -> Dataset:
    folder = _folder(collection, data)
    train, test = (_cifar_part(collection, folder, train) for train in (True, False))
    return Dataset(train, test, "classification")


def _cifar_part(collection: _Collection, folder: Path, train: bool) -> Examples:
    reader = _reader(collection)
    try:
        # These files are pickles; torchvision loads them once their MD5 sums are the published ones.
        part = reader(folder.parent, train=train)
    except _TROUBLE as error:
        raise RunError(_damaged(collection, _first_changed(reader, folder))) from error
    x = torch.from_numpy(part.data).permute(0, 3, 1, 2).contiguous()
    return Examples(x.float().div_(255), torch.tensor(part.targets))


def _first_changed(reader: Any, folder: Path) -> Path:
    from torchvision.datasets.utils import check_integrity

    sums = (*reader.train_list, *reader.test_list, (reader.meta["filename"], reader.meta["md5"]))
    return next((folder / name for name, md5 in sums if not check_integrity(folder / name, md5)), folder)


def _reader(collection: _Collection) -> Any:
    from torchvision import datasets

    return getattr(datasets, collection.reader)


def _folder(collection: _Collection, data: Data) -> Path:
    """The folder of the files, all of them there."""
    root = located(str(data.source.argument("root")))
    if data.source.argument("download"):
        try:
            with _one_at_a_time(root):
                _reader(collection)(root, download=True)
        except _TROUBLE as error:
            raise RunError(f"cannot fetch {collection.title} into `{root}`: {' '.join(str(error).split())}") from error
    folder = root / collection.folder
    missing = next((name for name in collection.files if not (folder / name).is_file()), None)
    if missing is not None:
        raise RunError(_missing(collection, folder, missing))
    return folder


@contextlib.contextmanager
def _one_at_a_time(root: Path) -> Iterator[None]:
    """Wait until no other process is in the same `with` block for this root; where files cannot be locked, go on."""
    with contextlib.ExitStack() as stack:
        # Without locks, or in a root that cannot be written and may hold the files already, torchvision has the word.
        with contextlib.suppress(ModuleNotFoundError, OSError):
            import fcntl

            root.mkdir(parents=True, exist_ok=True)
            fcntl.flock(stack.enter_context((root / _LOCK).open("ab")), fcntl.LOCK_EX)
        yield


def _missing(collection: _Collection, folder: Path, name: str) -> str:
    packed = folder / f"{name}.gz"
    if packed.is_file():
        return f"{collection.title} is packed: unpack `{packed}` with `gunzip`, and any others beside it"
    return (
        f"{collection.title} is not there: no file `{folder / name}`; set `root` to the folder that holds "
        f"`{collection.folder}`, set `download = true`, or fetch it from {collection.origin}"
    )


def _damaged(collection: _Collection, path: Path) -> str:
    return f"`{path}` is not the file that {collection.title} publishes: delete it, and set `download = true`"
