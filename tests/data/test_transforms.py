from __future__ import annotations

import math
from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from data.by_hand import dataset, step
from symdsl.analysis.facts import Value
from symdsl.data import Dataset
from symdsl.data.records import Examples, seeded
from symdsl.data.transforms import TRANSFORMS, multiples, resized, rotated, scaled, shifted
from symdsl.diagnostics import RunError


def transformed(data: Dataset, name: str, seed: int = 0, **arguments: Value) -> Dataset:
    return TRANSFORMS[name](data, step(name, **arguments), partial(seeded, seed, name))


def noise(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def test_standardize_uses_training_data_only() -> None:
    train, test = noise(50, 3, 5, 4) * torch.tensor([1.0, 10.0, 0.1])[:, None, None] + 7, noise(20, 3, 5, 4, seed=1)
    done = transformed(dataset(train, test), "standardize")
    torch.testing.assert_close(done.train.x.mean((0, 2, 3)), torch.zeros(3), atol=1e-4, rtol=0)
    torch.testing.assert_close(done.train.x.var((0, 2, 3), correction=0), torch.ones(3), atol=1e-4, rtol=0)
    mean, std = train.mean((0, 2, 3)), train.std((0, 2, 3), correction=0)
    torch.testing.assert_close(done.test.x, (test - mean[:, None, None]) / std[:, None, None], rtol=1e-4, atol=1e-4)


def test_standardize_only_shifts_a_constant_channel() -> None:
    train = torch.stack((noise(9, 4, 4), torch.full((9, 4, 4), 0.1)), dim=1)
    done = transformed(dataset(train, train + 1), "standardize")
    torch.testing.assert_close(done.train.x[:, 1], torch.zeros(9, 4, 4), atol=1e-6, rtol=0)
    torch.testing.assert_close(done.test.x[:, 1], torch.ones(9, 4, 4))


@pytest.mark.parametrize("size", [5, 12])
def test_a_constant_channel_is_one_after_resizing_too(size: int) -> None:
    train = torch.stack((noise(9, 8, 8), torch.full((9, 8, 8), 128 / 255)), dim=1)
    done = transformed(transformed(dataset(train, train), "resize", size=size), "standardize")
    torch.testing.assert_close(done.train.x[:, 1], torch.zeros(9, size, size), atol=1e-6, rtol=0)
    assert done.train.x[:, 0].std() == pytest.approx(1, abs=0.01)


def test_standardize_leaves_regression_targets() -> None:
    examples = Examples(noise(6, 1, 3, 3), noise(6, 2) + 5)
    done = transformed(Dataset(examples, examples, "regression"), "standardize")
    torch.testing.assert_close(done.train.y, examples.y, rtol=0, atol=0)


def test_shuffle_moves_the_pixels_of_all_images_alike() -> None:
    train, test = noise(6, 2, 5, 4), noise(3, 2, 5, 4, seed=1)
    done = transformed(dataset(train, test), "shuffle", alike=True)
    before, after = train.flatten(2)[0, 0].tolist(), done.train.x.flatten(2)[0, 0].tolist()
    order = [before.index(value) for value in after]
    assert order != sorted(order) == list(range(20))
    for images, found in ((train, done.train.x), (test, done.test.x)):
        torch.testing.assert_close(found, images.flatten(2)[:, :, order].reshape(images.shape), rtol=0, atol=0)
    assert not torch.equal(transformed(dataset(train, test), "shuffle", seed=1, alike=True).train.x, done.train.x)


def test_shuffle_moves_the_pixels_of_each_image_in_a_way_of_its_own() -> None:
    train = noise(1, 2, 5, 4).repeat(6, 1, 1, 1)
    done = transformed(dataset(train, train), "shuffle", alike=False)
    for part in (done.train.x, done.test.x):
        assert torch.equal(part.flatten(2).sort(2).values, train.flatten(2).sort(2).values)
        assert len({tuple(image.tolist()) for image in part[:, 0].flatten(1)}) == 6
    assert not torch.equal(done.train.x, done.test.x)
    first, second = train[0].flatten(1), done.train.x[0].flatten(1)
    order = [first[0].tolist().index(value) for value in second[0].tolist()]
    assert torch.equal(second[1], first[1, order])


def test_unroll_puts_rows_side_by_side() -> None:
    x = noise(3, 2, 4, 5)
    done = transformed(dataset(x), "unroll").train.x
    assert done.shape == (3, 2, 1, 20)
    assert torch.equal(done[1, 0, 0, 5:10], x[1, 0, 1])


@pytest.mark.parametrize("height", [5, 6])
def test_pad_and_crop_are_inverse_and_centred(height: int) -> None:
    data = dataset(noise(4, 2, height, height))
    padded = transformed(data, "pad", size=9)
    assert padded.train.x.shape == (4, 2, 9, 9)
    assert padded.train.x.count_nonzero() == data.train.x.count_nonzero()
    assert (padded.train.x[0, 0].abs().sum(1) > 0).nonzero()[0] == (9 - height) // 2
    torch.testing.assert_close(transformed(padded, "crop", size=height).test.x, data.test.x, rtol=0, atol=0)


def test_pad_and_crop_refuse_the_wrong_direction() -> None:
    data = dataset(noise(4, 2, 6, 5))
    with pytest.raises(ValueError, match=r"`size` of `pad` \(=5\) must not be smaller than the image \(6x5\)"):
        transformed(data, "pad", size=5)
    with pytest.raises(ValueError, match=r"`size` of `crop` \(=6\) must not be larger than the image \(6x5\)"):
        transformed(data, "crop", size=6)


def test_resize_keeps_a_ramp_a_ramp() -> None:
    ramp = torch.arange(8.0).expand(1, 1, 8, 8)
    expected = (torch.arange(16) + 0.5) / 2 - 0.5
    wide = transformed(dataset(ramp), "resize", size=16).train.x
    torch.testing.assert_close(wide[0, 0, 3, 1:-1], expected[1:-1])
    torch.testing.assert_close(resized(ramp, 4)[0, 0, 0, 1:-1], torch.tensor([2.5, 4.5]))


@pytest.mark.parametrize("turns", [1, 2, 3])
def test_rotation_by_quarter_turns_moves_pixels_exactly(turns: int) -> None:
    x = noise(3, 2, 6, 6)
    angles = torch.full((3,), turns * math.pi / 2)
    torch.testing.assert_close(rotated(x, angles), torch.rot90(x, turns, (2, 3)), atol=1e-5, rtol=0)


def test_rotation_by_half_a_turn_is_right_where_the_image_is_not_square() -> None:
    x = noise(2, 1, 4, 7)
    torch.testing.assert_close(rotated(x, torch.full((2,), math.pi)), x.flip(2, 3), atol=1e-5, rtol=0)


def test_rotation_by_a_quarter_turn_keeps_distances_where_the_image_is_not_square() -> None:
    x = torch.zeros(1, 1, 5, 9)
    x[0, 0, 2, 6] = 1  # two pixels right of the centre, so two pixels above it afterwards
    assert rotated(x, torch.tensor([math.pi / 2]))[0, 0, 0, 4].item() == pytest.approx(1, abs=1e-5)


def test_rotate_draws_an_angle_per_image_and_keeps_small_limits_small() -> None:
    x = noise(1, 1, 9, 9).expand(6, 1, 9, 9)
    assert len(transformed(dataset(x), "rotate", degrees=180, step=0).train.x.unique(dim=0)) == 6
    nearly = transformed(dataset(x), "rotate", degrees=1e-4, step=0).train.x
    torch.testing.assert_close(nearly, x, atol=1e-4, rtol=0)


@pytest.mark.parametrize(
    ("degrees", "unit", "turns"),
    [(180, 90, (-1, 0, 1, 2)), (179, 90, (-1, 0, 1)), (90, 90, (-1, 0, 1)), (180, 180, (0, 2)), (80, 90, (0,))],
)
def test_rotate_by_a_step_makes_each_of_its_turns_as_often(degrees: float, unit: float, turns: tuple[int, ...]) -> None:
    x = noise(1, 1, 6, 6)
    done = transformed(dataset(x.expand(1200, 1, 6, 6)), "rotate", degrees=degrees, step=unit).train.x
    of_each = [(done - torch.rot90(x, turn, (2, 3))).abs().amax((1, 2, 3)) < 1e-4 for turn in turns]
    assert torch.stack(of_each).sum(0).eq(1).all()
    for made in of_each:
        assert int(made.sum()) == pytest.approx(1200 / len(turns), abs=100)


@pytest.mark.parametrize(
    ("degrees", "unit", "least", "most"),
    [(0.3, 0.1, -3, 3), (180, 0.1, -1799, 1800), (179.9, 0.1, -1799, 1799), (180, 7, -25, 25), (0, 90, 0, 0)],
)
def test_multiples_of_a_step_reach_the_ends_of_a_range(degrees: float, unit: float, least: int, most: int) -> None:
    assert multiples(degrees, unit) == range(least, most + 1)


@settings(deadline=None, derandomize=True)
@given(st.integers(-4, 4), st.integers(-4, 4))
def test_shifting_moves_down_and_right_and_fills_with_zeros(rows: int, columns: int) -> None:
    x = noise(1, 2, 4, 3)
    moved = shifted(x, torch.tensor([[rows, columns]]), 4)
    for i in range(4):
        for j in range(3):
            inside = 0 <= i - rows < 4 and 0 <= j - columns < 3
            expected = x[0, :, i - rows, j - columns] if inside else torch.zeros(2)
            assert torch.equal(moved[0, :, i, j], expected)


def test_what_has_one_row_moves_along_it_only() -> None:
    x, by = noise(3, 2, 1, 6), torch.tensor([[1, 2], [-2, -1], [2, 0]])
    along = shifted(x.transpose(2, 3).expand(3, 2, 6, 6).transpose(2, 3), by * torch.tensor([0, 1]), 2)
    assert torch.equal(shifted(x, by, 2), along[:, :, :1])
    assert torch.equal(shifted(x, by, 10**4), along[:, :, :1])
    moved = transformed(dataset(x), "translate", pixels=2).train.x
    assert moved.flatten(1).any(1).all()


def test_translate_reaches_every_shift_within_the_limit_and_none_beyond() -> None:
    point = torch.zeros(400, 1, 7, 7)
    point[:, :, 3, 3] = 1
    moved = transformed(dataset(point), "translate", pixels=2).train.x
    places = {(int(i), int(j)) for _, _, i, j in moved.nonzero()}
    assert places == {(i, j) for i in range(1, 6) for j in range(1, 6)}


@pytest.mark.parametrize("factor", [0.5, 1.0, 2.0])
def test_scaling_makes_a_bar_longer_and_wider_and_fills_with_zeros(factor: float) -> None:
    x = torch.zeros(1, 1, 16, 24)
    x[:, :, 6:10, 8:16] = 1
    found = scaled(x, torch.tensor([factor]))
    assert found.sum().item() == pytest.approx(32 * factor**2, rel=1e-5)
    assert found[0, 0, 8].sum().item() == pytest.approx(8 * factor, rel=1e-5)
    assert found[0, 0, :, 12].sum().item() == pytest.approx(4 * factor, rel=1e-5)


def test_scale_draws_factors_evenly_in_their_logarithm() -> None:
    x = torch.zeros(2000, 1, 64, 64)
    x[:, :, 16:48, 16:48] = 1
    areas = transformed(dataset(x), "scale", logarithm=0.6).train.x.sum((1, 2, 3))
    logarithms = (areas / 32**2).log() / 2
    assert logarithms.abs().max().item() == pytest.approx(0.6, abs=0.04)
    assert logarithms.mean().item() == pytest.approx(0, abs=0.02)
    assert logarithms.std().item() == pytest.approx(0.6 / math.sqrt(3), rel=0.03)


def test_quadrants_places_every_copy_where_its_label_says() -> None:
    data = dataset(noise(5, 2, 3, 4))
    done = transformed(data, "quadrants", label="both", copies=6).train
    assert done.x.shape == (30, 2, 6, 8)
    for row in range(30):
        image, quadrant = divmod(int(done.y[row]), 4)
        top, left = 3 * (quadrant // 2), 4 * (quadrant % 2)
        assert torch.equal(done.x[row, :, top : top + 3, left : left + 4], data.train.x[image])
        assert done.x[row].count_nonzero() == 24
        assert image == row // 6


def test_quadrants_are_drawn_evenly_and_independently() -> None:
    done = transformed(dataset(noise(2000, 1, 2, 2)), "quadrants", label="both", copies=2).train
    first, second = (done.y % 4).view(-1, 2).T
    pairs = torch.bincount(4 * first + second, minlength=16) / 2000
    torch.testing.assert_close(pairs, torch.full((16,), 1 / 16), atol=0.02, rtol=0)


def test_quadrants_with_the_digit_label_shows_the_same_images() -> None:
    data = dataset(noise(7, 1, 2, 2))
    digit, both = (transformed(data, "quadrants", label=label, copies=2) for label in ("digit", "both"))
    assert torch.equal(digit.train.x, both.train.x)
    assert torch.equal(digit.train.y, both.train.y // 4)
    assert torch.equal(digit.test.y, both.test.y // 4)


def test_quadrants_cannot_number_real_targets() -> None:
    examples = Examples(noise(6, 1, 3, 3), noise(6, 1))
    with pytest.raises(ValueError, match="needs class labels"):
        transformed(Dataset(examples, examples, "regression"), "quadrants", label="both", copies=4)


def test_subset_keeps_pairs_together_and_the_test_data_whole() -> None:
    data = dataset(noise(50, 1, 2, 2))
    done = transformed(data, "subset", n=20)
    assert len(done.train) == 20
    assert len(done.test) == 50
    assert len(set(done.train.y.tolist())) == 20
    assert torch.equal(done.train.x, data.train.x[done.train.y])
    assert done.train.y.tolist() != sorted(done.train.y.tolist())


def test_subset_of_more_than_there_is_says_so() -> None:
    with pytest.raises(RunError, match=r"`subset\(n = 51\)` asks for more training examples than there are \(=50\)"):
        transformed(dataset(noise(50, 1, 2, 2)), "subset", n=51)
    with pytest.raises(RunError, match=r"`subset\(n = 5, test = 51\)` asks for more test examples .* \(=50\)"):
        transformed(dataset(noise(50, 1, 2, 2)), "subset", n=5, test=51)


def test_subset_keeps_the_same_test_examples_for_every_seed() -> None:
    data = dataset(noise(50, 1, 2, 2))
    one, other = (transformed(data, "subset", seed=seed, n=20, test=7) for seed in (3, 4))
    assert torch.equal(one.test.x, other.test.x)
    assert not torch.equal(one.train.x, other.train.x)
    assert len(set(one.test.y.tolist())) == 7
    assert torch.equal(one.test.x, data.test.x[one.test.y])


@pytest.mark.parametrize("name", ["rotate", "translate", "scale", "quadrants", "subset"])
def test_random_transforms_repeat_for_a_seed_and_change_with_it(name: str) -> None:
    arguments: dict[str, dict[str, Value]] = {
        "rotate": {"degrees": 90, "step": 0},
        "translate": {"pixels": 2},
        "scale": {"logarithm": 0.5},
        "quadrants": {"label": "digit", "copies": 1},
        "subset": {"n": 5},
    }
    data = dataset(noise(20, 1, 5, 5))
    first, again, other = (transformed(data, name, seed=seed, **arguments[name]).train.x for seed in (3, 3, 4))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert first.is_contiguous()


def test_a_wrong_type_is_named() -> None:
    with pytest.raises(TypeError, match=r"`size` of `pad` \(='big'\) must be a whole number"):
        transformed(dataset(noise(1, 1, 2, 2)), "pad", size="big")
    with pytest.raises(TypeError, match=r"`degrees` of `rotate` \(=True\) must be a number"):
        transformed(dataset(noise(1, 1, 2, 2)), "rotate", degrees=True, step=0)


def test_every_pixel_counts_in_an_image_that_is_made_much_smaller():
    image = torch.zeros(1, 1, 8, 8)
    image[0, 0, 0, 0] = 1
    assert float(resized(image, 2)[0, 0, 0, 0]) > 0.01
