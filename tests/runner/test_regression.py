"""A regression end to end: its figures, the units they are in, and evaluation on other data."""

import json
import math
import re

import numpy as np
import pytest
import torch

from symdsl import data, runner
from symdsl.data import Preprocessing
from symdsl.data.preprocessing import Statistics
from symdsl.diagnostics import RunError
from symdsl.evidence.loss import Gaussian
from symdsl.progress import Callback
from symdsl.runner import searching
from symdsl.runner.estimating import final_laplace
from symdsl.runner.metrics import errors_by_target, evaluate_outputs, explained, noise_std
from symdsl.spec import parse
from symdsl.views import RUN_VIEWS, SEEDS_VIEWS

SPEC = """
data arrays("{path}") |> standardize |> standardize(targets)

network line {{
  input image(1, 2, 3)
  flatten
  layer h1: FC -> classes
}}

search {{
  epochs = {epochs}
  batch = 20
  optimizer = adam(lr = {lr})
}}
"""


def test_map_keeps_the_noise_of_its_last_epoch(tmp_path, monkeypatch):
    found = []

    def final(trainer):
        found.append(trainer)
        return final_laplace(trainer)

    monkeypatch.setattr(searching, "final_laplace", final)
    spec = parse(SPEC.format(path=saved(tmp_path / "a.npz"), epochs=5, lr=0.05))
    result = runner.search(spec, device="cpu", out=tmp_path / "run", objective="map")
    assert result["noise"] == found[0].residual_variance


class Listening(Callback):
    def __init__(self):
        self.notes, self.epochs, self.loaded = [], [], []

    def on_note(self, text):
        self.notes.append(text)

    def on_epoch(self, metrics):
        self.epochs.append(metrics)

    def on_loading(self, what, done, total):
        self.loaded.append(what)


def saved(path, scale=1.0, examples=200, **changes):
    """Targets that are linear in the image, in units of `scale`, with noise of a standard deviation of a tenth."""
    random = np.random.default_rng(0)
    x = random.normal(size=(examples + 50, 2, 3)) + 2
    y = scale * (x.reshape(len(x), -1) @ random.normal(size=6) + 5 + 0.1 * random.normal(size=len(x)))
    arrays = {"x_train": x[:-50], "y_train": y[:-50], "x_test": x[-50:], "y_test": y[-50:]}
    np.savez(path, **(arrays | changes))
    return path


def made(path, epochs=40, lr=0.05, **changes):
    text = SPEC.format(path=path, epochs=epochs, lr=lr)
    for before, after in changes.items():
        text = text.replace(before, after)
    return parse(text)


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    """A finished run on targets in units of a thousand."""
    folder = tmp_path_factory.mktemp("regression")
    path, watcher = saved(folder / "data.npz", scale=1000.0), Listening()
    return runner.search(made(path), device="cpu", out=folder / "run", callbacks=[watcher]), folder, watcher


def test_figures_are_in_the_units_of_the_targets(searched):
    result, folder, _ = searched
    with np.load(folder / "data.npz") as held:
        spread = held["y_test"].std()
    for part in ("train", "test"):
        assert result[part].keys() == {"rmse", "r2", "nll"}
        assert 70 < result[part]["rmse"] < 300
    assert result["test"]["r2"] == pytest.approx(1 - (result["test"]["rmse"] / spread) ** 2)
    assert 70 < result["noise_std"] < 300
    share, noise = (result["test"]["rmse"] / result["noise_std"]) ** 2, result["noise_std"]
    assert result["test"]["nll"] == pytest.approx(0.5 * share + math.log(noise) + 0.5 * math.log(2 * math.pi))
    assert result["neg_log_evidence_per_example"] > result["train"]["nll"]


def test_the_targets_units_change_densities_by_their_logarithm(searched, tmp_path):
    result, _, _ = searched
    small = runner.search(made(saved(tmp_path / "data.npz", scale=1.0)), device="cpu", out=tmp_path / "run")
    assert small["test"]["rmse"] == pytest.approx(result["test"]["rmse"] / 1000, rel=1e-3)
    assert small["test"]["r2"] == pytest.approx(result["test"]["r2"], rel=1e-3)
    for key in ("train", "test"):
        assert result[key]["nll"] - small[key]["nll"] == pytest.approx(math.log(1000), abs=1e-2)
    difference = result["neg_log_evidence_per_example"] - small["neg_log_evidence_per_example"]
    assert difference == pytest.approx(math.log(1000), abs=1e-2)


def test_every_epoch_says_what_is_explained_and_nothing_of_accuracy(searched):
    _, folder, watcher = searched
    lines = [json.loads(line) for line in (folder / "run" / "metrics.jsonl").read_text().splitlines()]
    assert len(lines) == len(watcher.epochs) == 40
    assert all("accuracy" not in line and line["r2"] == pytest.approx(line["fit"], rel=1e-5) for line in lines)
    assert all(line["loss"] > line["nll"] for line in lines[2:])  # by the penalty of the prior
    assert lines[-1]["nll"] == pytest.approx(searched[0]["train"]["nll"], abs=0.3)


def test_table_and_picture_show_the_errors(searched):
    from symdsl.runs import RunFolder

    folder = RunFolder.view(searched[1] / "run")
    table, picture = (RUN_VIEWS[name](folder).decode() for name in ("table", "svg"))
    assert "accuracy" not in table + picture
    assert "ECE" not in table
    for words in ("test: RMSE", "train: RMSE", ", R² ", "noise: standard deviation", "loading"):
        assert words in table
    assert "test RMSE" in picture


def test_several_seeds_show_the_errors(tmp_path):
    from symdsl.runs import SeedsFolder

    spec = made(saved(tmp_path / "data.npz"), epochs=4)
    runner.search_seeds(spec, 2, device="cpu", out=tmp_path / "seeds")
    table = SEEDS_VIEWS["table"](SeedsFolder.view(tmp_path / "seeds")).decode()
    for words in ("test RMSE: ", "test R²: ", "test NLL, nats: ", "train RMSE: ", "noise, standard deviation: "):
        assert words in table
    assert "accuracy" not in table
    assert "test RMSE" in (tmp_path / "seeds" / "architecture.svg").read_text()


def test_loading_is_timed_and_part_of_the_total(searched):
    result, _, watcher = searched
    seconds = result["wall_s"]
    assert 0 < seconds["loading"] < seconds["total"]
    assert seconds["posterior"] > 0
    phases = ("loading", "training", "evidence", "posterior")
    assert seconds["total"] == pytest.approx(sum(seconds[phase] for phase in phases))
    assert watcher.loaded[-1] == "standardize(what = targets)"


def test_loading_again_is_added_to_what_was_loaded_before(tmp_path, monkeypatch):
    class Interrupting(Callback):
        def on_epoch(self, metrics):
            raise KeyboardInterrupt

    spec = made(saved(tmp_path / "data.npz"), epochs=2)
    with pytest.raises(KeyboardInterrupt):
        runner.search(spec, device="cpu", out=tmp_path / "run", callbacks=[Interrupting()])
    state = json.loads((tmp_path / "run" / "checkpoint.json").read_text())["state"]
    result = runner.search(spec, device="cpu", resume=tmp_path / "run")
    assert result["wall_s"]["loading"] > state["seconds"]["loading"] > 0


def test_other_data_are_standardized_as_those_of_the_run_were(searched):
    result, folder, _ = searched
    assert runner.evaluate(folder / "run", device="cpu") == pytest.approx(result["test"], rel=1e-6)
    with np.load(folder / "data.npz") as held:
        arrays = dict(held)
    other = {"x_train": 9 * arrays["x_train"] + 4, "y_train": arrays["y_train"] / 7, "x_test": arrays["x_test"]}
    np.savez(folder / "other.npz", **other, y_test=arrays["y_test"])
    found = runner.evaluate(folder / "run", {"data.path": str(folder / "other.npz")}, device="cpu")
    assert found == pytest.approx(result["test"], rel=1e-6)


def test_a_run_keeps_what_it_standardized_with(searched):
    _, folder, _ = searched
    kept = runner.load_run(folder / "run", "cpu").model.preprocessing
    with np.load(folder / "data.npz") as held:
        assert kept.targets.mean == pytest.approx([held["y_train"].mean()])
        assert kept.targets.std == pytest.approx([held["y_train"].std()])
        assert kept.standardize.mean == pytest.approx([held["x_train"].mean()], rel=1e-6)
    assert kept.classes is None


def test_evaluation_needs_the_files_that_it_is_asked_for_alone(searched, tmp_path):
    _, folder, _ = searched
    (folder / "data.npz").rename(folder / "moved.npz")
    try:
        found = runner.evaluate(folder / "run", {"data.path": str(folder / "moved.npz")}, device="cpu")
        assert found["r2"] > 0.9
    finally:
        (folder / "moved.npz").rename(folder / "data.npz")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"y_test": np.zeros((50, 2)), "y_train": np.zeros((200, 2))},
            "with 1 regression targets, .* with 2 regression",
        ),
        ({"x_test": np.zeros((50, 4, 3)), "x_train": np.zeros((200, 4, 3))}, "images of 1x2x3 .* images of 1x4x3"),
    ],
)
def test_data_that_do_not_fit_the_network_are_one_clear_line(searched, tmp_path, changes, message):
    path = saved(tmp_path / "other.npz", **changes)
    with pytest.raises(RunError, match=f"^the network has learned from .*{message}[^\n]*$"):
        runner.evaluate(searched[1] / "run", {"data.path": str(path)}, device="cpu")


def test_targets_that_are_too_large_are_said_to_be(tmp_path):
    plain = {" |> standardize(targets)": ""}
    with pytest.raises(Exception, match=r"the targets are of the order of \d\.?\d*e\+20.*standardize\(targets\)"):
        runner.search(made(saved(tmp_path / "a.npz", 1e20), **plain), device="cpu", out=tmp_path / "a")
    watcher = Listening()
    spec = made(saved(tmp_path / "b.npz", 1e6), epochs=5, **plain)
    runner.search(spec, device="cpu", out=tmp_path / "b", callbacks=[watcher])
    (note,) = [note for note in watcher.notes if "no better than guess" in note]
    assert "the targets are of the order of" in note
    assert "lower" not in note


def test_targets_far_from_zero_are_said_to_be(tmp_path):
    watcher = Listening()
    y = 60 + 0.5 * np.random.default_rng(0).normal(size=200)
    spec = made(saved(tmp_path / "a.npz", y_train=y), epochs=5, lr=0.01, **{" |> standardize(targets)": ""})
    runner.search(spec, device="cpu", out=tmp_path / "run", callbacks=[watcher])
    (note,) = [note for note in watcher.notes if "no better than guess" in note]
    assert re.search(
        r"a target lies 1[12]\d standard deviations from 0 in the mean: write .*standardize\(targets\)", note
    )


def test_standardized_targets_may_be_of_any_size(tmp_path):
    result = runner.search(made(saved(tmp_path / "a.npz", 1e20)), device="cpu", out=tmp_path / "run")
    assert result["test"]["r2"] > 0.9
    assert 5e18 < result["test"]["rmse"] < 1e20


def test_few_training_steps_are_said_to_be(tmp_path):
    watcher = Listening()
    spec = made(saved(tmp_path / "a.npz"), epochs=5, lr=0.02, **{"batch = 20": "batch = 200"})
    runner.search(spec, device="cpu", out=tmp_path / "run", callbacks=[watcher])
    (note,) = [note for note in watcher.notes if "no better than guess" in note]
    assert note.endswith("these were 5 training steps; a smaller `batch` (=200) or more `epochs` may help")


@pytest.mark.parametrize(("lr", "words"), [(1e-12, r"raise `lr` \(=1e-12\)"), (900, "lower `lr`")])
def test_advice_looks_at_what_the_steps_did(tmp_path, lr, words):
    watcher = Listening()
    spec = made(saved(tmp_path / "a.npz"), epochs=5, lr=lr)
    runner.search(spec, device="cpu", out=tmp_path / "run", callbacks=[watcher])
    (note,) = [note for note in watcher.notes if "no better than guess" in note]
    assert re.search(words, note)


def test_images_that_are_too_large_are_said_to_be(tmp_path):
    watcher = Listening()
    x = np.random.default_rng(0).normal(size=(200, 2, 3)) * 1e5
    spec = made(saved(tmp_path / "a.npz", x_train=x), epochs=5, **{"|> standardize |>": "|>"})
    runner.search(spec, device="cpu", out=tmp_path / "run", callbacks=[watcher])
    (note,) = [note for note in watcher.notes if "no better than guess" in note]
    assert "the images are of the order of 1e+05" in note
    assert note.endswith("write `|> standardize`")


def test_explained_variance_is_a_mean_over_the_targets_that_vary():
    targets = torch.tensor([[0.0, 10.0, 7.0], [2.0, 30.0, 7.0]])
    outputs = torch.tensor([[0.0, 20.0, 0.0], [2.0, 20.0, 0.0]])
    assert explained(outputs, targets) == pytest.approx(0.5)
    assert explained(outputs[:1], targets[:1]) is None


def test_epochs_and_the_result_mean_the_same_by_the_variance_explained(tmp_path):
    random = np.random.default_rng(0)
    x, noise = random.normal(size=(200, 2, 3)), random.normal(size=200)
    y = np.stack([x.sum((1, 2)), 0.2 * noise], 1)
    path = saved(tmp_path / "a.npz", x_train=x, y_train=y, x_test=x, y_test=y)
    result = runner.search(made(path, **{" |> standardize(targets)": ""}), device="cpu", out=tmp_path / "run")
    last = json.loads((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()[-1])
    assert result["train"]["r2"] == pytest.approx(last["r2"], abs=0.1)
    assert last["fit"] > 0.9 > 0.7 > last["r2"]


def test_regression_figures_by_hand():
    preprocessing = Preprocessing(targets=Statistics([5.0, 0.0], [2.0, 10.0]))
    outputs, targets = torch.tensor([[1.0, 0.0], [0.0, 0.0]]), torch.tensor([[0.0, 0.0], [0.0, 1.0]])
    found = evaluate_outputs(outputs, targets, Gaussian(), 0.25, preprocessing)
    assert found["rmse"] == pytest.approx(math.sqrt((4 + 100) / 4))
    density = -torch.distributions.Normal(outputs.double(), 0.5).log_prob(targets.double()).sum(1).mean()
    assert found["nll"] == pytest.approx(float(density) + math.log(20))
    assert noise_std(0.25, 2, preprocessing) == pytest.approx(math.sqrt((1 + 25) / 2))
    assert errors_by_target(outputs, targets, preprocessing) == pytest.approx([math.sqrt(4 / 2), math.sqrt(100 / 2)])


def test_the_angle_of_a_digit_is_learned_from_the_spec_alone(tmp_path):
    spec = parse(
        "data digits |> rotate(degrees = 45, label = angle) |> subset(300) |> standardize |> standardize(targets)\n"
        "network n {\n  input image(1, 8, 8)\n  layer l1: F-FC + CONV(3) -> 4 |> relu\n  flatten\n"
        "  layer h1: FC -> classes\n}\nsearch {\n  epochs = 20\n  batch = 50\n}\n"
    )
    result = runner.search(spec, device="cpu", out=tmp_path / "run")
    spread = float(data.load(spec).preprocessing.targets.std[0])
    assert spread == pytest.approx(45 / math.sqrt(3), rel=0.1)
    assert result["test"]["rmse"] < 0.9 * spread
