import json
import math
import shutil
from datetime import datetime

import pytest
import torch
from safetensors.torch import load_file

from symdsl import data, runner
from symdsl.diagnostics import NumericalError, RunError
from symdsl.nn import Network
from symdsl.progress import Callback
from symdsl.render import image
from symdsl.report import report_html
from symdsl.runner import searching, training
from symdsl.runner.loggers import TensorBoardLogger
from symdsl.runner.structure import LEAST_PRECISION
from symdsl.runner.training import Trainer
from symdsl.spec import parse

pytestmark = pytest.mark.usefixtures("fitted")

FILES = {
    *("spec.sym", "run.json", "graph.json", "metrics.jsonl", "result.json", "learned.sym", "model.safetensors"),
    "posterior.safetensors",
    "predictions.safetensors",
    *("checkpoint.json", "checkpoint.safetensors", "checkpoint.previous.json", "checkpoint.previous.safetensors"),
    *("architecture.dot", "architecture.svg", "architecture.png"),
}


class Interrupting(Callback):
    """Presses Ctrl-C after an epoch."""

    def __init__(self, after):
        self.after = after

    def on_epoch(self, metrics):
        if metrics["epoch"] == self.after:
            raise KeyboardInterrupt


class Listening(Callback):
    """Keeps what it is told."""

    def __init__(self):
        self.notes = []

    def on_note(self, text):
        self.notes.append(text)


def read(folder, name):
    return json.loads((folder / name).read_text())


def timeless(folder):
    """A run's numbers, without its times."""
    result = read(folder, "result.json")
    del result["wall_s"]
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    for line in lines:
        del line["wall_s"]
    return result, lines, (folder / "model.safetensors").read_bytes(), (folder / "learned.sym").read_text()


def test_a_run_leaves_everything_it_promises(small, tmp_path):
    result = runner.search(small(), device="cpu", out=tmp_path / "run")
    assert {path.name for path in (tmp_path / "run").iterdir()} - {".lock"} == FILES
    assert read(tmp_path / "run", "run.json")["status"] == "finished"
    written = read(tmp_path / "run", "result.json")
    assert written == json.loads(json.dumps(result.content))
    assert written["objective"] == "laplace"
    assert written["epochs"] == 4
    assert [layer["name"] for layer in written["layers"]] == ["l1", "l2", "h1"]
    for layer in written["layers"]:
        assert math.fsum(one["relative"] for one in layer["candidates"]) == pytest.approx(1)
        assert layer["chosen"] in layer["kept"]
        for one in layer["candidates"]:
            assert one["normalised"] == pytest.approx(one["effective"] / one["parameters"])
    seconds = dict(written["wall_s"])
    assert seconds.pop("total") == pytest.approx(sum(seconds.values()))


def test_the_spec_in_the_folder_reproduces_the_run(small, tmp_path):
    runner.search(small(search__epochs=2), device="cpu", out=tmp_path / "a", seed=5)
    again = parse((tmp_path / "a" / "spec.sym").read_text(), source="small.sym")
    runner.search(again, device="cpu", out=tmp_path / "b")
    assert timeless(tmp_path / "a") == timeless(tmp_path / "b")


def test_the_learned_spec_is_a_spec(small, tmp_path):
    result = runner.search(small(search__epochs=2), device="cpu", out=tmp_path / "run")
    learned = parse((tmp_path / "run" / "learned.sym").read_text())
    found = {
        node.name: {one.name for one in node.candidates}
        for node in learned.facts.network.nodes[1:]
        if hasattr(node, "candidates")
    }
    assert found == {layer["name"]: set(layer["kept"]) for layer in result["layers"]}


def test_another_seed_gives_another_run(small, tmp_path):
    for seed in (1, 2):
        runner.search(small(search__epochs=1), device="cpu", out=tmp_path / str(seed), seed=seed)
    assert timeless(tmp_path / "1")[2] != timeless(tmp_path / "2")[2]


def assert_ends_alike(spec, folder, *callbacks):
    """A run in `folder` that is interrupted, then resumed, ends as the uninterrupted one in `folder / "whole"`."""
    broken = folder / "broken"
    with pytest.raises(KeyboardInterrupt):
        runner.search(spec, device="cpu", out=broken, callbacks=callbacks)
    assert read(broken, "run.json")["status"] == "interrupted"
    runner.search(spec, device="cpu", resume=broken)
    assert timeless(broken) == timeless(folder / "whole")
    shutil.rmtree(broken)


@pytest.mark.parametrize(
    "settings",
    [
        {"search__prior_optimizer": "mackay(damping = 0.2)", "search__every": 1},
        {"search__objective": "laplace(kfac)", "search__every": 2, "search__burnin": 1},
        {"search__start": "symmetric", "search__every": 3, "search__examples": 16},
    ],
)
def test_an_interrupted_run_ends_like_an_uninterrupted_one(small, tmp_path, settings):
    spec = small(**settings)
    runner.search(spec, device="cpu", out=tmp_path / "whole")
    for after in (1, 2, 3):
        assert_ends_alike(spec, tmp_path, Interrupting(after))


def test_an_interrupted_run_of_many_examples_ends_like_an_uninterrupted_one(small, tmp_path, monkeypatch):
    monkeypatch.setattr(training, "FEW_EXAMPLES", 1)
    spec = small(search__objective="laplace(kfac)", search__start="symmetric", search__every=2)
    runner.search(spec, device="cpu", out=tmp_path / "whole")
    for after in (1, 3):
        assert_ends_alike(spec, tmp_path, Interrupting(after))


def test_an_interrupted_run_is_augmented_like_an_uninterrupted_one(small, tmp_path):
    spec = parse(small().text().replace("|> standardize", "|> standardize |> augment(flip, shift = 1)"))
    runner.search(spec, device="cpu", out=tmp_path / "whole")
    for after in (1, 3):
        assert_ends_alike(spec, tmp_path, Interrupting(after))
    runner.search(small(), device="cpu", out=tmp_path / "plain")
    assert timeless(tmp_path / "plain")[2] != timeless(tmp_path / "whole")[2]


def test_a_run_interrupted_within_an_epoch_resumes_from_the_last_whole_one(small, tmp_path, monkeypatch):
    runner.search(small(), device="cpu", out=tmp_path / "whole")
    honest, steps = Trainer._train_step, []

    def interrupting(self, batch, examples):
        steps.append(batch)
        if len(steps) == 5:
            raise KeyboardInterrupt
        return honest(self, batch, examples)

    monkeypatch.setattr(Trainer, "_train_step", interrupting)
    assert_ends_alike(small(), tmp_path)


def test_a_run_interrupted_before_its_first_checkpoint_can_be_resumed(small, tmp_path, monkeypatch):
    runner.search(small(), device="cpu", out=tmp_path / "whole")
    honest = Trainer.train_epoch

    def interrupting(self, after_step):
        monkeypatch.setattr(Trainer, "train_epoch", honest)
        raise KeyboardInterrupt

    monkeypatch.setattr(Trainer, "train_epoch", interrupting)
    assert_ends_alike(small(), tmp_path)


def test_map_leaves_the_priors_and_search_moves_them(small, tmp_path):
    fixed = runner.search(small(search__start="symmetric"), device="cpu", out=tmp_path / "map", objective="map")
    learned = runner.search(small(), device="cpu", out=tmp_path / "laplace")
    precisions = [one["precision"] for layer in fixed["layers"] for one in layer["candidates"]]
    assert {value for tensors in precisions for value in tensors} == {1.0}
    moved = [one["precision"] for layer in learned["layers"] for one in layer["candidates"]]
    assert min(value for tensors in moved for value in tensors) >= LEAST_PRECISION
    assert sum(value > LEAST_PRECISION for tensors in moved for value in tensors) > 1
    assert math.isfinite(fixed["neg_log_evidence_per_example"])


@pytest.mark.parametrize(
    "objectives",
    [
        ("kfac(expand)", "kfac(reduce)"),
        ("kfac, fisher = mc(1)", "kfac, fisher = exact"),
        ("kfac", "joint"),
    ],
)
def test_the_spec_says_how_the_curvature_is_taken(small, tmp_path, objectives):
    first, second = (
        runner.search(small(search__objective=f"laplace({objective})"), device="cpu", out=tmp_path / str(number))
        for number, objective in enumerate(objectives)
    )
    assert first["neg_log_evidence_per_example"] != second["neg_log_evidence_per_example"]
    assert math.isfinite(second["neg_log_evidence_per_example"])


def test_no_evidence_is_computed_during_burn_in(small, tmp_path):
    runner.search(small(search__burnin=2, search__every=1), device="cpu", out=tmp_path / "run")
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert ["precisions" in line for line in lines] == [False, False, True, True]


def test_test_data_decide_nothing(small, tmp_path, monkeypatch):
    honest = data.load

    def scrambled(spec, watch, given):
        dataset = honest(spec, watch=watch, given=given)
        return data.Dataset(dataset.train, data.Examples(dataset.test.x.flip(0), dataset.test.y), dataset.task)

    runner.search(small(), device="cpu", out=tmp_path / "a")
    monkeypatch.setattr(data, "load", scrambled)
    runner.search(small(), device="cpu", out=tmp_path / "b")
    a, b = read(tmp_path / "a", "result.json"), read(tmp_path / "b", "result.json")
    assert a["test"] != b["test"]
    assert a["layers"] == b["layers"]
    assert a["neg_log_evidence_per_example"] == b["neg_log_evidence_per_example"]


def test_an_epoch_that_fails_is_tried_once_more_at_half_the_rate(small, tmp_path, monkeypatch):
    monkeypatch.setattr(searching, "_SAVING_SHARE", math.inf)
    honest, calls = Trainer.train_epoch, []

    def failing_once(self, after_step):
        calls.append(self.epoch)
        if len(calls) == 3:
            for parameter in self.net.parameters():
                parameter.data.fill_(torch.nan)
        return honest(self, after_step)

    monkeypatch.setattr(Trainer, "train_epoch", failing_once)
    result = runner.search(small(), device="cpu", out=tmp_path / "run")
    assert calls == [0, 1, 2, 2, 3]
    assert math.isfinite(result["test"]["nll"])
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert [line["epoch"] for line in lines] == [1, 2, 3, 4]
    assert lines[2]["lr"] < 0.6 * lines[1]["lr"]


def test_a_spec_keeps_its_name_under_another_seed_and_when_it_is_resumed(small, tmp_path):
    spec = parse(small().text(), name="tiny")
    runner.search(spec, device="cpu", out=tmp_path / "whole", seed=3)
    with pytest.raises(KeyboardInterrupt):
        runner.search(spec, device="cpu", out=tmp_path / "run", seed=3, callbacks=[Interrupting(1)])
    result = runner.search(device="cpu", resume=tmp_path / "run")
    assert result["spec"] == result.spec.name == "tiny"
    assert runner.load_run(tmp_path / "run", device="cpu").spec.name == "tiny"
    drawn = (tmp_path / "run" / "architecture.dot").read_text()
    assert drawn.startswith("digraph tiny ")
    assert (tmp_path / "run" / "graph.json").read_text() == (tmp_path / "whole" / "graph.json").read_text()


def test_runs_that_differ_in_their_seed_have_different_folders_by_default(small, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    class Stopped(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime(2026, 3, 4, tzinfo=tz)

    monkeypatch.setattr(searching, "datetime", Stopped)
    folders = {runner.search(small(), device="cpu", objective="map", seed=seed).folder.name for seed in (1, 2)}
    assert len(folders) == 2
    assert len({name.partition("-")[0] for name in folders}) == 1


def test_a_path_that_was_pruned_after_the_checkpoint_is_back_when_an_epoch_is_tried_again(small, tmp_path, monkeypatch):
    monkeypatch.setattr(searching, "_SAVING_SHARE", math.inf)
    honest, calls = Trainer.train_epoch, []

    def failing_once(self, after_step):
        calls.append(self.epoch)
        if len(calls) == 3:
            self.prune("l1", "F-FC")
            raise NumericalError("not finite")
        return honest(self, after_step)

    monkeypatch.setattr(Trainer, "train_epoch", failing_once)
    result = runner.search(small(), device="cpu", out=tmp_path / "run")
    assert calls == [0, 1, 2, 2, 3]
    assert result["layers"][0]["kept"] == ["F-FC", "CONV"]


def raising(error):
    """In place of a method: raises an error."""

    def method(self, *arguments):
        raise error

    return method


def test_numbers_that_stay_wrong_end_the_run_with_a_message(small, tmp_path, monkeypatch):
    error = NumericalError("the loss or its gradient is not finite in epoch 1")
    monkeypatch.setattr(Trainer, "train_epoch", raising(error))
    with pytest.raises(NumericalError, match="epoch 1, again at half the learning rate"):
        runner.search(small(), device="cpu", out=tmp_path / "run")
    info = read(tmp_path / "run", "run.json")
    assert info["status"] == "failed"
    assert "epoch 1" in info["reason"]


def test_a_full_disk_during_a_checkpoint_is_one_line_and_keeps_the_earlier_state(small, tmp_path, monkeypatch):
    from symdsl.runs import RunFolder

    spec = small()
    runner.search(spec, device="cpu", out=tmp_path / "whole")
    honest, saved = RunFolder.save_checkpoint, []

    def full(self, state, tensors):
        saved.append(state["epoch"])
        if state["epoch"] >= 3:
            raise RunError("checkpoint.safetensors: cannot be written: No space left on device")
        honest(self, state, tensors)

    monkeypatch.setattr(RunFolder, "save_checkpoint", full)
    with pytest.raises(RunError, match="No space left"):
        runner.search(spec, device="cpu", out=tmp_path / "broken")
    monkeypatch.setattr(RunFolder, "save_checkpoint", honest)
    runner.search(spec, device="cpu", resume=tmp_path / "broken")
    assert timeless(tmp_path / "broken") == timeless(tmp_path / "whole")


def test_a_run_is_resumed_only_as_what_it_was(small, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        runner.search(small(), device="cpu", out=tmp_path / "run", callbacks=[Interrupting(1)])
    with pytest.raises(RunError, match="was started from another spec"):
        runner.search(small(search__epochs=5), device="cpu", resume=tmp_path / "run")
    with pytest.raises(RunError, match="was started with `symdsl search`"):
        runner.search(small(), device="cpu", resume=tmp_path / "run", objective="map")
    runner.search(small(), device="cpu", resume=tmp_path / "run")
    with pytest.raises(RunError, match="finished"):
        runner.search(small(), device="cpu", resume=tmp_path / "run")
    with pytest.raises(RunError, match="holds a run that is finished"):
        runner.search(small(), device="cpu", out=tmp_path / "run")


def test_changed_data_are_noticed_on_resume(small, tmp_path, monkeypatch):
    with pytest.raises(KeyboardInterrupt):
        runner.search(small(), device="cpu", out=tmp_path / "run", callbacks=[Interrupting(1)])
    monkeypatch.setattr(data, "fingerprint", lambda dataset: "other")
    with pytest.raises(RunError, match="not those the run was started with"):
        runner.search(small(), device="cpu", resume=tmp_path / "run")


def test_evaluation_repeats_the_test_metrics(small, tmp_path):
    result = runner.search(small(), device="cpu", out=tmp_path / "run")
    assert runner.evaluate(tmp_path / "run", device="cpu") == pytest.approx(result["test"], rel=1e-6)
    other = runner.evaluate(tmp_path / "run", {"data.test": 60}, device="cpu")
    assert other != pytest.approx(result["test"], rel=1e-6)


def test_evaluation_of_weights_that_do_not_fit_is_one_line(small, tmp_path):
    runner.search(small(search__epochs=1), device="cpu", out=tmp_path / "run")
    with pytest.raises(RunError, match="the data hold the label 3, but the run has learned 3 classes"):
        runner.evaluate(tmp_path / "run", {"data.classes": 4}, device="cpu")
    info = read(tmp_path / "run", "run.json")
    del info["sha256"]  # as runs of before checksums were kept
    (tmp_path / "run" / "run.json").write_text(json.dumps(info))
    (tmp_path / "run" / "model.safetensors").write_bytes(b"no tensors")
    with pytest.raises(RunError, match="does not hold the weights of this network"):
        runner.evaluate(tmp_path / "run", device="cpu")


def test_the_weights_are_keyed_like_the_precisions(small, tmp_path):
    runner.search(small(search__epochs=1), device="cpu", out=tmp_path / "run")
    assert set(load_file(tmp_path / "run" / "model.safetensors")) == {
        *("l1.F-FC.w1", "l1.F-FC.w2", "l1.CONV.w", "l1.bias", "l2.F-FC.w1", "l2.F-FC.w2", "l2.CONV.w", "l2.bias"),
        *("h1.FC.w", "h1.bias"),
    }


def test_wrong_arguments_are_named(small):
    with pytest.raises(ValueError, match="`objective`"):
        runner.search(small(), objective="evidence")
    with pytest.raises(ValueError, match="`device`"):
        runner.search(small(), device="gpu")


def test_no_gpu_is_an_error_and_never_a_silent_cpu_run(small, tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(RunError, match="none is available here"):
        runner.search(small(), device="cuda", out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_probe_says_what_a_batch_costs(small):
    found = runner.probe(small(), "cpu")
    assert found["device"] == "cpu"
    assert found["forward and backward, 16 examples"].endswith(" ms")


EXHAUSTED = (
    torch.OutOfMemoryError("CUDA out of memory"),
    RuntimeError("[enforce fail at alloc_cpu.cpp:127] DefaultCPUAllocator: can't allocate memory"),
    MemoryError(),
)


@pytest.mark.parametrize("error", EXHAUSTED, ids=["cuda", "cpu", "python"])
def test_memory_that_does_not_suffice_is_one_line(small, tmp_path, monkeypatch, error):
    monkeypatch.setattr(Trainer, "train_epoch", raising(error))
    with pytest.raises(RunError, match=r"lower `search\.batch`"):
        runner.search(small(), device="cpu", out=tmp_path / "run")
    assert read(tmp_path / "run", "run.json")["status"] == "failed"


@pytest.mark.parametrize("error", EXHAUSTED, ids=["cuda", "cpu", "python"])
def test_memory_that_does_not_suffice_for_a_probe_is_one_line(small, monkeypatch, error):
    monkeypatch.setattr(Network, "forward", raising(error))
    with pytest.raises(RunError, match="cpu: out of memory for one batch of 16 examples"):
        runner.probe(small(), "cpu")


def test_memory_that_does_not_suffice_to_resume_is_not_taken_for_a_wrong_checkpoint(small, tmp_path, monkeypatch):
    with pytest.raises(KeyboardInterrupt):
        runner.search(small(), device="cpu", out=tmp_path / "run", callbacks=[Interrupting(1)])

    monkeypatch.setattr(Trainer, "restore", raising(EXHAUSTED[0]))
    with pytest.raises(RunError, match=r"lower `search\.batch`"):
        runner.search(device="cpu", resume=tmp_path / "run")


def test_a_search_from_one_example_ends_without_a_warning(small, tmp_path):
    spec = small(data__train=1, search__epochs=2, search__burnin=0, search__every=1)
    assert runner.search(spec, device="cpu", out=tmp_path / "run")["epochs"] == 2


def test_an_error_of_torch_that_is_not_for_want_of_memory_is_not_hidden(small, tmp_path, monkeypatch):
    monkeypatch.setattr(Trainer, "train_epoch", raising(RuntimeError("a size is wrong")))
    with pytest.raises(RuntimeError, match="a size is wrong"):
        runner.search(small(), device="cpu", out=tmp_path / "run")


def test_weights_that_go_wrong_before_an_evidence_step_are_tried_again_at_half_the_rate(small, tmp_path, monkeypatch):
    honest, poisoned = Trainer._train_step, []

    def poisoning(self, own, examples):
        found = honest(self, own, examples)
        if not poisoned:
            poisoned.append(self.step)
            with torch.no_grad():
                next(self.net.parameters()).fill_(math.nan)
        return found

    monkeypatch.setattr(Trainer, "_train_step", poisoning)
    heard = Listening()
    spec = small(search__every=1, search__objective="laplace(kfac, fisher = mc(1))")
    runner.search(spec, device="cpu", out=tmp_path / "run", callbacks=[heard])
    assert any("outputs are not finite" in note and "half the learning rate" in note for note in heard.notes)


@pytest.mark.parametrize(("rate", "learns"), [(0.1, True), (1e-9, False)])
def test_a_network_that_does_not_learn_is_remarked_on_once(small, tmp_path, rate, learns):
    listening = Listening()
    spec = small(search__epochs=12, search__optimizer=f"adam(lr = {rate})")
    runner.search(spec, device="cpu", out=tmp_path, objective="map", callbacks=[listening])
    notes = [("after 5 epochs" in note, "raise `lr`" in note) for note in listening.notes]
    assert notes == [(True, True)] * (not learns)


@pytest.mark.parametrize("augmented", [False, True])
def test_a_run_on_mapped_data_is_that_on_data_in_memory(small, tmp_path, monkeypatch, augmented):
    change = "|> standardize |> augment(flip, shift = 1)" if augmented else "|> standardize"
    spec = parse(small().text().replace("|> standardize", change))
    expected = runner.search(spec, device="cpu", out=tmp_path / "memory")
    monkeypatch.setattr("symdsl.data.memory.free_memory", lambda: 5000)
    listening = Listening()
    with pytest.raises(KeyboardInterrupt):
        runner.search(spec, device="cpu", out=tmp_path / "mapped", callbacks=[Interrupting(2)])
    found = runner.search(spec, device="cpu", resume=tmp_path / "mapped", callbacks=[listening])
    assert timeless(found.folder) == timeless(expected.folder)
    assert any("are mapped from files without a name" in note for note in listening.notes)
    assert runner.evaluate(found.folder, device="cpu") == {
        name: value for name, value in expected["test"].items() if value is not None
    }


def test_a_search_without_graphviz_ends_with_a_result_and_says_why_there_is_no_picture(small, tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(image, "_BY_WHEEL", "import no_such_library")
    heard = Listening()
    callbacks = [heard, TensorBoardLogger()]
    runner.search(small(search__epochs=1), device="cpu", out=tmp_path / "run", callbacks=callbacks)
    assert read(tmp_path / "run", "run.json")["status"] == "finished"
    assert {path.name for path in (tmp_path / "run").glob("architecture.*")} == {"architecture.dot"}
    assert len([text for text in heard.notes if "install Graphviz" in text and "symdsl show" in text]) == 1
    assert "What was learned" in report_html([tmp_path / "run"])
    several = runner.search_seeds(small(search__epochs=1), 2, device="cpu", out=tmp_path / "seeds")
    assert several["finished"] == 2
    assert not (tmp_path / "seeds" / "architecture.svg").exists()
