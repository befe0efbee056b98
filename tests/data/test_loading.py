from __future__ import annotations

import re
from functools import partial

import attrs
import pytest
import torch

from data.by_hand import step, synthetic
from symdsl.analysis.facts import Value
from symdsl.catalog import data as catalog
from symdsl.data import Dataset, Examples, fingerprint, from_tensors, load
from symdsl.data.records import seeded
from symdsl.data.sources import SOURCES
from symdsl.data.transforms import TRANSFORMS


def test_the_same_seed_gives_the_same_data() -> None:
    data = synthetic(step("translate", pixels=1), step("subset", n=9))
    assert fingerprint(load(data, 5)) == fingerprint(load(data, 5)) != fingerprint(load(data, 6))


def test_loading_leaves_the_global_generator_alone() -> None:
    before = torch.random.get_rng_state()
    load(synthetic(step("rotate", degrees=30, step=0)), 5)
    assert torch.equal(torch.random.get_rng_state(), before)


def test_transforms_run_in_the_order_written() -> None:
    first = load(synthetic(step("standardize"), step("pad", size=9), shape=(2, 9, 9))).train.x
    last = load(synthetic(step("pad", size=9), step("standardize"), shape=(2, 9, 9))).train.x
    assert first[0, 0, 0, 0] == 0
    assert last.mean().item() == pytest.approx(0, abs=1e-6)
    assert last[0, 0, 0, 0] != 0


def test_a_subset_in_front_changes_no_other_draw() -> None:
    rotated = load(synthetic(step("rotate", degrees=90, step=0)), 3)
    fewer = load(synthetic(step("subset", n=9), step("rotate", degrees=90, step=0)), 3)
    assert torch.equal(fewer.test.x, rotated.test.x)


def test_a_transform_written_twice_draws_anew() -> None:
    shift = step("translate", pixels=1)
    twice = load(synthetic(shift, shift), 3).train.x
    first, second = (
        TRANSFORMS["translate"](load(synthetic(shift), 3), shift, partial(seeded, 3, "translate", turn)).train.x
        for turn in (0, 1)
    )
    assert torch.equal(twice, second)
    assert not torch.equal(twice, first)


def test_both_labels_are_checked_against_the_source_s_classes() -> None:
    data = synthetic(step("quadrants", label="both", copies=4), shape=(2, 14, 14), classes=12)
    loaded = load(data)
    assert len(loaded.train) == 120
    assert sorted(loaded.test.y.unique().tolist()) == list(range(12))


@pytest.mark.parametrize("part", ["train", "test"])
@pytest.mark.parametrize("what", ["x", "y"])
def test_the_fingerprint_sees_every_number(part: str, what: str) -> None:
    data = load(synthetic())
    examples = getattr(data, part)
    values = getattr(examples, what).clone()
    values[(-1,) * values.ndim] += 1
    changed = attrs.evolve(data, **{part: attrs.evolve(examples, **{what: values})})
    assert fingerprint(changed) != fingerprint(data)


def test_the_fingerprint_sees_shapes_and_types() -> None:
    x, y = torch.zeros(2, 1, 2, 8), torch.zeros(2, dtype=torch.int64)
    variants = [(x, y), (x.reshape(2, 1, 8, 2), y), (x.reshape(2, 2, 2, 4), y), (x.int(), y), (x, y.double())]
    prints = [fingerprint(Dataset(Examples(*each), Examples(*each), "classification")) for each in variants]
    assert len(set(prints)) == len(variants)


def test_the_fingerprint_is_of_the_numbers_alone() -> None:
    data = load(synthetic())
    train = Examples(data.train.x.transpose(2, 3).contiguous().transpose(2, 3), data.train.y.clone())
    assert fingerprint(attrs.evolve(data, train=train)) == fingerprint(data)
    assert re.fullmatch("[0-9a-f]{64}", fingerprint(data))


def test_every_source_and_transform_of_the_language_can_be_loaded() -> None:
    assert {*SOURCES, "given"} == set(catalog.SOURCES)
    assert set(TRANSFORMS) == set(catalog.TRANSFORMS)


ARGUMENTS: dict[str, dict[str, Value]] = {
    "standardize": {},
    "resize": {"size": 5},
    "pad": {"size": 10},
    "crop": {"size": 4},
    "rotate": {"degrees": 20, "step": 0},
    "translate": {"pixels": 2},
    "scale": {"logarithm": 0.5},
    "shuffle": {"alike": False},
    "unroll": {},
    "quadrants": {"label": "both", "copies": 3},
    "subset": {"n": 9, "test": 4},
    "augment": {"flip": True, "shift": 2},
}


@pytest.mark.parametrize("name", sorted(catalog.TRANSFORMS))
def test_transforms_do_what_the_language_was_told(name: str) -> None:
    source = synthetic().source
    outline = catalog.SOURCES["synthetic"].outline
    assert outline is not None
    before = outline(dict(source.arguments))
    expected = catalog.TRANSFORMS[name].apply(before, ARGUMENTS[name])
    shape = (expected.channels, expected.height, expected.width)
    data = load(synthetic(step(name, **ARGUMENTS[name]), shape=shape, classes=expected.classes))
    assert data.train.x.shape[1:] == data.test.x.shape[1:] == shape
    assert int(data.train.y.max()) < expected.classes
    assert (len(data.train), len(data.test)) == (expected.train, expected.test)


def test_a_dataset_is_printed_by_its_shapes() -> None:
    given = from_tensors(torch.zeros(300, 1, 8, 8), torch.arange(300) % 3, torch.zeros(9, 1, 8, 8), torch.arange(9))
    assert "train=Examples(x=float32 [300, 1, 8, 8], y=int64 [300])" in repr(given)
    assert len(repr(given)) < 600
