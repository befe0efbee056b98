from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from data.by_hand import facts, step, synthetic
from symdsl.analysis.facts import Data
from symdsl.data import load
from symdsl.diagnostics import RunError


def digits(size: int) -> Data:
    return facts(step("digits", size=size), shape=(1, size, size))


def test_digits_are_those_of_the_file_in_another_order() -> None:
    data, shipped = load(digits(8)), load_digits()
    assert (len(data.train), len(data.test)) == (1437, 360)
    images = (torch.cat((data.train.x, data.test.x)).flatten(1) * 16).long().tolist()
    labels = torch.cat((data.train.y, data.test.y)).tolist()
    expected = zip(shipped.data.astype(int).tolist(), shipped.target.tolist(), strict=True)
    assert sorted(zip(images, labels, strict=True)) == sorted(expected)
    assert labels != shipped.target.tolist()
    assert (data.train.x.dtype, data.train.y.dtype) == (torch.float32, torch.int64)


def test_the_split_of_the_digits_is_the_same_for_every_seed() -> None:
    first, second = (load(digits(8), seed=seed) for seed in (1, 2))
    assert torch.equal(first.test.x, second.test.x)
    assert torch.equal(first.train.y, second.train.y)


def test_digits_are_resized_bilinearly() -> None:
    small, large = load(digits(8)).train.x, load(digits(16)).train.x
    assert large.shape == (1437, 1, 16, 16)
    assert 0 <= large.min() <= large.max() <= 1
    # A pixel of the large image lies a quarter of the way between two of the small one, in each direction.
    near, far = small[:, :, :-1] * 0.75 + small[:, :, 1:] * 0.25, small[:, :, :-1] * 0.25 + small[:, :, 1:] * 0.75
    torch.testing.assert_close(large[:, :, 1:-1:2, 1], near[..., 0] * 0.75 + near[..., 1] * 0.25)
    torch.testing.assert_close(large[:, :, 2:-1:2, 1], far[..., 0] * 0.75 + far[..., 1] * 0.25)


def test_synthetic_is_a_stamp_per_class_at_any_shift() -> None:
    data = load(synthetic(train=60))
    assert data.train.x.shape == (60, 2, 7, 7)
    assert data.test.x.shape == (11, 2, 7, 7)
    assert torch.bincount(data.train.y).tolist() == [20, 20, 20]
    spectra = torch.fft.fft2(data.train.x).abs().flatten(1)  # blind to shifts
    means = torch.stack([spectra[data.train.y == label].mean(0) for label in range(3)])
    nearest = torch.cdist(torch.fft.fft2(data.test.x).abs().flatten(1), means).argmin(1)
    assert torch.equal(nearest, data.test.y)


def write_mnist(root: Path, images: int = 3) -> np.ndarray:
    folder = root / "MNIST" / "raw"
    folder.mkdir(parents=True)
    pixels = np.random.default_rng(0).integers(0, 256, (images, 28, 28), dtype=np.uint8)
    for part in ("train", "t10k"):
        (folder / f"{part}-images-idx3-ubyte").write_bytes(struct.pack(">4i", 2051, images, 28, 28) + pixels.tobytes())
        (folder / f"{part}-labels-idx1-ubyte").write_bytes(struct.pack(">2i", 2049, images) + bytes(range(images)))
    return pixels


def mnist(root: Path | str) -> Data:
    return facts(step("mnist", root=str(root), download=False), shape=(1, 28, 28))


def test_mnist_reads_the_published_layout(tmp_path: Path) -> None:
    pixels = write_mnist(tmp_path)
    data = load(mnist(tmp_path))
    assert torch.equal(data.train.x, torch.from_numpy(pixels)[:, None].float() / 255)
    assert data.test.y.tolist() == [0, 1, 2]


def test_mnist_expands_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_mnist(tmp_path / "data")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert len(load(mnist("~/data")).train) == 3


def test_missing_mnist_names_the_folder_and_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(
        RunError, match=rf"MNIST in `{tmp_path}/MNIST/raw`: set `download = true`, or put `train-images"
    ):
        load(mnist(tmp_path))


def test_damaged_mnist_is_an_error_of_the_run(tmp_path: Path) -> None:
    write_mnist(tmp_path)
    images = tmp_path / "MNIST" / "raw" / "train-images-idx3-ubyte"
    images.write_bytes(images.read_bytes()[:-1000])
    with pytest.raises(RunError, match="cannot read MNIST in"):
        load(mnist(tmp_path))
