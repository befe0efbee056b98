"""Searches that try two starts, and go on from the one that learns faster."""

import math

import pytest

from runner.test_search import Interrupting, Listening, read, timeless
from symdsl import runner
from symdsl.diagnostics import NumericalError
from symdsl.progress import Callback
from symdsl.runner import searching
from symdsl.runner.training import Trainer

EPOCHS = {"search__epochs": 10, "search__every": 2}
BOTH = {"search__start": "both", **EPOCHS}
"""Two epochs of trial for either start."""


class InterruptingTheTrial(Callback):
    """Presses Ctrl-C when the other start is tried."""

    def on_note(self, text):
        if "trying a" in text:
            raise KeyboardInterrupt


class Epochs(Callback):
    """Keeps which epochs it is told of."""

    def __init__(self):
        self.told = []

    def on_epoch(self, metrics):
        self.told.append(metrics["epoch"])


@pytest.fixture(params=["relaxed", "symmetric"])
def better(request, monkeypatch):
    """The start that is to learn faster."""
    monkeypatch.setattr(searching, "_mean_nll", lambda records: 1.0 if _kind(records) == request.param else 2.0)
    return request.param


def _kind(records):
    """Which start these records are of: a symmetric one holds the precision of F-FC's input side."""
    first, *_, last = (one["precisions"]["l1.F-FC.w2"] for one in records)
    return "symmetric" if first == last else "relaxed"


def test_the_start_that_learns_faster_has_the_smaller_mean_nll():
    assert searching._mean_nll([{"nll": 3.0}, {"nll": 1.0}]) == 2
    assert math.isnan(searching._mean_nll([]))


def test_a_search_goes_on_from_the_faster_start(small, tmp_path, better):
    told = Epochs()
    runner.search(small(**BOTH), device="cpu", out=tmp_path / "both", callbacks=[told])
    runner.search(small(search__start=better, **EPOCHS), device="cpu", out=tmp_path / "one")
    assert timeless(tmp_path / "both")[:3] == timeless(tmp_path / "one")[:3]
    assert read(tmp_path / "both", "result.json")["start"] == better
    assert told.told == [1, 2, *([1, 2] if better == "symmetric" else []), *range(3, 11)]


@pytest.mark.parametrize("interrupt", [Interrupting(1), InterruptingTheTrial(), Interrupting(3)])
def test_an_interrupted_trial_ends_like_an_uninterrupted_one(small, tmp_path, better, interrupt):
    runner.search(small(**BOTH), device="cpu", out=tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        runner.search(small(**BOTH), device="cpu", out=tmp_path / "broken", callbacks=[interrupt])
    runner.search(device="cpu", resume=tmp_path / "broken")
    assert timeless(tmp_path / "broken") == timeless(tmp_path / "whole")


def test_a_start_that_fails_is_left(small, tmp_path, monkeypatch):
    honest = Trainer.train_epoch

    def failing(self, after_step):
        if not self.parameters["l1.F-FC.w1"].any():
            raise NumericalError("the loss is not finite")
        return honest(self, after_step)

    monkeypatch.setattr(Trainer, "train_epoch", failing)
    heard = Listening()
    result = runner.search(small(**BOTH), device="cpu", out=tmp_path / "run", callbacks=[heard])
    assert result["start"] == "relaxed"
    assert "a symmetric start does not work: the loss is not finite" in heard.notes


def test_given_weights_are_the_only_start(small, tmp_path):
    runner.search(small(**BOTH), device="cpu", out=tmp_path / "first")
    heard = Listening()
    second = tmp_path / "second"
    runner.search(small(**BOTH), device="cpu", out=second, weights_from=tmp_path / "first", callbacks=[heard])
    assert not any("trying a" in one for one in heard.notes)


def test_a_baseline_has_no_start(small, tmp_path):
    result = runner.search(small(), device="cpu", out=tmp_path / "run", objective="map")
    assert result["start"] is None
