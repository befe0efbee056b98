"""Searches that try two starts, and go on from the one of the better evidence."""

import pytest

from runner.test_search import Interrupting, Listening, read, timeless
from symdsl import runner
from symdsl.diagnostics import NumericalError
from symdsl.progress import Callback
from symdsl.runner import searching
from symdsl.runner.training import Trainer

EPOCHS = {"search__epochs": 10, "search__every": 2}
"""Two epochs of trial for either start."""


class InterruptingTheTrial(Callback):
    """Presses Ctrl-C when the other start is tried."""

    def on_note(self, text):
        if "to compare the evidence" in text:
            raise KeyboardInterrupt


class Epochs(Callback):
    """Keeps which epochs it is told of."""

    def __init__(self):
        self.told = []

    def on_epoch(self, metrics):
        self.told.append(metrics["epoch"])


@pytest.fixture(params=["relaxed", "symmetric"])
def better(request, monkeypatch):
    """The start that the evidence is to prefer."""
    honest = searching._late_evidence
    monkeypatch.setattr(searching, "_late_evidence", lambda records: 1.0 if _kind(records) == request.param else 2.0)
    assert honest([{"neg_log_evidence_per_example": 3.0}, {}, {"neg_log_evidence_per_example": 5.0}]) == 5
    return request.param


def _kind(records):
    """Which start these records are of: a relaxed one has F-FC's precisions of both tensors learned."""
    first, *_, last = (one["precisions"]["l1.F-FC.w2"] for one in records)
    return "symmetric" if first == last else "relaxed"


def test_a_search_goes_on_from_the_start_of_the_better_evidence(small, tmp_path, better):
    told = Epochs()
    runner.search(small(**EPOCHS), device="cpu", out=tmp_path / "both", callbacks=[told])
    runner.search(small(search__start=better, **EPOCHS), device="cpu", out=tmp_path / "one")
    assert timeless(tmp_path / "both")[:3] == timeless(tmp_path / "one")[:3]
    assert read(tmp_path / "both", "result.json")["start"] == better
    assert told.told == [1, 2, *([1, 2] if better == "symmetric" else []), *range(3, 11)]


@pytest.mark.parametrize("interrupt", [Interrupting(1), InterruptingTheTrial(), Interrupting(3)])
def test_an_interrupted_trial_ends_like_an_uninterrupted_one(small, tmp_path, better, interrupt):
    runner.search(small(**EPOCHS), device="cpu", out=tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        runner.search(small(**EPOCHS), device="cpu", out=tmp_path / "broken", callbacks=[interrupt])
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
    result = runner.search(small(**EPOCHS), device="cpu", out=tmp_path / "run", callbacks=[heard])
    assert result["start"] == "relaxed"
    assert "not from a symmetric start: the loss is not finite" in heard.notes


def test_without_evidence_in_the_trial_the_first_start_stays(small, tmp_path):
    result = runner.search(small(search__epochs=10, search__burnin=9), device="cpu", out=tmp_path / "run")
    assert result["start"] == "relaxed"


def test_given_weights_are_the_only_start(small, tmp_path):
    runner.search(small(**EPOCHS), device="cpu", out=tmp_path / "first")
    heard = Listening()
    second = tmp_path / "second"
    runner.search(small(**EPOCHS), device="cpu", out=second, weights_from=tmp_path / "first", callbacks=[heard])
    assert not any("to compare the evidence" in one for one in heard.notes)


def test_a_baseline_has_no_start(small, tmp_path):
    result = runner.search(small(), device="cpu", out=tmp_path / "run", objective="map")
    assert result["start"] is None
