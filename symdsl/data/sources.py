"""Data sources, one function each, and the table the spec's names are looked up in."""

from __future__ import annotations

from collections.abc import Callable

import torch

from symdsl.analysis.facts import Data
from symdsl.catalog.data import located
from symdsl.data.arrays import read_arrays
from symdsl.data.images import images
from symdsl.data.memory import Room
from symdsl.data.published import cifar10, cifar100, fashion_mnist, mnist
from symdsl.data.records import Dataset, Examples, Streams, Watch, seeded
from symdsl.data.transforms import resized

Source = Callable[[Data, Streams, Room, Watch], Dataset]

_DIGITS_TEST = 360
_SYNTHETIC_NOISE = 0.1


def digits(data: Data, streams: Streams, room: Room, watch: Watch) -> Dataset:
    """Read the 1,797 handwritten 8x8 digits that ship with scikit-learn, in [0, 1], resized to `size`.

    360 of them (20 %) are the test set. They are drawn once and for all, whatever the seed of a search, so that runs
    with different seeds are measured on the same digits; the file itself is ordered by writer.
    """
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    x = torch.as_tensor(images, dtype=torch.float32).reshape(-1, 1, 8, 8) / 16
    y = torch.as_tensor(labels, dtype=torch.int64)
    order = torch.randperm(len(x), generator=seeded("digits", "split"))
    examples = Examples(resized(x, data.source.whole("size")), y)[order]
    return Dataset(examples[:-_DIGITS_TEST], examples[-_DIGITS_TEST:], "classification")


def arrays(data: Data, streams: Streams, room: Room, watch: Watch) -> Dataset:
    """Read the arrays `x_train`, `y_train`, `x_test` and `y_test` of an `.npz` file.

    Raises:
        BadDataError: its path begins with a home directory that does not exist.
        RunError: when the file cannot be read or its arrays are not what a dataset needs.
    """
    return read_arrays(located(str(data.source.argument("path"))), data.task, room, watch)


def synthetic(data: Data, streams: Streams, room: Room, watch: Watch) -> Dataset:
    """Make images for tests: a small stamp per class at a random cyclic shift, in noise; labels in equal parts."""
    channels, size, classes = (data.source.whole(name) for name in ("channels", "size", "classes"))
    side = min(3, size)
    stamps = torch.zeros(classes, channels, size, size)
    stamps[:, :, :side, :side] = torch.randn(classes, channels, side, side, generator=streams("stamps"))
    return Dataset(
        _stamped(stamps, data.source.whole("train"), streams("train")),
        _stamped(stamps, data.source.whole("test"), streams("test")),
        "classification",
    )


SOURCES: dict[str, Source] = {
    function.__name__: function
    for function in (digits, mnist, fashion_mnist, cifar10, cifar100, images, arrays, synthetic)
}
"""Every source that is read, by the name a spec calls it."""


def _stamped(stamps: torch.Tensor, count: int, stream: torch.Generator) -> Examples:
    classes, _, size, _ = stamps.shape
    y = (torch.arange(count) % classes)[torch.randperm(count, generator=stream)]
    corner = torch.randint(0, size, (count, 2), generator=stream)
    x = torch.stack([stamps[label].roll((int(i), int(j)), (1, 2)) for label, (i, j) in zip(y, corner, strict=True)])
    return Examples(x + _SYNTHETIC_NOISE * torch.randn(x.shape, generator=stream), y)
