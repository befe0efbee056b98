"""Searches that try two starts, and go on from the one of the better evidence."""

import math

import pytest

from runner.test_search import Interrupting, Listening, read, timeless
from symdsl import runner
from symdsl.diagnostics import NumericalError
from symdsl.progress import Callback
from symdsl.runner import searching, trial
from symdsl.runner.structure import Structure
from symdsl.runner.training import Trainer

pytestmark = pytest.mark.usefixtures("fitted")

EPOCHS = {"search__epochs": 10, "search__every": 2}
"""Two epochs of trial for either start."""

BOTH = {"search__start": "both", **EPOCHS}


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
    """The start that the evidence is to prefer."""
    monkeypatch.setattr(searching, "late_evidence", lambda records: 1.0 if _kind(records) == request.param else 2.0)
    monkeypatch.setattr(searching, "is_behind", lambda *_: False)
    return request.param


def _kind(records):
    """Which start these records are of: a symmetric one holds the precision of F-FC's input side."""
    first, *_, last = (one["precisions"]["l1.F-FC.w2"] for one in records)
    return "symmetric" if first == last else "relaxed"


def test_starts_are_compared_by_the_evidence_of_the_second_half_of_their_epochs():
    records = [{"best_neg_log_evidence_per_example": one} for one in (9.0, 3.0, 5.0)]
    assert trial.late_evidence([*records, {}]) == 5
    assert trial.late_evidence([{}, *records]) == 4
    assert math.isnan(trial.late_evidence([]))


def test_a_start_is_behind_after_two_evidence_steps_in_a_row_that_are_worse():
    def records(*evidence):
        return [{} if one is None else {"best_neg_log_evidence_per_example": one} for one in evidence]

    first = records(3.0, None, 2.0, 1.0, 1.0)
    assert not trial.is_behind(records(3.2), first)
    assert trial.is_behind(records(3.2, None, 2.2), first)
    assert not trial.is_behind(records(3.2, None, 2.14), first)
    assert not trial.is_behind(records(3.2, None, 2.0, 1.2), first)
    assert trial.is_behind(records(3.2, None, 2.0, 1.2, 1.2), first)
    assert not trial.is_behind([], first)


def test_a_start_that_falls_behind_is_given_up_though_it_was_better_before(small, tmp_path, monkeypatch):
    monkeypatch.setattr(searching, "late_evidence", lambda records: 1.0 if _kind(records) == "symmetric" else 2.0)
    lengths = []

    def behind(records, others):
        lengths.append((len(records), len(others)))
        return len(records) == 2

    monkeypatch.setattr(searching, "is_behind", behind)
    longer = {"search__epochs": 20, "search__every": 2}
    spec = small(search__start="both", **longer)
    heard = Listening()
    assert runner.search(spec, device="cpu", out=tmp_path / "run", callbacks=[heard])["start"] == "relaxed"
    assert lengths == [(1, 4), (2, 4)]
    assert any(note.endswith("1.0000 from a symmetric one, given up after 2 epochs") for note in heard.notes)
    runner.search(small(search__start="relaxed", **longer), device="cpu", out=tmp_path / "one")
    assert timeless(tmp_path / "run")[2] == timeless(tmp_path / "one")[2]


def test_a_start_that_is_hardly_better_is_not_taken(small, tmp_path, monkeypatch):
    evidence = iter((2.0, 1.86))
    monkeypatch.setattr(searching, "late_evidence", lambda records: next(evidence))
    assert runner.search(small(**BOTH), device="cpu", out=tmp_path / "run")["start"] == "relaxed"


def test_without_evidence_in_the_trial_the_first_start_stays(small, tmp_path):
    spec = small(search__start="both", search__epochs=10, search__burnin=9)
    assert runner.search(spec, device="cpu", out=tmp_path / "run")["start"] == "relaxed"


def test_a_search_goes_on_from_the_start_of_the_better_evidence(small, tmp_path, better):
    told = Epochs()
    runner.search(small(**BOTH), device="cpu", out=tmp_path / "both", callbacks=[told])
    runner.search(small(search__start=better, **EPOCHS), device="cpu", out=tmp_path / "one")
    result, metrics, weights, _ = timeless(tmp_path / "both")
    compared = [one.pop("best_neg_log_evidence_per_example", None) for one in metrics]
    assert (result, metrics, weights) == timeless(tmp_path / "one")[:3]
    assert None not in compared[:2]
    assert not any(compared[2:])
    assert read(tmp_path / "both", "result.json")["start"] == better
    assert told.told == [1, 2, *([1, 2] if better == "symmetric" else []), *range(3, 11)]


@pytest.mark.parametrize("interrupt", [Interrupting(1), InterruptingTheTrial(), Interrupting(3)])
def test_an_interrupted_trial_ends_like_an_uninterrupted_one(small, tmp_path, better, interrupt):
    runner.search(small(**BOTH), device="cpu", out=tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        runner.search(small(**BOTH), device="cpu", out=tmp_path / "broken", callbacks=[interrupt])
    runner.search(device="cpu", resume=tmp_path / "broken")
    assert timeless(tmp_path / "broken") == timeless(tmp_path / "whole")


def test_a_search_that_is_interrupted_as_it_goes_over_to_the_other_start_chooses_it_again(small, tmp_path, monkeypatch):
    evidence = {"relaxed": 2.0, "symmetric": 1.0}
    monkeypatch.setattr(searching, "late_evidence", lambda records: evidence[_kind(records)])
    monkeypatch.setattr(searching, "is_behind", lambda *_: False)
    runner.search(small(**BOTH), device="cpu", out=tmp_path / "whole")
    honest = searching._Run._rewrite_metrics

    def interrupted(self, records):
        honest(self, records)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(searching._Run, "_rewrite_metrics", interrupted)
        with pytest.raises(KeyboardInterrupt):
            runner.search(small(**BOTH), device="cpu", out=tmp_path / "broken")
    runner.search(device="cpu", resume=tmp_path / "broken")
    assert read(tmp_path / "broken", "result.json")["start"] == "symmetric"
    assert timeless(tmp_path / "broken") == timeless(tmp_path / "whole")


def test_what_the_start_that_is_left_prunes_is_not_told(small, tmp_path, monkeypatch, better):
    honest = Structure.evidence_step

    def pruning(self):
        self.note(f"{'relaxed' if self.trainer.parameters['l1.F-FC.w1'].any() else 'symmetric'} note")
        return honest(self)

    monkeypatch.setattr(Structure, "evidence_step", pruning)
    heard = Listening()
    runner.search(small(**BOTH), device="cpu", out=tmp_path / "run", callbacks=[heard])
    assert ("symmetric note" in heard.notes) == (better == "symmetric")


def test_what_is_told_after_the_trial_is_heard_from_either_start(small, tmp_path, monkeypatch, better):
    step = Structure.evidence_step

    def telling(structure):
        structure.note(f"in epoch {structure.trainer.epoch + 1}")
        return step(structure)

    monkeypatch.setattr(Structure, "evidence_step", telling)
    heard = Listening()
    runner.search(small(**BOTH), device="cpu", out=tmp_path / "run", callbacks=[heard])
    assert "in epoch 10" in heard.notes


def test_burn_in_comes_before_the_trial(small, tmp_path):
    heard = Listening()
    spec = small(search__start="both", search__epochs=12, search__burnin=2, search__every=2)
    runner.search(spec, device="cpu", out=tmp_path / "run", callbacks=[heard])
    assert "trying a symmetric start, too, for at most 4 epochs" in heard.notes
    assert any("from a symmetric one" in note for note in heard.notes)


def test_a_trial_without_evidence_says_none(small, tmp_path):
    heard = Listening()
    spec = small(search__start="both", search__epochs=10, search__every=1000)
    runner.search(spec, device="cpu", out=tmp_path / "run", callbacks=[heard])
    assert "going on from the relaxed start" in heard.notes


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
    assert "best_neg_log_evidence_per_example" not in (second / "metrics.jsonl").read_text()


def test_a_baseline_has_no_start(small, tmp_path):
    result = runner.search(small(), device="cpu", out=tmp_path / "run", objective="map")
    assert result["start"] is None
