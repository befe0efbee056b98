"""Exported networks, used where there is no symdsl."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import attrs
import numpy as np
import pytest
import torch

import symdsl
from oracles.comparison import assert_same
from symdsl import data, runner
from symdsl.diagnostics import RunError
from symdsl.export import export_run, formats, plain_network
from symdsl.graph.build import layers
from symdsl.runner import Run
from symdsl.spec import parse

SPEC = """
data synthetic(size = 6, classes = 3, train = 48, test = 20) |> pad(8) |> standardize

network small {
  input image(channels, 8, 8)
  lift p4
  layer l1: F-GFC + GCONV(3) -> 2 |> relu
  layer l2: F-GFC + GCONV(3) + CONV(3) -> 3 stride 2 |> relu
  project max
  flatten
  layer h1: FC -> classes
}

search {
  epochs = 3
  every  = 1
  batch  = 16
}
"""
RAW = torch.linspace(-1, 1, 3 * 36).reshape(3, 1, 6, 6)

BLOCKED = "import sys\nsys.path.insert(0, '')\nfor name in {names!r}: sys.modules[name] = None\nimport numpy as np\n"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("run") / "run"
    runner.search(parse(SPEC), device="cpu", out=folder)
    return symdsl.load_run(folder, device="cpu")


def exported(run: Run, form: str, folder: Path) -> Path:
    """Where the network of a run was written in a form, unless the packages of the form are missing."""
    if form == "onnx":
        pytest.importorskip("onnx")
        pytest.importorskip("onnxruntime")
        pytest.importorskip("onnxscript")
    path = folder / f"net{formats.FORMATS[form].suffix}"
    export_run(run, form, path)
    return path


PARTS = """
data synthetic(size = 4, classes = 3, train = 48, test = 20) |> shuffle |> unroll |> standardize

network parts {
  input signal(channels, 16)
  layer l1: F-FC + CONV(3) -> 4 stride 2 |> relu
  residual {
    layer l2: CONV(3) -> 4 |> relu
    residual {
      layer l3: CONV(3) -> 4 |> relu
      layer l4: CONV(3) -> 4
    }
    layer l5: CONV(3) -> 4
  }
  pool mean
  flatten
  layer h1: FC -> classes
}

search {
  epochs = 1
}
"""


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A network of nested residual blocks on lines."""
    folder = tmp_path_factory.mktemp("parts") / "run"
    runner.search(parse(PARTS), device="cpu", out=folder)
    return symdsl.load_run(folder, device="cpu")


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
@pytest.mark.parametrize("form", formats.FORMATS)
def test_residual_blocks_and_lines_have_every_form(parts: Run, form: str, tmp_path: Path) -> None:
    assert exported(parts, form, tmp_path).exists()


def test_a_model_shuffles_and_unrolls_its_images(parts: Run, tmp_path: Path) -> None:
    export_run(parts, "torch", tmp_path / "net")
    saved(tmp_path / "net", RAW[:, :, :4, :4])
    program = (
        "import torch\nfrom model import load, prepare\nx = prepare(torch.from_numpy(np.load('x.npy')))\n"
        "np.savez('out.npz', prepared=x, found=load()(x).detach())\n"
    )
    found = elsewhere(program, tmp_path / "net", ("symdsl",))
    prepared = parts.prepare(RAW[:, :, :4, :4])
    assert_same(torch.from_numpy(found["prepared"]), prepared, 1e-6)
    assert_same(torch.from_numpy(found["found"]), parts.network(prepared).detach(), 1e-6)


def test_a_model_refuses_images_that_have_other_pixels_than_are_shuffled(parts: Run, tmp_path: Path) -> None:
    export_run(parts, "torch", tmp_path / "net")
    saved(tmp_path / "net", RAW[:, :, :5, :5])
    program = (
        "import torch\nfrom model import prepare\n"
        "try:\n    prepare(torch.from_numpy(np.load('x.npy')))\n"
        "except ValueError as error:\n    np.savez('out.npz', said=str(error))\n"
    )
    said = str(elsewhere(program, tmp_path / "net", ("symdsl",))["said"])
    assert said == "the images come as 5x5, expected 16 pixels, which are shuffled"


NAMES = """
data synthetic(size = 4, classes = 3, train = 20, test = 20)

network names {
  input image(channels, 4, 4)
  average affine(rotation = 20, samples = 3) {
    layer half: CONV(3) -> 2 |> relu
    layer half_: CONV(3) -> 2 |> relu
    layer half_relu: CONV(3) -> 2 |> relu
    layer average_mean: CONV(3) -> 2 |> relu
  }
  residual { layer forward: CONV(3) -> 2 }
  layer outputs: CONV(3) -> 2
  flatten
  layer outputs_: FC -> classes
}

search {
  epochs = 1
}
"""


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A network of layers that are called like what an export adds, or like a method."""
    folder = tmp_path_factory.mktemp("names") / "run"
    runner.search(parse(NAMES), objective="map", device="cpu", out=folder)
    return symdsl.load_run(folder, device="cpu")


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
@pytest.mark.parametrize("form", formats.FORMATS)
def test_layers_may_have_any_name(names: Run, form: str, tmp_path: Path) -> None:
    path = exported(names, form, tmp_path)
    if form == "torch":
        text = (path / "model.py").read_text()
        assert "# half_relu: CONV 100.0%\n" in text
        keys = [name for name, _ in plain_network(names.network, layers(names.model.graph)).named_children()]
        assert keys[1:5] == ["half_", "half_relu_", "half__", "half__relu"]


def test_a_network_in_training_is_exported_as_it_predicts_and_stays_in_training(names: Run, tmp_path: Path) -> None:
    names.network.train()
    export_run(names, "torch", tmp_path / "net")
    assert names.network.training
    names.network.eval()


@pytest.fixture(scope="module")
def test_set(run: Run) -> torch.Tensor:
    return data.load(run.spec).test.x


def elsewhere(program: str, folder: Path, blocked: tuple[str, ...]) -> dict[str, np.ndarray]:
    """What a program saves as `out.npz`, in a process that cannot import `blocked`."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    options = ["-W", "error", "-W", "ignore:The given buffer is not writable"]  # so torch 2.11 of its own files
    command = [sys.executable, *options, "-c", BLOCKED.format(names=blocked) + program]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    with np.load(folder / "out.npz") as found:
        return dict(found)


def saved(folder: Path, x: torch.Tensor) -> None:
    np.save(folder / "x.npy", x.numpy())


def compare(found: dict[str, np.ndarray], expected: torch.Tensor, tolerance: float) -> None:
    """Outputs of the whole test set, of its first example alone, and of the next seven."""
    for name, some in {"all": slice(None), "one": slice(0, 1), "some": slice(1, 8)}.items():
        assert_same(torch.from_numpy(found[name]), expected[some], tolerance)


def test_plain_pytorch_needs_torch_alone(run: Run, test_set: torch.Tensor, tmp_path: Path) -> None:
    export_run(run, "torch", tmp_path / "net")
    assert {one.name for one in (tmp_path / "net").iterdir()} - {"__pycache__"} == {"model.py", "weights.pt"}
    saved(tmp_path / "net", test_set)
    np.save(tmp_path / "net" / "raw.npy", RAW.numpy())
    program = (
        "import torch\nfrom model import CLASSES, load, prepare\n"
        "net, x = load(), torch.from_numpy(np.load('x.npy'))\n"
        "assert CLASSES == ['0', '1', '2']\n"
        "try:\n    prepare(x[:, [0, 0]])\nexcept ValueError as error:\n    found = str(error)\n"
        "assert found == 'the images are of shape [20, 2, 8, 8], expected [n, 1, row, column]', found\n"
        "for bad in (torch.zeros(1, 1, 9, 9), torch.zeros(1, 1, 6, 6, dtype=torch.int64)):\n"
        "    try:\n        prepare(bad)\n    except ValueError as error:\n        found += '; ' + str(error)\n"
        "assert found.endswith('images of 9x9 cannot be padded to 8x8; the images hold torch.int64, expected floats "
        "or uint8'), found\n"
        "with torch.no_grad():\n"
        "    np.savez('out.npz', all=net(x), one=net(x[:1]), some=net(x[1:8]), "
        "prepared=prepare(np.load('raw.npy')))\n"
        "raw = np.load('raw.npy')\n"
        "for same in (raw[::-1].copy()[::-1], raw[:, 0], raw.astype('>f4')):\n"
        "    assert torch.equal(prepare(same), prepare(raw))\n"
        "assert not [name for name, module in sys.modules.items() if name.startswith('symdsl') and module]\n"
    )
    found = elsewhere(program, tmp_path / "net", ("symdsl", "torchvision", "sklearn", "onnx"))
    compare(found, run.network(test_set).detach(), 1e-6)
    assert_same(torch.from_numpy(found["prepared"]), run.prepare(RAW), 1e-6)


def test_a_regression_is_restored_to_the_units_of_its_targets(tmp_path: Path) -> None:
    x = np.random.default_rng(0).integers(0, 256, (24, 1, 4, 4), dtype=np.uint8)
    y = np.stack([x.mean((1, 2, 3)), 1000 - x[:, 0, 0, 0].astype(float)], 1)
    np.savez(tmp_path / "data.npz", x_train=x, y_train=y, x_test=x[:6], y_test=y[:6])
    steps = "|> standardize |> standardize(targets)"
    network = (
        "network n {\n  input image(1, 4, 4)\n  flatten\n  layer h1: FC -> classes\n}\n\nsearch {\n  epochs = 2\n}\n"
    )
    runner.search(parse(f'data arrays("{tmp_path}/data.npz") {steps}\n\n{network}'), device="cpu", out=tmp_path / "run")
    run = symdsl.load_run(tmp_path / "run", device="cpu")
    export_run(run, "torch", tmp_path / "net")
    np.save(tmp_path / "net" / "raw.npy", x)
    program = (
        "import torch\nfrom model import NOISE_STD, load, prepare, restore\n"
        "with torch.no_grad():\n    means = restore(load()(prepare(torch.from_numpy(np.load('raw.npy')))))\n"
        "np.savez('out.npz', means=means, std=NOISE_STD)\n"
    )
    found = elsewhere(program, tmp_path / "net", ("symdsl", "torchvision", "sklearn", "onnx"))
    expected = run.predict(run.prepare(x), calibrated=False)
    assert_same(torch.from_numpy(found["means"]), expected.mean, 1e-5)
    assert_same(torch.from_numpy(found["std"]).expand(24, 2), expected.std, 1e-6)


def test_the_text_of_a_model_says_what_each_layer_became(run: Run, tmp_path: Path) -> None:
    export_run(run, "torch", tmp_path / "net")
    text = (tmp_path / "net" / "model.py").read_text()
    assert "# l2: F-GFC " in text
    assert "Convolution(8, 12, 3, stride=2)," in text
    assert max(map(len, text.splitlines())) <= 120
    assert "symdsl" not in text.split('"""', 2)[2]


@pytest.mark.parametrize("name", ['q"""x', "a\\N", "a\\", '"'])
def test_a_spec_may_have_any_name(run: Run, name: str, tmp_path: Path) -> None:
    export_run(attrs.evolve(run, result=run.result | {"spec": name}), "torch", tmp_path / "net")
    module = ast.parse((tmp_path / "net" / "model.py").read_text())
    assert (ast.get_docstring(module) or "").startswith(f"`{name}`, seed 711, learned by symdsl")


def test_a_program_of_torch_export_takes_any_number_of_examples(
    run: Run, test_set: torch.Tensor, tmp_path: Path
) -> None:
    export_run(run, "pt2", tmp_path / "net.pt2")
    saved(tmp_path, test_set)
    program = (
        "import torch\nnet, x = torch.export.load('net.pt2').module(), torch.from_numpy(np.load('x.npy'))\n"
        "np.savez('out.npz', all=net(x).detach(), one=net(x[:1]).detach(), some=net(x[1:8]).detach())\n"
    )
    compare(elsewhere(program, tmp_path, ("symdsl",)), run.network(test_set).detach(), 1e-6)
    kept = {"symdsl.json": ""}
    torch.export.load(tmp_path / "net.pt2", extra_files=kept)
    assert json.loads(kept["symdsl.json"])["input"] == [1, 8, 8]


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
def test_onnx_needs_no_torch_and_takes_any_number_of_examples(run: Run, test_set: torch.Tensor, tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    export_run(run, "onnx", tmp_path / "net.onnx")
    saved(tmp_path, test_set)
    program = (
        "import json\nimport onnxruntime\nx = np.load('x.npy')\n"
        "session = onnxruntime.InferenceSession('net.onnx', providers=['CPUExecutionProvider'])\n"
        "net = lambda x: session.run(None, {'images': x})[0]\n"
        "np.savez('out.npz', all=net(x), one=net(x[:1]), some=net(x[1:8]))\n"
        "told = json.loads(session.get_modelmeta().custom_metadata_map['symdsl'])\n"
        "assert told['classes'] == ['0', '1', '2'], told\n"
    )
    compare(elsewhere(program, tmp_path, ("symdsl", "torch")), run.network(test_set).detach(), 1e-5)


def test_nothing_is_written_over(run: Run, tmp_path: Path) -> None:
    (tmp_path / "net.pt2").write_text("mine")
    with pytest.raises(RunError, match="is there already; name another path"):
        export_run(run, "pt2", tmp_path / "net.pt2")
    assert (tmp_path / "net.pt2").read_text() == "mine"


def test_a_form_has_a_name(run: Run, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r'`to` \(="zip"\) must be one of pt2, onnx, torch'):
        export_run(run, "zip", tmp_path / "net.zip")


def test_a_program_of_torch_export_must_have_the_suffix_that_torch_reads(run: Run, tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"net: must end in `\.pt2`"):
        export_run(run, "pt2", tmp_path / "net")
    assert not (tmp_path / "net").exists()


@pytest.mark.parametrize(("to", "other"), [("onnx", "pt2"), ("pt2", "onnx")])
def test_a_file_has_the_suffix_of_its_form(run: Run, tmp_path: Path, to: str, other: str) -> None:
    with pytest.raises(RunError, match=rf"net\.{other}: must end in `\.{to}`"):
        export_run(run, to, tmp_path / f"net.{other}")
    assert not (tmp_path / f"net.{other}").exists()


def test_a_missing_package_is_named(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(RunError, match=r"needs onnx, onnxscript, onnxruntime: `pip install 'symdsl\[onnx\]'`"):
        export_run(run, "onnx", tmp_path / "net.onnx")


def test_what_computes_something_else_is_noticed(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(run: Run, net: torch.nn.Module, path: Path) -> formats.Function:
        path.write_text("wrong")
        return lambda x: net(x) + 0.1

    wrong = formats.Format("", write)
    monkeypatch.setitem(formats.FORMATS, "wrong", wrong)
    with pytest.raises(RunError, match="does not compute what the network does"):
        export_run(run, "wrong", tmp_path / "net")
    assert not (tmp_path / "net").exists()
    broken = formats.Format("", lambda run, net, path: lambda x: net(x) * float("nan"))
    monkeypatch.setitem(formats.FORMATS, "wrong", broken)
    with pytest.raises(RunError, match="does not compute what the network does"):
        export_run(run, "wrong", tmp_path / "other")
