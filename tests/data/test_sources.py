from __future__ import annotations

import torch
from sklearn.datasets import load_digits

from data.by_hand import facts, step, synthetic
from symdsl.analysis.facts import Data
from symdsl.data import load


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
