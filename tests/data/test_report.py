"""What is said about data, and the sheet of pictures."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from data.by_hand import facts, step, synthetic
from symdsl.analysis.dataset import written
from symdsl.analysis.facts import Step
from symdsl.data import Dataset, Examples, from_tensors, inspect, load
from symdsl.data.sheet import MOST_ROWS, sheet
from symdsl.render import data_tables
from symdsl.render.cells import table_text
from symdsl.spec import parse

NETWORK = "\nnetwork n {{ input image({}, {}, {})\nflatten\nlayer h: FC -> classes }}"
PLACED = "data synthetic(channels = 2, size = 4, classes = 3, train = 30, test = 9) |> quadrants(both, copies = 2)"


def picture(content: bytes) -> Image.Image:
    image = Image.open(io.BytesIO(content))
    assert image.format == "PNG"
    return image


def grey(value: float, count: int = 1, channels: int = 1) -> torch.Tensor:
    return torch.full((count, channels, 2, 4), value)


def common(image: Image.Image) -> set[tuple[int, ...]]:
    """The colours of more than 500 pixels: those of the paper and of pictures, not of letters."""
    colours, counts = np.unique(np.asarray(image).reshape(-1, 3), axis=0, return_counts=True)
    return {tuple(colour.tolist()) for colour, count in zip(colours, counts, strict=True) if count > 500}


def labelled(x: torch.Tensor, y: list[int]) -> Examples:
    return Examples(x, torch.tensor(y))


def test_small_and_large_units_are_readable() -> None:
    x = torch.randn(50, 1, 2, 4, generator=torch.Generator().manual_seed(0)) * torch.tensor([2e-4])
    x = torch.cat((x, x * 1e12), 1)
    data = from_tensors(x, torch.arange(50) % 2, x, torch.arange(50) % 2)
    spec = parse("data given(channels = 2, height = 2, width = 4, classes = 2)" + NETWORK.format(2, 2, 4))
    text = table_text(data_tables(inspect(spec, given=data).content))
    assert "0.000196" in text
    assert "1.96e+08" in text


def test_every_step_is_counted_and_measured() -> None:
    spec = parse(PLACED + " |> standardize" + NETWORK.format(2, 8, 8))
    content = inspect(spec).content
    assert [one["step"] for one in content["steps"]] == [
        "synthetic(channels = 2, size = 4, classes = 3, train = 30, test = 9)",
        "quadrants(label = both, copies = 2)",
        "standardize",
    ]
    assert [one["train"]["examples"] for one in content["steps"]] == [30, 60, 60]
    assert [one["test"]["shape"] for one in content["steps"]] == [[2, 4, 4], [2, 8, 8], [2, 8, 8]]
    before = load(parse(PLACED + NETWORK.format(2, 8, 8))).train.x.double()
    assert content["steps"][1]["train"]["mean"] == pytest.approx(before.mean((0, 2, 3)).tolist())
    assert content["steps"][1]["train"]["spread"] == pytest.approx(before.std((0, 2, 3), correction=0).tolist())
    assert content["steps"][2]["train"]["mean"] == pytest.approx([0, 0], abs=1e-6)


def test_labels_are_counted_by_name() -> None:
    spec = parse("data digits |> quadrants(both)" + NETWORK.format(1, 16, 16))
    labels, data = inspect(spec).content["labels"], load(spec)
    assert (labels[13]["label"], labels[13]["name"]) == (13, "3, top right")
    assert [one["train"] for one in labels] == data.train.y.bincount().tolist()
    assert [one["test"] for one in labels] == data.test.y.bincount().tolist()


def test_the_seed_is_the_spec_s_unless_given() -> None:
    spec = parse(PLACED + NETWORK.format(2, 8, 8))
    first, again, other = inspect(spec), inspect(spec, spec.facts.search.seed), inspect(spec, 5)
    assert (first.content, first.picture) == (again.content, again.picture)
    assert first.picture != other.picture


def test_targets_are_described(tmp_path: Path) -> None:
    x, y = np.zeros((20, 3, 3), np.float32), np.stack([np.arange(20.0), -np.ones(20)], 1)
    np.savez(tmp_path / "a.npz", x_train=x, y_train=y, x_test=x[:2], y_test=y[:2])
    found = inspect(parse(f'data arrays("{tmp_path}/a.npz")' + NETWORK.format(1, 3, 3)))
    first, second = found.content["targets"]
    assert first["train"] == {"mean": 9.5, "spread": pytest.approx(np.arange(20).std()), "min": 0, "max": 19}
    assert second["test"] == {"mean": -1, "spread": 0, "min": -1, "max": -1}
    assert picture(found.picture).width > 100


def test_standardized_targets_are_described_in_their_own_units(tmp_path: Path) -> None:
    x, y = np.zeros((20, 3, 3), np.float32), np.arange(20.0)
    np.savez(tmp_path / "a.npz", x_train=x, y_train=y, x_test=x[:2], y_test=y[:2])
    plain, standardized = (
        inspect(parse(f'data arrays("{tmp_path}/a.npz"){step}{NETWORK.format(1, 3, 3)}')).content["targets"][0]
        for step in ("", " |> standardize(targets)")
    )
    for part in ("train", "test"):
        assert standardized[part] == pytest.approx(plain[part], abs=1e-5)


def test_of_many_channels_the_range_is_shown(tmp_path: Path) -> None:
    x, y = np.zeros((20, 60, 1, 1), np.float32) + np.arange(60, dtype=np.float32)[:, None, None], np.arange(20) % 2
    np.savez(tmp_path / "a.npz", x_train=x, y_train=y, x_test=x[:2], y_test=y[:2])
    found = inspect(parse(f'data arrays("{tmp_path}/a.npz")' + NETWORK.format(60, 1, 1)))
    assert len(found.content["steps"][0]["train"]["mean"]) == 60
    shown = table_text(data_tables(found.content))
    assert "0.000 to 59.000" in shown
    assert "60x1x1" in shown


@pytest.mark.parametrize(
    ("one", "text"),
    [
        (step("mnist", root="~/data", download=False), "mnist"),
        (step("mnist", root="/x", download=True), 'mnist(root = "/x", download)'),
        (step("augment", flip=True, shift=4), "augment(flip, shift = 4)"),
        (step("rotate", degrees=22.5, step=0), "rotate(degrees = 22.5, step = 0)"),
        (step("quadrants", label="both", copies=4), "quadrants(label = both, copies = 4)"),
        (step("subset", n=9), "subset(n = 9)"),
        (step("subset", n=9, test=5), "subset(n = 9, test = 5)"),
    ],
)
def test_a_transform_is_written_in_full_and_a_source_without_its_defaults(one: Step, text: str) -> None:
    assert written(one) == text


def test_a_sheet_has_a_row_for_each_class_and_one_scale() -> None:
    train = labelled(torch.cat((grey(-1), grey(3))), [0, 1])
    data = facts(step("digits", size=8), shape=(1, 2, 4), classes=2)
    image = picture(sheet(Dataset(train, labelled(grey(1), [1]), "classification"), data, ("a", "b"), 3, 0))
    assert common(image) == {(255, 255, 255), (0, 0, 0), (128, 128, 128)}


def test_a_class_whose_name_cannot_be_drawn_is_called_by_its_number() -> None:
    part = labelled(torch.cat((grey(-1), grey(3))), [0, 1])
    data = facts(step("digits", size=8), shape=(1, 2, 4), classes=2)
    drawn = [sheet(Dataset(part, part, "classification"), data, ("a", name), 3, 0) for name in ("日本", "class 1", "b")]
    assert drawn[0] == drawn[1] != drawn[2]


def test_a_name_is_drawn_without_its_accents() -> None:
    part = labelled(torch.cat((grey(-1), grey(3))), [0, 1])
    data = facts(step("digits", size=8), shape=(1, 2, 4), classes=2)
    drawn = [
        sheet(Dataset(part, part, "classification"), data, ("a", name), 3, 0) for name in ("Bär", "Bar", "class 1")
    ]
    assert drawn[0] == drawn[1] != drawn[2]


def test_three_channels_are_colours_and_of_others_the_first_is_shown() -> None:
    for channels, expected in ((3, (255, 0, 0)), (2, (0, 0, 0))):
        x = torch.zeros(2, channels, 2, 4)
        x[1, 0] = 1
        part = labelled(x, [0, 1])
        data = facts(step("digits", size=8), shape=(channels, 2, 4), classes=2)
        image = picture(sheet(Dataset(part, part, "classification"), data, (), 1, 0))
        assert common(image) == {(255, 255, 255), (0, 0, 0), expected}


def test_training_examples_are_shown_augmented_and_test_examples_are_not() -> None:
    source = facts(step("digits", size=8), shape=(1, 2, 4), classes=2)
    augmented = facts(source.source, step("augment", flip=False, shift=1), shape=(1, 2, 4), classes=2)
    part = labelled(torch.cat((grey(0.5, 8), grey(1, 8))), [0] * 8 + [1] * 8)
    plain = labelled(torch.zeros(2, 1, 2, 4), [0, 1])
    shown = [picture(sheet(Dataset(part, plain, "classification"), data, (), 8, 0)) for data in (source, augmented)]
    plain_dark, augmented_dark = (int((np.asarray(image) == 0).all(2).sum()) for image in shown)
    assert augmented_dark > plain_dark > 0


def test_many_classes_are_shown_in_part() -> None:
    y = list(range(100))
    part = labelled(torch.rand(100, 1, 2, 4), y)
    data = facts(step("digits", size=8), shape=(1, 2, 4), classes=100)
    tall = picture(sheet(Dataset(part, part, "classification"), data, (), 1, 0)).height
    some = part[:10]
    few = picture(sheet(Dataset(some, some, "classification"), data, (), 1, 0)).height
    assert tall - few == (MOST_ROWS - 10) * (20 + 4)


@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 1, 300), (3, 500, 200)])
def test_pictures_of_any_size_fit(shape: tuple[int, int, int]) -> None:
    part = labelled(torch.rand(2, *shape), [0, 1])
    data = facts(step("digits", size=8), shape=shape, classes=2)
    image = picture(sheet(Dataset(part, part, "classification"), data, (), 1, 0))
    assert 60 < image.height < 400


def test_looking_changes_nothing() -> None:
    spec = parse("data digits |> standardize" + NETWORK.format(1, 8, 8))
    before = load(spec).train.x
    inspect(spec)
    assert torch.equal(load(spec).train.x, before)
    assert load(synthetic()).train.x.shape[1:] == (2, 7, 7)


def test_a_picture_has_at_least_one_example() -> None:
    with pytest.raises(ValueError, match=r"`examples` \(=0\) must be at least 1"):
        inspect(parse(PLACED + NETWORK.format(2, 8, 8)), examples=0)


def test_data_that_are_handed_over_are_inspected() -> None:
    given = from_tensors(torch.rand(6, 1, 3, 3), [0, 1, 2] * 2, torch.rand(3, 1, 3, 3), [0, 1, 2])
    spec = parse("data given(1, 3, classes = 3) |> standardize" + NETWORK.format(1, 3, 3))
    assert [one["train"] for one in inspect(spec, given=given).content["labels"]] == [2, 2, 2]
