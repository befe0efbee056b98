"""New inputs for a trained network."""

from __future__ import annotations

import os
from pathlib import Path

import attrs
import numpy as np
import pytest
import torch
from PIL import Image

from oracles.comparison import assert_same
from symdsl import data
from symdsl.data.inputs import Preparation, read_inputs
from symdsl.diagnostics import RunError
from symdsl.spec import parse

NETWORK = "network n {\n  input image(channels, 6, 6)\n  flatten\n  layer h1: FC -> classes\n}\n"


def pixels(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)


def preparation(steps: str, tmp_path: Path, channels: int = 1, seed: int = 711) -> tuple[Preparation, data.Dataset]:
    """Of data in a file `data.npz`, 8x8, that go through `steps`."""
    np.savez(
        tmp_path / "data.npz",
        x_train=pixels(20, channels, 8, 8),
        y_train=np.arange(20) % 2,
        x_test=pixels(5, channels, 8, 8),
        y_test=np.arange(5) % 2,
    )
    spec = parse(f'data arrays("{tmp_path}/data.npz"){steps}\n\n{NETWORK}')
    dataset = data.load(spec, seed)
    return Preparation(spec.facts.data, dataset.preprocessing, seed), dataset


@pytest.mark.parametrize(
    "steps",
    [
        *("|> resize(6) |> standardize", "|> standardize |> crop(6)", "|> crop(4) |> pad(6)"),
        *("|> shuffle |> crop(6)", "|> crop(6) |> shuffle |> standardize |> shuffle"),
    ],
)
def test_arrays_go_through_the_transforms_of_the_data(steps: str, tmp_path: Path) -> None:
    prepare, dataset = preparation(steps, tmp_path)
    np.savez(tmp_path / "new.npz", x_test=pixels(5, 1, 8, 8), other=np.zeros(3))
    names, x = read_inputs([tmp_path / "new.npz"], prepare)
    assert names[:2] == [f"{tmp_path}/new.npz[0]", f"{tmp_path}/new.npz[1]"]
    assert_same(x, dataset.test.x, 1e-6)
    assert prepare.left_out == ()


def test_a_file_of_arrays_is_no_pipe_and_no_folder(tmp_path: Path) -> None:
    prepare, _ = preparation("|> crop(6)", tmp_path)
    os.mkfifo(tmp_path / "pipe.npz")
    with pytest.raises(RunError, match=r"pipe\.npz: cannot be read: it is a device, not a file"):
        read_inputs([tmp_path / "pipe.npz"], prepare)


def test_what_draws_at_random_is_left_out(tmp_path: Path) -> None:
    drawn = "rotate(degrees = 30) |> shuffle(alike = false) |> subset(10)"
    steps = f"|> crop(3) |> quadrants |> {drawn} |> standardize |> augment(flip)"
    prepare, dataset = preparation(steps, tmp_path)
    left_out = ["crop", "quadrants", "rotate", "shuffle", "subset", "augment"]
    assert [step.name for step in prepare.left_out] == left_out
    x = torch.rand(4, 1, 6, 6)
    found = dataset.preprocessing.standardize
    assert found is not None
    assert_same(prepare(x), (x - found.mean[0]) / found.std[0], 1e-5)


def test_pixels_are_shuffled_as_those_of_the_seed(tmp_path: Path) -> None:
    for seed in (3, 4):
        prepare, dataset = preparation("|> crop(6) |> shuffle", tmp_path, seed=seed)
        assert_same(prepare(pixels(5, 1, 8, 8)), dataset.test.x, 1e-6)
    other, _ = preparation("|> crop(6) |> shuffle", tmp_path, seed=5)
    assert not torch.equal(other(pixels(5, 1, 8, 8)), dataset.test.x)


@pytest.mark.parametrize("steps", ["shuffle |> crop(6)", "resize(6) |> shuffle", "pad(12) |> shuffle |> crop(6)"])
def test_a_recipe_has_the_order_of_pixels(steps: str, tmp_path: Path) -> None:
    prepare, _ = preparation(f"|> {steps}", tmp_path)
    side = {"shuffle |> crop(6)": 8, "resize(6) |> shuffle": 6}.get(steps, 12)
    order = dict(prepare.recipe())["shuffle"]["order"]
    assert sorted(order) == list(range(side**2))
    earlier = attrs.evolve(prepare, found=attrs.evolve(prepare.found, sides=None))  # of a run of an earlier version
    assert dict(earlier.recipe())["shuffle"]["order"] == order
    (tmp_path / "data.npz").unlink()
    assert dict(prepare.recipe())["shuffle"]["order"] == order
    if steps.startswith("shuffle"):
        with pytest.raises(RunError, match="`shuffle` moves as many pixels as the data have, which cannot be read"):
            earlier.recipe()


@pytest.mark.parametrize("steps", ["shuffle |> crop(6)", "shuffle |> resize(6)"])
def test_images_of_another_size_are_not_shuffled_in_another_order(steps: str, tmp_path: Path) -> None:
    prepare, dataset = preparation(f"|> {steps}", tmp_path)
    assert_same(prepare(pixels(5, 1, 8, 8)), dataset.test.x, 1e-6)
    for side in (7, 10):
        expected = f"it is 1x{side}x{side}, so that `shuffle` finds {side**2} pixels where the data have 64"
        with pytest.raises(RunError, match=expected):
            prepare(pixels(5, 1, side, side))


def test_pixels_of_quadrants_are_counted_before_a_change_of_size(tmp_path: Path) -> None:
    prepare, _ = preparation("|> quadrants |> shuffle |> resize(6)", tmp_path)
    assert sorted(dict(prepare.recipe())["shuffle"]["order"]) == list(range(256))


def test_the_order_of_pixels_counts_those_of_all_quadrants(tmp_path: Path) -> None:
    prepare, _ = preparation("|> crop(3) |> quadrants |> shuffle", tmp_path)
    order = dict(prepare.recipe())["shuffle"]["order"]
    assert sorted(order) == list(range(36))
    flat = torch.from_numpy(pixels(5, 1, 6, 6)).flatten(1) / 255
    assert_same(prepare(pixels(5, 1, 6, 6)).flatten(1), flat[:, order], 1e-6)


def test_hidden_files_are_no_inputs(tmp_path: Path) -> None:
    prepare, _ = preparation("|> resize(6)", tmp_path)
    for name in ("a.png", "._a.png", ".thumbs/b.png"):
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels(8, 8)).save(tmp_path / "in" / name)
    names, _ = read_inputs([tmp_path / "in"], prepare)
    assert names == [str(tmp_path / "in" / "a.png")]


@pytest.mark.parametrize("channels", [1, 3])
def test_images_and_folders_of_them(channels: int, tmp_path: Path) -> None:
    prepare, _ = preparation("|> resize(6) |> standardize", tmp_path, channels)
    folder = tmp_path / "new"
    (folder / "deep").mkdir(parents=True)
    small, large = pixels(8, 8, 3), pixels(12, 10, 3)
    Image.fromarray(small).save(folder / "b.png")
    Image.fromarray(large).save(folder / "deep" / "A.PNG")
    Image.fromarray(small).save(folder / "c.jpeg")
    (folder / "notes.txt").write_text("nothing")
    names, x = read_inputs([folder, folder / "b.png"], prepare)
    assert [Path(name).name for name in names] == ["b.png", "c.jpeg", "A.PNG", "b.png"]
    grey = np.array(Image.fromarray(small).convert("L"))[None] if channels == 1 else small.transpose(2, 0, 1)
    assert_same(x[0], prepare(torch.from_numpy(grey.copy())[None] / 255)[0], 1e-6)
    assert_same(x[3], x[0], 0.0)
    assert x.shape == (4, channels, 6, 6)


def refusals(tmp_path: Path) -> dict[str, tuple[Path, str]]:
    Image.fromarray(pixels(5, 5)).save(tmp_path / "small.png")
    (tmp_path / "broken.png").write_bytes(b"no image")
    (tmp_path / "broken.npz").write_bytes(b"no arrays")
    with (tmp_path / "single.npz").open("wb") as file:
        np.save(file, np.zeros((2, 6, 6)))
    (tmp_path / "empty").mkdir()
    Image.fromarray(pixels(7, 7).astype(np.uint16) * 257).save(tmp_path / "deep.png")
    (tmp_path / "notes.txt").write_text("nothing")
    np.savez(tmp_path / "two.npz", a=np.zeros(2), b=np.zeros(2))
    np.savez(tmp_path / "flat.npz", x=np.zeros((2, 8)))
    np.savez(tmp_path / "whole.npz", x=np.zeros((2, 8, 8), dtype=int))
    np.savez(tmp_path / "nan.npz", x=np.full((2, 6, 6), np.nan))
    np.savez(tmp_path / "object.npz", x=np.array([{}], dtype=object))
    return {
        "small.png": (tmp_path / "small.png", r"must not be larger than the image \(5x5\)"),
        "broken.png": (tmp_path / "broken.png", "cannot read the image"),
        "broken.npz": (tmp_path / "broken.npz", "is not a readable .npz file"),
        "single": (tmp_path / "single.npz", "is not a readable .npz file"),
        "empty": (tmp_path / "empty", "holds no PNG or JPEG file"),
        "notes": (tmp_path / "notes.txt", "an input is a PNG or JPEG file"),
        "missing": (tmp_path / "missing.png", "No such file"),
        "missing folder": (tmp_path / "scans", "No such file"),
        "deep.png": (tmp_path / "deep.png", "is of mode I;16, neither grey nor RGB with 8 bits$"),
        "missing arrays": (tmp_path / "missing.npz", "No such file"),
        "two": (tmp_path / "two.npz", "holds `a`, `b`, of which none is called `x`"),
        "flat": (tmp_path / "flat.npz", "`x` has 2 axes, expected"),
        "whole": (tmp_path / "whole.npz", "holds int64, expected floats or uint8"),
        "nan": (tmp_path / "nan.npz", "holds a number that is not finite"),
        "object": (tmp_path / "object.npz", "`x` cannot be read: it is damaged or holds Python objects"),
    }


@pytest.mark.parametrize(
    "which",
    [
        *("small.png", "broken.png", "broken.npz", "empty", "notes", "missing", "missing arrays", "two", "flat"),
        *("whole", "nan", "object", "single", "missing folder", "deep.png"),
    ],
)
def test_what_cannot_be_used_is_named(which: str, tmp_path: Path) -> None:
    prepare, _ = preparation("|> crop(6)", tmp_path)
    path, reason = refusals(tmp_path)[which]
    with pytest.raises(RunError, match=reason) as caught:
        read_inputs([path], prepare)
    assert str(path) in str(caught.value)


def test_a_file_whose_numbers_overflow_is_named(tmp_path: Path) -> None:
    prepare, _ = preparation("|> crop(6) |> standardize", tmp_path)
    np.savez(tmp_path / "huge.npz", x=np.full((1, 8, 8), 3e38))
    with pytest.raises(RunError, match=r"huge\.npz: it holds numbers that are too large for the transforms"):
        read_inputs([tmp_path / "huge.npz"], prepare)


def test_arrays_are_taken_as_files_are(tmp_path: Path) -> None:
    prepare, _ = preparation("|> crop(6)", tmp_path)
    assert torch.equal(prepare(torch.ones(2, 8, 8)), prepare(torch.ones(2, 1, 8, 8)))
    assert prepare(torch.ones(0, 1, 8, 8)).shape == (0, 1, 6, 6)
    with pytest.raises(RunError, match="it holds int64, expected floats or uint8"):
        prepare(torch.ones(2, 1, 8, 8, dtype=torch.long))


def test_a_name_that_is_not_utf8_is_given_as_far_as_it_can_be(tmp_path: Path) -> None:
    prepare, _ = preparation("|> crop(6)", tmp_path)
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.png"))
    Image.fromarray(pixels(8, 8)).save(path)
    (name,), _ = read_inputs([path], prepare)
    assert name == f"{tmp_path}/caf\N{REPLACEMENT CHARACTER}.png"


def test_an_input_of_another_shape_is_refused(tmp_path: Path) -> None:
    prepare, _ = preparation("|> crop(3) |> quadrants", tmp_path)
    with pytest.raises(RunError, match="it is 1x7x7, but the network reads 1x6x6: resize it"):
        prepare(torch.zeros(2, 1, 7, 7))
    with pytest.raises(RunError, match=r"resize it and put it into one, as `quadrants` does"):
        prepare(torch.zeros(2, 1, 3, 3))


@pytest.mark.parametrize(
    ("shape", "came"),
    [((2, 3, 8, 8), "3x8x8"), ((2, 1, 8, 8), "1x8x8"), ((2, 8, 8), "1x8x8"), ((2, 2), "2"), ((2,), "one number")],
)
def test_channels_are_not_made_up(shape: tuple[int, ...], came: str, tmp_path: Path) -> None:
    prepare, _ = preparation("|> standardize |> crop(6)", tmp_path, channels=2)
    with pytest.raises(RunError, match=f"it is {came}, but the network reads 2x6x6$"):
        prepare(torch.zeros(shape))


def test_bytes_and_arrays_are_prepared_like_their_values(tmp_path: Path) -> None:
    prepare, _ = preparation("|> crop(6)", tmp_path)
    values = np.random.default_rng(0).integers(0, 256, (2, 1, 7, 7), np.uint8)
    expected = prepare(torch.from_numpy(values).float() / 255)
    assert_same(prepare(torch.from_numpy(values)), expected, 1e-6)
    assert_same(prepare(values), expected, 1e-6)


def test_images_have_no_other_number_of_channels(tmp_path: Path) -> None:
    prepare, _ = preparation("|> crop(6)", tmp_path, channels=2)
    Image.fromarray(pixels(6, 6)).save(tmp_path / "grey.png")
    with pytest.raises(RunError, match="reads 2 channels"):
        read_inputs([tmp_path / "grey.png"], prepare)
