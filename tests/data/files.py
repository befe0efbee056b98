"""Small files in the formats of published datasets, and small folders of images."""

from __future__ import annotations

import hashlib
import pickle
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torchvision
from numpy.typing import NDArray
from PIL import Image


def pixels(*shape: int) -> NDArray[np.uint8]:
    return np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)


def write_idx(folder: Path, images: int = 3) -> NDArray[np.uint8]:
    """The four files of MNIST and its kin, with the same images, labelled 0, 1, 2, ..., in both parts."""
    folder.mkdir(parents=True)
    values = pixels(images, 28, 28)
    for part in ("train", "t10k"):
        (folder / f"{part}-images-idx3-ubyte").write_bytes(struct.pack(">4i", 2051, images, 28, 28) + values.tobytes())
        (folder / f"{part}-labels-idx1-ubyte").write_bytes(struct.pack(">2i", 2049, images) + bytes(range(images)))
    return values


def write_cifar(root: Path, name: str, patch: pytest.MonkeyPatch) -> dict[str, NDArray[np.uint8]]:
    """The files of `CIFAR10` or `CIFAR100`, two images each, whose sums are made known to torchvision as published."""
    reader = getattr(torchvision.datasets, name)
    folder = root / reader.base_folder
    folder.mkdir(parents=True)
    key = {"CIFAR10": "labels", "CIFAR100": "fine_labels"}[name]
    values = {
        file: pixels(2, 3072) + number for number, (file, _) in enumerate([*reader.train_list, *reader.test_list])
    }
    for file, data in values.items():
        _pickled(folder / file, {"data": data, key: [7, 1]})
    _pickled(folder / reader.meta["filename"], {reader.meta["key"]: ["a", "b"]})
    for part in ("train_list", "test_list"):
        patch.setattr(reader, part, [[file, _md5(folder / file)] for file, _ in getattr(reader, part)])
    patch.setattr(reader, "meta", reader.meta | {"md5": _md5(folder / reader.meta["filename"])})
    return values


def write_images(folder: Path, files: Mapping[str, Image.Image]) -> Path:
    """Images by path below the folder."""
    for name, image in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        image.save(path)
    return folder


def _pickled(path: Path, content: Any) -> None:
    path.write_bytes(pickle.dumps(content))


def _md5(path: Path) -> str:
    return hashlib.md5(path.read_bytes()).hexdigest()
