"""A finished run as a value."""

from __future__ import annotations

import json
from pathlib import Path

import attrs
import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file

import symdsl
from oracles.comparison import assert_same
from runner_specs import SMALL, regression
from symdsl import data, runner
from symdsl.diagnostics import RunError
from symdsl.progress import Callback
from symdsl.runner import model
from symdsl.runner.resuming import Weights
from symdsl.runner.structure import Structure
from symdsl.spec import parse

pytestmark = pytest.mark.usefixtures("fitted")


class Listening(Callback):
    """Keeps what it is told."""

    def __init__(self):
        super().__init__()
        self.notes = []

    def on_note(self, text):
        self.notes.append(text)


@pytest.fixture
def shuffled(tmp_path):
    """A run on shuffled pixels, whose seed is not that of its spec."""
    spec = parse(
        "data synthetic(size = 4, classes = 3, train = 48, test = 24) |> shuffle\n\nnetwork n {\n"
        "  input image(channels, 4, 4)\n  flatten\n  layer h1: FC -> classes\n}\n\nsearch {\n  epochs = 1\n}\n"
    )
    runner.search(spec, seed=5, device="cpu", out=tmp_path / "shuffled")
    return symdsl.load_run(tmp_path / "shuffled", device="cpu")


@pytest.fixture
def run(small, tmp_path):
    runner.search(small(), device="cpu", out=tmp_path / "run")
    return symdsl.load_run(tmp_path / "run", device="cpu")


def test_the_network_is_the_one_that_was_measured(run, small):
    test = data.load(small()).test
    assert run.result == json.loads((run.folder / "result.json").read_text())
    assert run.spec.text() == small().text()
    assert run.classes == ("0", "1", "2")
    plain = run.predict(test.x, calibrated=False)
    assert_same(plain.probabilities, run.network(test.x).detach().double().softmax(1), 1e-9)
    assert plain.nll(test.y) == pytest.approx(run.result["test"]["nll"], rel=1e-6)
    assert plain.calibration_error(test.y) == pytest.approx(run.result["test"]["ece"], rel=1e-6)


def test_pixels_are_shuffled_as_in_the_run(shuffled):
    plain = parse(shuffled.spec.text().replace(" |> shuffle", ""))
    test = data.load(plain, shuffled.result["seed"]).test
    found = shuffled.predict(shuffled.prepare(test.x), calibrated=False)
    assert found.nll(test.y) == pytest.approx(shuffled.result["test"]["nll"], rel=1e-6)


@pytest.mark.parametrize("calibrated", [True, False])
def test_a_network_of_another_type_predicts(run, small, monkeypatch, calibrated):
    posterior = attrs.evolve(run.posterior(), temperature=0.5)
    monkeypatch.setattr(type(run), "posterior", lambda self: posterior)
    test = data.load(small()).test
    expected = run.predict(test.x, calibrated).probabilities
    run.network.double()
    assert_same(run.predict(test.x, calibrated).probabilities, expected, 1e-5)
    assert_same(run.predict(test.x.numpy().astype(float), calibrated).probabilities, expected, 1e-5)


@pytest.mark.parametrize("calibrated", [True, False])
def test_a_network_in_training_mode_predicts_as_in_evaluation(small, tmp_path, monkeypatch, calibrated):
    averaged = "average affine(rotation = 30, samples = 3) {\n  layer l2"
    text = small(search__epochs=1).text().replace("layer l2", averaged).replace("flatten", "}\n  flatten")
    runner.search(parse(text), objective="map", device="cpu", out=tmp_path / "run")
    run = symdsl.load_run(tmp_path / "run", device="cpu")
    posterior = attrs.evolve(run.posterior(), temperature=0.5)
    monkeypatch.setattr(type(run), "posterior", lambda self: posterior)
    x = torch.randn(5, 1, 4, 4)
    expected = run.predict(x, calibrated).probabilities
    run.network.train()
    assert_same(run.predict(x, calibrated).probabilities, expected, 0.0)
    assert run.network.training


def test_a_run_and_its_result_stand_for_their_folder(small, tmp_path):
    result = runner.search(small(search__epochs=1), objective="map", device="cpu", out=tmp_path / "run")
    opened = symdsl.load_run(result, device="cpu")
    assert Path(opened) == tmp_path / "run"
    assert runner.evaluate(opened, device="cpu") == runner.evaluate(tmp_path / "run", device="cpu")


@pytest.mark.parametrize("off", [torch.no_grad, torch.inference_mode])
def test_a_run_predicts_where_derivatives_are_off(run, small, monkeypatch, off):
    posterior = attrs.evolve(run.posterior(), temperature=0.5)
    monkeypatch.setattr(type(run), "posterior", lambda self: posterior)
    test = data.load(small()).test
    expected = run.predict(test.x).probabilities
    with off():
        again = symdsl.load_run(run.folder, device="cpu")
        assert_same(again.predict(test.x + 0).probabilities, expected)


@pytest.mark.parametrize("calibrated", [True, False])
def test_of_no_examples_nothing_is_predicted(run, calibrated):
    wanted = run.model.data.channels, run.model.data.height, run.model.data.width
    found = run.predict(torch.zeros(0, *wanted), calibrated).probabilities
    assert found.shape == (0, len(run.classes))


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int64, torch.bool, torch.complex64])
def test_what_is_no_float_is_refused(run, dtype):
    held = str(dtype).removeprefix("torch.")
    with pytest.raises(RunError, match=f"`x` holds {held}, expected floats, such as `prepare` returns"):
        run.predict(torch.zeros(2, 1, 4, 4, dtype=dtype))


@pytest.mark.parametrize("x", ["abc", None, [[1, 2], [3]], np.zeros((1, 4, 4)).astype(str)])
def test_what_is_no_array_of_numbers_is_refused(run, x):
    for use in (run.predict, run.prepare):
        with pytest.raises(RunError, match=r"^`x` must be a tensor or an array of numbers: "):
            use(x)


def test_masked_values_are_refused(run):
    x = np.ma.masked_array(np.zeros((2, 1, 4, 4), np.float32), np.arange(32).reshape(2, 1, 4, 4) == 5)
    for use in (run.predict, run.prepare):
        with pytest.raises(RunError, match=r"^`x` has masked values: fill them in, or leave their examples out$"):
            use(x)
    assert len(run.prepare(x[1:])) == 1  # none of these is masked


def test_predictions_are_those_of_the_stored_posterior(run, small):
    test = data.load(small()).test
    expected = run.posterior().predict(run.network, test.x).probabilities
    found = run.predict(test.x).probabilities
    assert_same(found, expected, 0.0)
    assert_same(found.sum(1), torch.ones(24).double(), 1e-9)


def test_the_weights_load_by_the_keys_of_the_file(run):
    weights = load_file(run.folder / "model.safetensors")
    assert set(weights) == set(run.network.state_dict()) == set(run.network.tensors())
    with torch.no_grad():
        for parameter in run.network.parameters():
            parameter.zero_()
    assert run.network.load_state_dict(weights).missing_keys == []
    for key, value in run.network.tensors().items():
        assert torch.equal(value, weights[key])


def test_the_keys_follow_a_network_into_another_module(run):
    whole = torch.nn.Sequential(run.network)
    state = whole.state_dict()
    assert "0.l1.CONV.w" in state
    whole.load_state_dict({key: value + 1 for key, value in state.items()})
    assert_same(run.network.tensors()["l1.CONV.w"], state["0.l1.CONV.w"], 2.0)
    assert not torch.equal(run.network.tensors()["l1.CONV.w"], load_file(run.folder / "model.safetensors")["l1.CONV.w"])


def test_the_network_can_be_trained_on(run, small):
    train = data.load(small()).train
    optimizer = torch.optim.SGD(run.network.parameters(), lr=1e-3)
    losses = []
    for _ in range(3):
        loss = torch.nn.functional.cross_entropy(run.network(train.x), train.y)
        losses.append(float(loss.detach()))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert losses[0] > losses[1] > losses[2]


def pruned(small, monkeypatch, out):
    """A run that has pruned a path."""

    def idle(self, effective, gain_without):
        if "F-FC" in dict(self.trainer.net.layers())["l1"].pruned:
            return []
        self.trainer.prune("l1", "F-FC")
        return ["l1.F-FC"]

    monkeypatch.setattr(Structure, "_prune", idle)
    runner.search(small(), device="cpu", out=out)
    return symdsl.load_run(out, device="cpu")


def test_paths_that_were_pruned_are_not_in_it(small, tmp_path, monkeypatch):
    run = pruned(small, monkeypatch, tmp_path / "run")
    assert list(dict(run.network.layers())["l1"].paths) == ["CONV"]
    assert not [key for key in run.network.state_dict() if key.startswith("l1.F-FC")]
    assert set(load_file(run.folder / "model.safetensors")) == set(run.network.state_dict())
    test = data.load(small()).test
    assert run.predict(test.x, calibrated=False).nll(test.y) == pytest.approx(run.result["test"]["nll"], rel=1e-6)
    assert runner.evaluate(run.folder, device="cpu")["nll"] == pytest.approx(run.result["test"]["nll"], rel=1e-6)


def test_a_new_run_starts_from_weights_without_some_paths(small, tmp_path, monkeypatch):
    run = pruned(small, monkeypatch, tmp_path / "run")
    found = runner.resuming.Weights.of(run.folder).tensors
    assert bool((found["l1.F-FC.w1"] == 0).all())
    assert_same(found["l1.CONV.w"], run.network.tensors()["l1.CONV.w"], 0.0)


def test_the_file_says_how_the_network_is_built(small, tmp_path, monkeypatch):
    run = pruned(small, monkeypatch, tmp_path / "run")
    with safe_open(run.folder / "model.safetensors", framework="pt") as file:
        told = json.loads(file.metadata()["symdsl"])
    assert told["pruned"] == ["l1.F-FC"]
    assert told["shapes"]["h1.FC.w"] == [3, 1, 12, 1]
    assert told["preprocessing"]["standardize"]["std"][0] > 0
    assert "span" not in json.dumps(told)


def test_a_run_predicts_where_its_data_are_gone(tmp_path):
    x = np.random.default_rng(0).random((24, 1, 4, 4))
    y = np.arange(24) % 2
    np.savez(tmp_path / "data.npz", x_train=x, y_train=y, x_test=x[:6], y_test=y[:6])
    spec = parse(
        f'data arrays("{tmp_path}/data.npz") |> standardize\n\nnetwork n {{\n  input image(1, 4, 4)\n  flatten\n'
        "  layer h1: FC -> classes\n}\n\nsearch {\n  epochs = 2\n}\n"
    )
    test = data.load(spec).test
    result = runner.search(spec, device="cpu", out=tmp_path / "run")
    (tmp_path / "data.npz").unlink()
    run = symdsl.load_run(tmp_path / "run", device="cpu")
    found = run.predict(run.prepare(torch.from_numpy(x[:6])), calibrated=False)
    assert found.nll(test.y) == pytest.approx(result["test"]["nll"], rel=1e-5)
    with pytest.raises(RunError, match=r"expected \(n, 1, 4, 4\)"):
        run.predict(torch.zeros(2, 1, 8, 8))


def test_a_regression_predicts_means_and_deviations(tmp_path, monkeypatch):
    spec, dataset = regression()
    monkeypatch.setattr(data, "load", lambda source, **others: dataset)
    result = runner.search(spec, device="cpu", out=tmp_path / "run")
    run = symdsl.load_run(tmp_path / "run", device="cpu")
    plain, found = (run.predict(dataset.test.x, calibrated) for calibrated in (False, True))
    assert_same(found.mean, plain.mean, 1e-6)
    assert_same(plain.std, torch.full_like(plain.std, result["noise"] ** 0.5), 1e-9)
    assert bool((found.std >= plain.std).all())
    assert plain.nll(dataset.test.y) == pytest.approx(result["test"]["nll"], rel=1e-4)


def test_targets_are_in_the_units_of_predictions(tmp_path):
    rng = np.random.default_rng(0)
    x, y = rng.random((24, 1, 4, 4)), 30 + 10 * rng.random((24, 2))
    np.savez(tmp_path / "data.npz", x_train=x, y_train=y, x_test=x[:6], y_test=y[:6])
    spec = parse(
        f'data arrays("{tmp_path}/data.npz") |> standardize(targets)\n\n'
        "network n {\n  input image(1, 4, 4)\n  flatten\n  layer h1: FC -> classes\n}\n\nsearch {\n  epochs = 2\n}\n"
    )
    result = runner.search(spec, device="cpu", out=tmp_path / "run")
    run, test = symdsl.load_run(tmp_path / "run", device="cpu"), data.load(spec).test
    assert_same(run.targets(test.y), torch.from_numpy(y[:6]), 1e-4)
    found = run.predict(test.x, calibrated=False)
    assert found.nll(run.targets(test.y)) == pytest.approx(result["test"]["nll"], rel=1e-4)


def test_a_last_layer_of_any_kind_has_a_posterior(small, tmp_path):
    head = "lift p4\n  layer l3: GCONV(3) + F-GFC -> classes\n  project mean\n  pool mean\n  flatten\n"
    text = small(search__epochs=2).text().replace("flatten\n", head).replace("  layer h1: FC -> classes\n", "")
    runner.search(parse(text), device="cpu", out=tmp_path / "run")
    run = symdsl.load_run(tmp_path / "run", device="cpu")
    assert {"l3.GCONV.w", "l3.F-GFC.w1", "l3.bias"} <= run.posterior().tensors.keys()
    found = run.predict(torch.randn(2, 1, 4, 4)).probabilities
    assert_same(found.sum(1), torch.ones(2).double())
    (run.folder / "posterior.safetensors").unlink()
    with pytest.raises(
        RunError,
        match=r"missing; `symdsl search --resume .*` writes it again; `--map` or `calibrated=False` predicts without",
    ):
        run.predict(torch.randn(2, 1, 4, 4))


def test_a_kind_that_is_not_installed_is_named(run, monkeypatch):
    monkeypatch.setattr(model, "KINDS", {"F-FC", "FC"})
    for read in (symdsl.load_run, Weights.of):
        with pytest.raises(RunError, match="uses the kind `CONV`, of a package that is not installed here"):
            read(run.folder)


@pytest.mark.parametrize("calibrated", [True, False])
def test_outputs_that_are_not_finite_are_refused(run, calibrated):
    run.network.tensors()["h1.FC.w"].data.mul_(1e4)
    with pytest.raises(RunError, match="not finite: numbers in `x` are too large"):
        run.predict(torch.full((2, 1, 4, 4), 3e38), calibrated)


@pytest.mark.parametrize("name", ["model.safetensors", "posterior.safetensors"])
def test_damaged_files_are_named(run, name):
    content = bytearray((run.folder / name).read_bytes())
    content[-3] ^= 1
    (run.folder / name).write_bytes(bytes(content))
    with pytest.raises(RunError, match=f"{name}: damaged or edited"):
        symdsl.load_run(run.folder, device="cpu").predict(torch.zeros(2, 1, 4, 4))


def test_a_run_that_is_not_finished_is_not_loaded(small, tmp_path):
    class Interrupting(Callback):
        def on_epoch(self, metrics):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        runner.search(small(), device="cpu", out=tmp_path / "run", callbacks=[Interrupting()])
    with pytest.raises(RunError, match="no result yet"):
        symdsl.load_run(Path(tmp_path / "run"))


ANGLES = """
data digits |> rotate(degrees = 90, label = angle) |> subset(60, test = 20) |> standardize |> standardize(targets)

network n {
  input image(1, 8, 8)
  layer l1: F-FC + CONV(3) -> 2 |> relu
  flatten
  layer h: FC -> classes
}

search { start = relaxed epochs = 4 every = 2 batch = 16 }
"""


@pytest.mark.parametrize(("text", "objective"), [(SMALL, None), (SMALL, "map"), (ANGLES, None)])
def test_the_evidence_of_a_run_can_be_had_again(text, objective, tmp_path):
    spec = parse(text)
    result = runner.search(spec, device="cpu", out=tmp_path / "run", objective=objective)
    run = symdsl.load_run(tmp_path / "run", device="cpu")
    assert run.precisions.keys() == run.network.tensors().keys()
    train = data.load(spec).train
    found = symdsl.laplace.fit(run.network, train, "joint", precisions=run.precisions, noise=run.noise)
    per_example = data.load(spec).preprocessing.nats - found.log_evidence() / len(train)
    assert per_example == pytest.approx(result["neg_log_evidence_per_example"], abs=0.05)
