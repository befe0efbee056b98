"""What a run takes over from an earlier one, and what it says of files that were damaged or lost."""

import json
import math
import re
from importlib.metadata import version

import attrs
import numpy as np
import pytest
import torch
from safetensors.torch import load, load_file

from processes import call
from runner.test_search import Interrupting, Listening, timeless
from symdsl import data, lowering, runner
from symdsl.diagnostics import RunError, SpecError
from symdsl.report.reading import read_runs
from symdsl.runner import searching
from symdsl.runner.resuming import Weights
from symdsl.runner.structure import Structure
from symdsl.runs import RunFolder
from symdsl.spec import load as load_spec
from symdsl.spec import parse

pytestmark = pytest.mark.usefixtures("fitted")


def flip(path, place=-1):
    """Flips a bit of a file."""
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(bytes(content))


@pytest.fixture(autouse=True)
def every_epoch(monkeypatch):
    """Checkpoints after every epoch, however long they take."""
    monkeypatch.setattr(searching, "_SAVING_SHARE", math.inf)


@pytest.fixture
def broken(small, tmp_path):
    """A run that was interrupted after its third epoch."""
    with pytest.raises(KeyboardInterrupt):
        runner.search(small(), device="cpu", out=tmp_path / "run", callbacks=[Interrupting(3)])
    return tmp_path / "run"


@pytest.fixture
def finished(small, tmp_path):
    """A finished run."""
    return runner.search(small(), device="cpu", out=tmp_path / "run").folder


def resumed(run, spec=None, **options):
    """What is said while a run is resumed."""
    listening = Listening()
    runner.search(spec, device="cpu", resume=run, callbacks=[listening], **options)
    return listening.notes


def test_a_run_goes_on_without_its_spec(small, broken, tmp_path):
    assert resumed(broken) == []
    runner.search(small(), device="cpu", out=tmp_path / "whole")
    assert timeless(broken) == timeless(tmp_path / "whole")


def test_a_spec_is_left_out_only_to_resume(small, broken, tmp_path):
    with pytest.raises(ValueError, match="`spec` can be left out only to resume a run with its own seed"):
        runner.search(out=tmp_path / "new")
    with pytest.raises(ValueError, match="with its own seed"):
        runner.search(resume=broken, seed=3)
    with pytest.raises(ValueError, match="leave `out` and `weights_from` out"):
        runner.search(small(), resume=broken, weights_from=broken)


MOVED = """
data arrays("{path}") |> standardize

network n {{
  input image(1, 4, 4)
  layer l1: F-FC + CONV(3) -> 2 |> relu
  flatten
  layer h: FC -> classes
}}

search {{ epochs = 6 batch = 8 every = 2 }}
"""


def arrays(path, seed=0):
    drawn = np.random.default_rng(seed)
    x, y = drawn.normal(size=(24, 1, 4, 4)).astype(np.float32), np.arange(24) % 3
    path.parent.mkdir(exist_ok=True)
    np.savez(path, x_train=x, y_train=y, x_test=x[:9], y_test=y[:9])
    return path


def test_a_run_goes_on_where_its_data_have_moved(tmp_path):
    path, new, run = arrays(tmp_path / "old" / "a.npz"), tmp_path / "new" / "b.npz", tmp_path / "run"
    spec = parse(MOVED.format(path=path))
    runner.search(spec, device="cpu", out=tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        runner.search(spec, device="cpu", out=run, callbacks=[Interrupting(3)])
    path.rename(arrays(new, seed=1))
    with pytest.raises(SpecError, match="there is no file"):
        resumed(run)
    arrays(path, seed=1)
    with pytest.raises(RunError, match="the data are not those the run was started with"):
        resumed(run, overrides={"data.path": str(path)})
    done = call("search", "--resume", run, "--set", f"data.path={new}", "--device", "cpu", "--quiet")
    assert done.exit_code == 0, done.output
    weights = [load_file(tmp_path / name / "model.safetensors") for name in ("run", "whole")]
    assert all(torch.equal(weights[0][key], one) for key, one in weights[1].items())
    assert str(new) in (run / "spec.sym").read_text()
    assert RunFolder.view(run).is_whole
    told = []
    runner.evaluate(run, device="cpu", tell=told.append)
    assert told == []


def test_only_data_can_have_moved(small, broken):
    for settings in ({"overrides": {"search.epochs": 9}}, {"spec": small(), "overrides": {"data.path": "a"}}):
        with pytest.raises(ValueError, match="`overrides` say where the data of a run are that is resumed"):
            resumed(broken, **settings)


@pytest.mark.parametrize("name", ["spec.sym", "graph.json", "model.safetensors"])
def test_what_evaluates_a_run_names_the_file_that_is_damaged(finished, name):
    flip(finished / name)
    with pytest.raises(RunError, match=rf"run/{name}: damaged or edited, its checksum is not that in run.json"):
        runner.evaluate(finished, device="cpu")


@pytest.mark.parametrize(
    ("name", "use"),
    [
        ("model.safetensors", lambda run: runner.evaluate(run, device="cpu")),
        ("graph.json", lambda run: RunFolder.view(run).read_graph()),
        ("result.json", lambda run: RunFolder.view(run).read_result()),
    ],
)
def test_what_needs_a_missing_file_says_how_it_is_written_again(finished, name, use):
    (finished / name).unlink()
    with pytest.raises(RunError, match=rf"run/{name}: missing; `symdsl search --resume .*run` writes it again"):
        use(finished)
    runner.search(device="cpu", resume=finished)
    assert use(finished)


def test_a_damaged_result_says_how_it_is_written_again(finished):
    (finished / "result.json").write_text("{")
    message = r"run/result.json: damaged, it is not a JSON object; `symdsl search --resume .*run` writes it again"
    with pytest.raises(RunError, match=message):
        RunFolder.view(finished).read_result()
    runner.search(device="cpu", resume=finished)
    assert RunFolder.view(finished).is_whole


def test_the_command_that_is_named_for_a_lost_spec_writes_it_again(finished, tmp_path):
    text = (finished / "spec.sym").read_text()
    own = tmp_path / "own.sym"
    own.write_text(text)
    (finished / "spec.sym").unlink()
    for use in (lambda: runner.evaluate(finished, device="cpu"), lambda: read_runs([finished])):
        with pytest.raises(RunError, match=r"run/spec.sym: missing; `symdsl search SPEC --resume") as refused:
            use()
    (command,) = re.findall(r"`symdsl (search SPEC --resume \S+)`", str(refused.value))
    done = call(*command.replace("SPEC", str(own)).split(), "--device", "cpu", "--quiet")
    assert (done.exit_code, (finished / "spec.sym").read_text()) == (0, text)


def test_every_byte_of_the_weights_counts(finished):
    for place in (0, 100, -200, -1):
        flip(finished / "model.safetensors", place)
        assert RunFolder.view(finished).damaged() == ["model.safetensors"]
        flip(finished / "model.safetensors", place)
    RunFolder.view(finished).refuse_damaged()


@pytest.mark.parametrize("change", [("relu", "tanh"), ("epochs = 4", "epochs = 9"), ("batch = 16\n", "")])
def test_a_run_whose_spec_was_edited_does_not_go_on(broken, change):
    kept = broken / "spec.sym"
    text = kept.read_text()
    assert change[0] in text
    kept.write_text(text.replace(*change))
    message = (
        r"run/spec.sym: damaged or edited, .* `symdsl search SPEC --resume .*run`, with the spec and options it was"
    )
    with pytest.raises(RunError, match=message):
        runner.search(device="cpu", resume=broken)
    assert len((broken / "metrics.jsonl").read_text().splitlines()) == 3


def test_the_spec_it_was_started_from_mends_a_run(small, broken, tmp_path):
    (broken / "spec.sym").write_bytes(b"\xff nothing")
    with pytest.raises(RunError, match=r"run/spec.sym: damaged or edited"):
        runner.search(small(search__epochs=9), device="cpu", resume=broken)
    assert resumed(broken, small()) == [f"{broken / 'spec.sym'} was damaged; it is written again"]
    assert (broken / "spec.sym").read_text() == small().text()
    RunFolder.view(broken).refuse_damaged()


def test_a_missing_spec_is_said_to_be_missing(small, broken):
    (broken / "spec.sym").unlink()
    with pytest.raises(RunError, match=r"run/spec.sym: missing; `symdsl search SPEC --resume"):
        runner.search(device="cpu", resume=broken)
    assert resumed(broken, small()) == [f"{broken / 'spec.sym'} was missing; it is written again"]


def test_another_spec_is_told_both_ways_on(small, broken):
    ways = r"`--resume .*run` without a spec continues with its own, `symdsl search SPEC --from .*run` starts a new run"
    with pytest.raises(RunError, match=f"run: was started from another spec; {ways}"):
        runner.search(small(search__epochs=9), device="cpu", resume=broken)


def test_a_lost_result_is_written_again(small, tmp_path):
    run = runner.search(small(), device="cpu", out=tmp_path / "run").folder
    before = timeless(run)
    (run / "learned.sym").write_text("// a copy that somebody works on\n")
    with pytest.raises(RunError, match="there is nothing to resume"):
        runner.search(device="cpu", resume=run)
    for name in ("result.json", "model.safetensors", "learned.sym", "architecture.svg"):
        (run / name).unlink()
        assert "the run was finished; its result is written again" in resumed(run)
        assert timeless(run) == before
    flip(run / "model.safetensors")
    assert resumed(run)[0] == f"{run / 'model.safetensors'} was damaged; it is written again"
    assert timeless(run) == before
    with pytest.raises(RunError, match="this run is finished, there is nothing to resume; `symdsl search SPEC --from"):
        runner.search(device="cpu", resume=run)


def test_a_refused_resume_leaves_a_run_as_it_was(small, broken):
    before = (broken / "run.json").read_bytes()
    with pytest.raises(RunError, match="was started with `symdsl search`; resume it with that"):
        runner.search(device="cpu", resume=broken, objective="map")
    assert (broken / "run.json").read_bytes() == before


def test_a_resume_that_fails_once_it_was_accepted_is_told(small, broken):
    class Full:
        def on_start(self, folder, epochs, done):
            raise RunError("disk is full")

    with pytest.raises(RunError, match="disk is full"):
        runner.search(device="cpu", resume=broken, callbacks=[Full()])
    assert json.loads((broken / "run.json").read_text())["reason"] == "disk is full"


def test_lost_metrics_are_told(small, broken):
    metrics = broken / "metrics.jsonl"
    kept = metrics.read_bytes()
    metrics.write_bytes(kept[: len(kept) // 2])
    assert resumed(broken) == ["metrics.jsonl has lost the metrics of epochs 2 to 3"]
    assert [json.loads(line)["epoch"] for line in metrics.read_text().splitlines()] == [1, 4]


def test_a_damaged_line_of_the_metrics_does_not_keep_a_run_from_going_on(broken):
    metrics = broken / "metrics.jsonl"
    first, _, third = metrics.read_bytes().splitlines(keepends=True)
    metrics.write_bytes(first + b"[" * 100_000 + b"\n" + third)
    with pytest.raises(RunError, match="damaged, line 2 is not the record of an epoch"):
        RunFolder.view(broken).read_metrics()
    assert resumed(broken) == ["metrics.jsonl has lost the metrics of epoch 2"]
    assert [json.loads(line)["epoch"] for line in metrics.read_text().splitlines()] == [1, 3, 4]


def test_a_run_that_is_finished_stays_so_whatever_a_callback_does_then(small, tmp_path):
    class Impatient:
        def on_finish(self, result):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        runner.search(small(), device="cpu", out=tmp_path / "run", callbacks=[Impatient()])
    assert RunFolder.view(tmp_path / "run").status == "finished"


def test_a_run_that_a_callback_ends_is_noted_as_interrupted_and_goes_on(small, tmp_path):
    class Faulty:
        def on_epoch(self, record):
            if record["epoch"] == 2:
                raise KeyError("accuracy of class 3")

    with pytest.raises(KeyError, match="class 3"):
        runner.search(small(), device="cpu", out=tmp_path / "run", callbacks=[Faulty()])
    info = RunFolder.view(tmp_path / "run").read_info()
    assert (info["status"], info["reason"]) == ("interrupted", "KeyError: 'accuracy of class 3'")
    runner.search(device="cpu", resume=tmp_path / "run")
    runner.search(small(), device="cpu", out=tmp_path / "whole")
    assert timeless(tmp_path / "run") == timeless(tmp_path / "whole")


def test_a_checkpoint_that_is_damaged_is_told(small, broken, tmp_path):
    flip(broken / "checkpoint.safetensors")
    assert resumed(broken) == ["the newest checkpoint is damaged; continuing from the one before, after epoch 2"]
    runner.search(small(), device="cpu", out=tmp_path / "whole")
    assert timeless(broken) == timeless(tmp_path / "whole")


@pytest.mark.parametrize("key", ["untried", "trainer", "structure", "seconds"])
def test_a_checkpoint_of_another_version_is_told(broken, key):
    with RunFolder.resume(broken) as run:
        state, content = run.load_checkpoint()
        for _ in range(2):
            run.save_checkpoint({name: one for name, one in state.items() if name != key}, content)
    line = f"{broken}: another version of symdsl, which alone can go on from it, wrote the checkpoint"
    with pytest.raises(RunError) as refused:
        runner.search(device="cpu", resume=broken)
    assert str(refused.value) == f"{line}; `symdsl search SPEC --from {broken}` starts a new run from its weights"
    if key == "trainer":
        with pytest.raises(RunError, match=f"^{re.escape(line)}$"):
            Weights.of(broken)


def test_a_run_that_goes_on_with_other_versions_says_so(broken):
    def edited(**versions):
        info = json.loads((broken / "run.json").read_text())
        return info | {"versions": info["versions"] | versions}

    before = edited(torch="1.0.0")
    (broken / "run.json").write_text(json.dumps(before))
    installed = before["versions"] | {"torch": version("torch")}
    assert resumed(broken) == [f"from here on with torch {installed['torch']}, before 1.0.0"]
    info = RunFolder.view(broken).read_info()
    assert info["versions"] == installed
    assert info["earlier"] == [{"until_epoch": 3, "device": "cpu", "versions": before["versions"]}]


@pytest.mark.parametrize("where", ["out", "resume"])
def test_a_folder_that_cannot_be_used_is_told_before_data_are_read(small, finished, where):
    class Reading:
        def on_loading(self, what, done, total):
            raise AssertionError("data are read")

    with pytest.raises(RunError, match=r"run that is finished|this run is finished"):
        runner.search(small(), device="cpu", callbacks=[Reading()], **{where: finished})


def test_data_that_cannot_be_read_leave_no_folder(tmp_path):
    spec = parse(
        "data given(channels = 1, size = 2, classes = 2)\nnetwork n { input image(1, 2, 2)\nflatten\nlayer h: FC -> 2 }"
    )
    with pytest.raises(RunError, match="are handed over in Python"):
        runner.search(spec, device="cpu", out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_an_interruption_while_data_are_read_leaves_no_folder(small, tmp_path, monkeypatch):
    class Impatient:
        def on_loading(self, what, done, total):
            raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        runner.search(small(), device="cpu", callbacks=[Impatient()])
    assert list(tmp_path.iterdir()) == []


def test_a_run_without_a_checkpoint_is_told_to_have_none(broken):
    for name in ("checkpoint.json", "checkpoint.previous.json", "spec.sym"):
        (broken / name).unlink()
    with pytest.raises(RunError, match="the run was interrupted; it left no checkpoint to continue from"):
        runner.search(device="cpu", resume=broken)


def test_a_new_run_starts_from_the_weights_of_another(small, finished, tmp_path):
    listening = Listening()
    spec = small(search__epochs=2, search__seed=9)
    new = runner.search(spec, device="cpu", out=tmp_path / "new", weights_from=finished, callbacks=[listening]).folder
    assert listening.notes[0] == f"starts from the weights of {finished}, after its epoch 4"
    info = json.loads((new / "run.json").read_text())
    assert (info["weights_from"], info["status"]) == (str(finished), "finished")
    plain = runner.search(spec, device="cpu", out=tmp_path / "plain").folder
    assert (plain / "model.safetensors").read_bytes() != (new / "model.safetensors").read_bytes()


def test_the_first_checkpoint_of_a_new_run_has_the_weights_it_starts_from(small, finished, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        runner.search(small(), device="cpu", out=tmp_path / "new", weights_from=finished, callbacks=[Interrupting(1)])
    (tmp_path / "new" / "checkpoint.json").unlink()  # what is left is the one before the first epoch
    state, content = RunFolder.view(tmp_path / "new").load_checkpoint()
    assert state["epoch"] == 0
    for key, tensor in load_file(finished / "model.safetensors").items():
        assert load(content)[f"parameter/{key}"].equal(tensor)


def test_a_run_from_weights_goes_on_like_an_uninterrupted_one(small, broken, tmp_path):
    for folder, callbacks in (("whole", []), ("again", [Interrupting(2)])):
        try:
            runner.search(small(), device="cpu", out=tmp_path / folder, weights_from=broken, callbacks=callbacks)
        except KeyboardInterrupt:
            assert folder == "again"
    assert resumed(tmp_path / "again") == []
    assert timeless(tmp_path / "again") == timeless(tmp_path / "whole")


def test_a_network_of_some_candidates_starts_from_their_weights(small, tmp_path):
    text = small().text().replace("l2: F-FC + CONV(3)", "l2: CONV(1) + CONV(3) + F-FC + FC + FC")
    few = text.replace("l2: CONV(1) + CONV(3) + F-FC + FC + FC", "l2: CONV(3) + FC + FC")
    runner.search(parse(text), device="cpu", out=tmp_path / "run")
    weights, spec = Weights.of(tmp_path / "run"), parse(few)
    net = lowering.compile(spec, 0)
    assert weights.give_to(net, spec.facts.network.layers) == ["l2.CONV(1)", "l2.F-FC"]
    names = {"l2.CONV.w": "l2.CONV(3).w"}  # alone of its kind, it needs no argument in its name
    for key, tensor in net.tensors().items():
        factor = (3 / 5) ** 0.5 if key in ("l2.CONV.w", "l2.FC.w", "l2.FC #2.w") else 1  # the sum is divided by less
        assert torch.equal(tensor, weights.tensors[names.get(key, key)] * factor), key
    one = parse(few.replace("CONV(3) + FC + FC", "CONV(3) + FC"))
    with pytest.raises(
        RunError, match=r"the network of the run has another number of candidates like `l2.FC`"
    ):  # which of the two is meant?
        weights.give_to(lowering.compile(one, 0), one.facts.network.layers)
    heard = Listening()
    runner.search(spec, device="cpu", out=tmp_path / "new", weights_from=tmp_path / "run", callbacks=[heard])
    note = f"starts from the weights of {tmp_path / 'run'}, after its epoch 4, without l2.CONV(1), l2.F-FC"
    assert heard.notes[0] == note


@pytest.mark.parametrize("finished", [True, False])
def test_what_was_pruned_begins_anew(small, tmp_path, monkeypatch, finished):
    prune, pruned = Structure._prune, []

    def pruning(self, effective, gain_without):
        if not pruned:
            pruned.append("l2.F-FC")
            self.trainer.prune("l2", "F-FC")
        return prune(self, effective, gain_without)

    monkeypatch.setattr(Structure, "_prune", pruning)
    monkeypatch.setattr(Structure, "_fits", lambda self, best: True)
    spec = small(search__every=1)
    try:
        runner.search(spec, device="cpu", out=tmp_path / "run", callbacks=[] if finished else [Interrupting(2)])
    except KeyboardInterrupt:
        assert not finished
    weights, net, fresh = Weights.of(tmp_path / "run"), lowering.compile(spec, 5), lowering.compile(spec, 5)
    assert weights.give_to(net, spec.facts.network.layers) == []
    assert weights.beginning_anew(spec.facts.network.layers) == ["l2.F-FC"]
    for key, tensor in net.tensors().items():
        assert torch.equal(tensor, fresh.tensors()[key] if key.startswith("l2.F-FC.") else weights.tensors[key]), key
        assert tensor.any() or key.endswith("bias")
    heard = Listening()
    runner.search(spec, "cpu", tmp_path / "new", objective="map", weights_from=tmp_path / "run", callbacks=[heard])
    assert "pruned there, and beginning anew: l2.F-FC" in heard.notes


def test_what_was_learned_goes_on_from_its_weights(small, finished, tmp_path):
    learned = load_spec(finished / "learned.sym")
    found = runner.search(learned, device="cpu", out=tmp_path / "new", objective="map", weights_from=finished)
    assert found["epochs"] == 4
    first = json.loads((tmp_path / "new" / "metrics.jsonl").read_text().splitlines()[0])
    last = json.loads((finished / "metrics.jsonl").read_text().splitlines()[-1])
    assert first["nll"] < 1.2 * last["nll"]


@pytest.mark.parametrize("kinds", ["F-FC + CONV(3)", "FC + S-FC + CONV(3) + F-FC", "S-CONV(3) + FC"])
def test_a_network_without_what_was_pruned_computes_what_the_run_does(kinds, small, tmp_path):
    text = small().text().replace("l2: F-FC + CONV(3)", f"l2: {kinds}")
    whole = parse(text)
    runner.search(whole, device="cpu", out=tmp_path / "run", objective="map")
    weights, x = Weights.of(tmp_path / "run"), data.load(whole).test.x
    net = lowering.compile(whole, 3)
    weights.give_to(net, whole.facts.network.layers)
    for name in kinds.split(" + ")[1:]:
        net.layer("l2").prune(name.partition("(")[0])
    one = parse(text.replace(f"l2: {kinds}", f"l2: {kinds.split(' + ')[0]}"))
    fewer = lowering.compile(one, 3)
    assert len(weights.give_to(fewer, one.facts.network.layers)) == kinds.count("+")
    torch.testing.assert_close(fewer(x), net(x))


def test_random_features_come_with_the_weights_that_read_them(small, tmp_path):
    text = small().text().replace("flatten\n", "flatten\n  layer r: RFF(lengthscale = 2) -> 12\n")
    for name, seed in (("run", 0), ("other", 5)):
        spec, begun = parse(text), {"weights_from": tmp_path / "run"} if seed else {}
        runner.search(spec, device="cpu", out=tmp_path / name, seed=seed, objective="map", **begun)
    first, other = (load_file(tmp_path / name / "model.safetensors") for name in ("run", "other"))
    for key in ("r.RFF.w", "r.RFF.phase"):
        assert torch.equal(first[key], other[key])


def test_layers_that_use_the_weights_otherwise_are_told(small, finished, tmp_path):
    text = small().text()
    assert text.count("|> relu") > 1
    spec = parse(text.replace("|> relu", "|> tanh", 1))
    heard = Listening()
    runner.search(spec, device="cpu", out=tmp_path / "new", weights_from=finished, callbacks=[heard])
    assert heard.notes[1] == "other strides or activations than there: l1"
    own = small().facts.network.layers
    slower = attrs.evolve(own[1], out_shape=attrs.evolve(own[1].out_shape, height=own[1].in_shape.height * 2))
    weights = Weights.of(finished)
    assert (weights.used_otherwise(own), weights.used_otherwise([own[0], slower])) == ([], ["l2"])


def test_weights_of_another_network_are_refused(small, finished, tmp_path):
    text = small().text()
    wide = parse(text.replace("-> 2 |>", "-> 5 |>"))
    other = parse(text.replace("layer l2: F-FC + CONV(3)", "layer l2: F-FC + CONV(5)"))
    more = parse(text.replace("layer l2: F-FC + CONV(3)", "layer l2: F-FC + CONV(3) + FC"))
    for spec, message in (
        (wide, r"`l1.F-FC.w1` is \[2, 1, 16\] there, but \[5, 1, 16\] here"),
        (more, r"the network of the run has no `l2.FC` as here"),
        (other, r"the network of the run has no `l2.CONV` as here"),
    ):
        with pytest.raises(RunError, match=f"run: its weights do not fit: {message}"):
            runner.search(spec, device="cpu", out=tmp_path / message[:6], weights_from=finished)
        assert not (tmp_path / message[:6]).exists()
    flip(finished / "model.safetensors")
    with pytest.raises(RunError, match=r"model.safetensors: damaged or edited"):
        runner.search(small(), device="cpu", out=tmp_path / "new", weights_from=finished)
