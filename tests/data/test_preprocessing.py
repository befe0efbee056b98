"""What a run found in its training data is kept, and used for whatever it meets afterwards."""

from __future__ import annotations

import json
import math
from pathlib import Path

import attrs
import numpy as np
import pytest
import torch

from data.by_hand import facts, step, synthetic
from oracles.comparison import noise
from symdsl.analysis.facts import Data
from symdsl.data import Dataset, load
from symdsl.data.preprocessing import Preprocessing, Statistics
from symdsl.diagnostics import RunError
from symdsl.spec import parse


def saved(path: Path, scale: float) -> Data:
    """Arrays whose training part has its own scale, and whose test part is always the same."""
    x, y = noise(40, 2, 4, 5).numpy() + 1, noise(40, 2, seed=1).numpy() - 5
    np.savez(path, x_train=scale * x, y_train=y * [scale, 1], x_test=x[:9], y_test=y[:9])
    source = step("arrays", path=str(path), task="auto")
    steps = step("standardize", what="images"), step("standardize", what="targets")
    return facts(source, *steps, shape=(2, 4, 5), classes=2, task="regression")


def test_targets_are_standardized_by_those_of_the_training_data(tmp_path: Path) -> None:
    data = load(saved(tmp_path / "a.npz", scale=1e20))
    torch.testing.assert_close(data.train.y.mean(0), torch.zeros(2), atol=1e-6, rtol=0)
    torch.testing.assert_close(data.train.y.std(0, correction=0), torch.ones(2))
    assert data.preprocessing.targets is not None
    with np.load(tmp_path / "a.npz") as held:
        restored = data.preprocessing.targets.restored(data.train.y)
        torch.testing.assert_close(restored, torch.from_numpy(held["y_train"]), rtol=1e-5, atol=1e-5)
    assert data.preprocessing.nats == pytest.approx(sum(math.log(std) for std in data.preprocessing.targets.std))


def test_the_statistics_of_a_run_are_used_for_other_training_data(tmp_path: Path) -> None:
    first = load(saved(tmp_path / "a.npz", scale=1))
    other = saved(tmp_path / "b.npz", scale=7)
    kept = Preprocessing.read(json.loads(json.dumps(first.preprocessing.record())))
    again = load(other, preprocessing=kept)
    assert torch.equal(again.test.x, first.test.x)
    assert torch.equal(again.test.y, first.test.y)
    assert again.preprocessing == first.preprocessing == kept
    assert not torch.equal(load(other).test.x, first.test.x)


def test_without_statistics_nothing_changes() -> None:
    plain, none = load(synthetic()), Preprocessing()
    assert plain.preprocessing == attrs.evolve(none, sides=(7, 7))
    assert none.nats == 0
    assert none.target_scale(3).tolist() == [1, 1, 1]
    assert Preprocessing.read(none.record()) == none


def test_statistics_and_their_inverse() -> None:
    found = Statistics([1.0, -2.0], [4.0, 0.5])
    values = noise(3, 2, 5, 6)
    standardized = found.standardized(values)
    torch.testing.assert_close(standardized[:, 1], ((values[:, 1] + 2) / 0.5).float())
    torch.testing.assert_close(found.restored(standardized), values, rtol=1e-6, atol=1e-6)


def test_class_labels_are_not_standardized() -> None:
    with pytest.raises(ValueError, match="needs real numbers for targets, but they are class labels"):
        load(synthetic(step("standardize", what="targets")))


@pytest.mark.parametrize(
    "damage",
    [
        *({"standardize": {"mean": [1]}}, {"targets": {"mean": ["a"], "std": [1]}}, {"classes": 3}),
        *({"extent": [1.0]}, {"extent": 1.0}, {"extent": []}),
    ],
)
def test_a_damaged_record_is_refused(damage: dict[str, object]) -> None:
    with pytest.raises((KeyError, TypeError, ValueError)):
        Preprocessing.read(Preprocessing().record() | damage)


def test_labels_are_matched_by_the_names_of_their_classes() -> None:
    learned = Preprocessing(classes=("ant", "bee", "cat"))
    labels = torch.tensor([0, 1, 1, 0])
    assert learned.renumbered(labels, ("cat", "ant")).tolist() == [2, 0, 0, 2]
    assert learned.renumbered(labels, ("bee", "cat", "dog")).tolist() == [1, 2, 2, 1]
    assert learned.renumbered(labels, ()).tolist() == labels.tolist()
    assert Preprocessing().renumbered(labels, ("a", "b")).tolist() == labels.tolist()


def test_names_that_were_never_learned_are_one_clear_line() -> None:
    learned = Preprocessing(classes=tuple(f"c{number}" for number in range(20)))
    with pytest.raises(RunError, match=r"^`b` of these data is not among the classes .* `c0`, .*`c11` and 8 more$"):
        learned.renumbered(torch.tensor([0, 1]), ("c3", "b"))
    with pytest.raises(RunError, match=r"^`a`, `b` of these data are not among the classes"):
        learned.renumbered(torch.tensor([1, 0]), ("a", "b"))


def turned(label: str, degrees: int = 45) -> Dataset:
    steps = f"digits |> rotate(degrees = {degrees}, label = {label}) |> standardize"
    return load(parse(f"data {steps}\nnetwork n {{ input image(1, 8, 8)\nflatten\nlayer h: FC -> classes }}"))


def test_the_angle_is_the_one_that_the_image_was_turned_by() -> None:
    angles, labels = turned("angle"), turned("kept")
    assert torch.equal(angles.train.x, labels.train.x)
    assert (labels.task, labels.train.y.dtype) == ("classification", torch.int64)
    assert (angles.task, angles.train.y.shape, angles.test.y.shape) == ("regression", (1437, 1), (360, 1))
    assert angles.train.y.abs().max() <= 45
    assert angles.train.y.std() == pytest.approx(45 / math.sqrt(3), rel=0.03)
    assert (angles.preprocessing.classes, labels.preprocessing.classes) == (None, tuple("0123456789"))


def test_a_positive_angle_turns_counter_clockwise() -> None:
    """Among digits 1 and 7, upright strokes, the ink above the middle moves to the left."""
    upright, data = turned("kept", degrees=0), turned("angle", degrees=45)
    ones = turned("kept", degrees=45).train.y == 1
    columns = torch.arange(8.0)
    top = data.train.x[ones][:, 0, :3].clamp(min=0)
    centre = (top * columns).sum((1, 2)) / top.sum((1, 2))
    still = upright.train.x[ones][:, 0, :3].clamp(min=0)
    moved = centre - (still * columns).sum((1, 2)) / still.sum((1, 2))
    angle = data.train.y[ones][:, 0]
    assert float(torch.corrcoef(torch.stack((moved, angle)))[0, 1]) < -0.9


def test_whoever_loads_is_told_of_every_step_and_how_far_it_is(tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []
    load(saved(tmp_path / "a.npz", scale=1), watch=lambda *what: told.append(what))
    assert told == [
        (f"reading {tmp_path / 'a.npz'}", 0, 0),
        ("reading `x_train`", 40, 40),
        ("reading `x_test`", 9, 9),
        ("standardize", 0, 0),
        ("standardize(what = targets)", 0, 0),
    ]


@pytest.mark.parametrize(
    ("low", "high", "far"),
    [(0, 1, False), (-1, 2, False), (0.4, 0.5, False), (0, 2.1, True), (-1.1, 0, True), (0, 0.01, True)],
)
def test_values_far_from_the_extent_of_the_training_images_are_doubted(low: float, high: float, far: bool) -> None:
    x = torch.tensor([low, high]).reshape(1, 1, 1, 2)
    found = Preprocessing(extent=(0.0, 1.0)).doubt(x)
    told = f"the values of these inputs are from {low} to {high}, where those of the training images are from 0 to 1"
    assert found == (told if far else None)
    assert Preprocessing().doubt(x) is None
    assert Preprocessing(extent=(0.0, 1.0)).doubt(x[:0]) is None


def test_an_extent_is_kept_and_may_be_missing_in_older_records() -> None:
    known = Preprocessing(extent=(-0.5, 2.25))
    assert Preprocessing.read(json.loads(json.dumps(known.record()))) == known
    older = {name: value for name, value in known.record().items() if name != "extent"}
    assert Preprocessing.read(older) == Preprocessing()
