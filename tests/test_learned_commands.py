"""`predict` and `export` as their users meet them."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import attrs
import numpy as np
import pytest
import torch
from PIL import Image

import symdsl
from processes import call
from symdsl import data, runner
from symdsl.spec import parse

SPEC = """
data digits |> rotate(degrees = 10) |> subset(80, test = 30) |> standardize

network tiny {
  input image(1, 8, 8)
  layer l1: F-FC + CONV(3) -> 2 stride 2 |> relu
  flatten
  layer out: FC -> classes
}

search {
  epochs = 4
  every  = 1
  batch  = 16
}
"""


ROTATED = "rotate(degrees = 10, step = 0)"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("finished") / "run"
    runner.search(parse(SPEC), device="cpu", out=folder)
    return folder


@pytest.fixture
def images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> np.ndarray:
    """The working folder has `new.npz` with three images, and the first as `one.png`."""
    monkeypatch.chdir(tmp_path)
    x = np.random.default_rng(0).integers(0, 256, (3, 8, 8), dtype=np.uint8)
    np.savez("new.npz", x=x)
    Image.fromarray(x[0]).save("one.png")
    return x


def expected(run: Path, images: np.ndarray, calibrated: bool) -> torch.Tensor:
    loaded = symdsl.load_run(run, device="cpu")
    found = loaded.predict(loaded.prepare(torch.from_numpy(images)[:, None] / 255), calibrated).probabilities
    assert found is not None
    return found


@pytest.mark.parametrize("calibrated", [True, False])
def test_json_has_every_probability(run: Path, images: np.ndarray, calibrated: bool) -> None:
    done = call("predict", run, "new.npz", "one.png", "--format", "json", *([] if calibrated else ["--map"]))
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["calibrated"] is calibrated
    assert found["classes"] == [str(digit) for digit in range(10)]
    assert [one["input"] for one in found["predictions"]] == ["new.npz[0]", "new.npz[1]", "new.npz[2]", "one.png"]
    probabilities = expected(run, images, calibrated)
    for one, row in zip(found["predictions"], [*probabilities, probabilities[0]], strict=True):
        assert one["probabilities"] == pytest.approx(row.tolist(), abs=1e-6)
        assert one["class"] == str(int(row.argmax()))


def test_at_temperature_zero_nothing_is_called_calibrated(
    run: Path, images: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    cold = attrs.evolve(symdsl.load_run(run).posterior(), temperature=0.0)
    monkeypatch.setattr("symdsl.runner.loading.Run.posterior", lambda self: cold)
    found = json.loads(call("predict", run, "new.npz", "--format", "json").stdout)
    assert found["calibrated"] is False
    assert call("predict", run, "new.npz", "-o", "plain.json", "--map").exit_code == 0
    assert found == json.loads(Path("plain.json").read_text())


def test_what_inputs_do_not_go_through_is_said(run: Path, images: np.ndarray) -> None:
    done = call("predict", run, "one.png")
    assert done.stderr == (f"note: the data of the run went through {ROTATED}; these inputs do not\n")


@pytest.mark.parametrize("factor", [255.0, 0.01])
def test_values_in_another_unit_are_doubted(run: Path, images: np.ndarray, factor: float) -> None:
    np.savez("new.npz", x=images.astype(np.float32) / 255 * factor)
    done = call("predict", run, "new.npz")
    assert done.exit_code == 0, done.output
    *_, line = done.stderr.splitlines()
    assert line.startswith("note: the values of these inputs are from ")
    assert "where those of the training images are from -" in line
    assert line.endswith("after the transforms: are the units the same?")


def test_a_table_names_the_class_and_the_next(run: Path, images: np.ndarray) -> None:
    done = call("predict", run, "one.png")
    assert done.exit_code == 0, done.output
    ranked = expected(run, images, True)[0].sort(descending=True)
    row = next(line for line in done.stdout.splitlines() if "one.png" in line)
    assert row.split()[1:4] == [str(int(ranked.indices[0])), f"{100 * float(ranked.values[0]):.2f}", "%"]


def test_csv_has_a_line_for_each_input(run: Path, images: np.ndarray) -> None:
    done = call("predict", run, "new.npz", "--format", "csv", "-o", "found.csv")
    assert (done.exit_code, done.stdout) == (0, "")
    assert call("predict", run, "new.npz", "-o", "by_suffix.csv").exit_code == 0
    assert Path("by_suffix.csv").read_bytes() == Path("found.csv").read_bytes()
    lines = list(csv.reader(io.StringIO(Path("found.csv").read_text())))
    assert lines[0] == ["input", "class", *(f"p({digit})" for digit in range(10))]
    assert [float(cell) for cell in lines[2][2:]] == pytest.approx(expected(run, images, True)[1].tolist(), abs=1e-6)


@pytest.mark.parametrize("form", ["table", "csv", "json"])
def test_a_regression_has_means_and_deviations(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    x = np.random.default_rng(0).random((30, 1, 4, 4))
    y = 100 + 10 * x.mean((1, 2, 3))
    np.savez("data.npz", x_train=x, y_train=y, x_test=x[:5], y_test=y[:5])
    np.savez("new.npz", x=x[:2])
    text = (
        'data arrays("data.npz", task = regression) |> standardize |> standardize(targets)\n\nnetwork n {\n'
        "  input image(1, 4, 4)\n  flatten\n"
        "  layer h1: FC -> classes\n}\n\nsearch {\n  epochs = 3\n}\n"
    )
    runner.search(parse(text), device="cpu", out="run")
    done = call("predict", "run", "new.npz", "--format", form)
    assert done.exit_code == 0, done.output
    loaded = symdsl.load_run("run", device="cpu")
    found = loaded.predict(data.load(loaded.spec).test.x[:2])
    assert found.mean is not None
    assert found.std is not None
    if form == "json":
        content = json.loads(done.stdout)
        assert (content["targets"], "classes" in content) == (["0"], False)
        one = content["predictions"][1]
        assert one["mean"] == pytest.approx(found.mean[1].tolist(), rel=1e-5)
        assert one["std"] == pytest.approx(found.std[1].tolist(), rel=1e-5)
    elif form == "csv":
        titles, _, second = csv.reader(io.StringIO(done.stdout))
        assert titles == ["input", "mean(0)", "std(0)"]
        assert float(second[1]) == pytest.approx(float(found.mean[1, 0]), rel=1e-5)
    else:
        assert "±" in done.stdout


def test_targets_in_several_units_have_an_error_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    x = np.random.default_rng(0).random((30, 1, 4, 4))
    y = np.stack([1000 * x.mean((1, 2, 3)), x[:, 0, 0, 0]], 1)
    np.savez("data.npz", x_train=x, y_train=y, x_test=x[:10], y_test=y[:10])
    text = (
        'data arrays("data.npz", task = regression) |> standardize |> standardize(targets)\n\nnetwork n {\n'
        "  input image(1, 4, 4)\n  flatten\n  layer h1: FC -> classes\n}\n\nsearch {\n  epochs = 3\n}\n"
    )
    result = runner.search(parse(text), device="cpu", out="run")
    loaded = symdsl.load_run("run", device="cpu")
    found = loaded.predict(data.load(loaded.spec).test.x, calibrated=False)
    assert found.mean is not None
    errors = ((found.mean - torch.from_numpy(y[:10])) ** 2).mean(0).sqrt().tolist()
    assert [one["name"] for one in result["targets"]] == ["0", "1"]
    assert [one["test_rmse"] for one in result["targets"]] == pytest.approx(errors, rel=1e-4)
    assert found.std is not None
    assert [one["noise_std"] for one in result["targets"]] == pytest.approx(found.std[0].tolist(), rel=1e-4)
    assert f"target 1: test RMSE {errors[1]:.4g}, noise " in call("show", "run").stdout


def test_an_input_that_cannot_be_used_is_one_line(run: Path, images: np.ndarray) -> None:
    done = call("predict", run, "missing.png")
    assert (done.exit_code, done.stdout) == (3, "")
    assert done.stderr == "error: cannot read the image `missing.png`: No such file or directory\n"


@pytest.mark.parametrize("given", ["one.png", "."])
def test_inputs_are_not_overwritten(given: str, run: Path, images: np.ndarray) -> None:
    before = Path("one.png").read_bytes()
    done = call("predict", run, given, "-o", "one.png")
    assert (done.exit_code, Path("one.png").read_bytes()) == (2, before)
    assert "would overwrite what the command reads" in " ".join(done.stderr.split())


def test_inputs_are_asked_for(run: Path) -> None:
    assert call("predict", run).exit_code == 2


def test_export_says_what_it_wrote(run: Path, images: np.ndarray) -> None:
    done = call("export", run, "--to", "torch")
    assert (done.exit_code, done.stdout) == (0, "torch: tiny-torch\n"), done.output
    assert Path("tiny-torch/model.py").exists()
    again = call("export", run, "--to", "torch")
    assert again.exit_code == 3
    assert again.stderr == "error: tiny-torch: is there already; name another path with `-o PATH`\n"
    other = call("export", run, "--to", "torch", "-o", "deep/other")
    assert (other.exit_code, other.stdout) == (0, "torch: deep/other\n"), other.output


def test_a_form_is_asked_for(run: Path) -> None:
    done = call("export", run)
    assert done.exit_code == 2
    assert "--to" in done.stderr
