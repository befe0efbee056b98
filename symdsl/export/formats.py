"""The files that `symdsl export` writes; each is read back and compared with the network."""

from __future__ import annotations

import copy
import importlib.util
import json
import shutil
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs
import torch
from torch import Tensor, nn

from symdsl import __version__
from symdsl.diagnostics import RunError
from symdsl.export.convert import plain_network
from symdsl.export.source import model_source
from symdsl.graph.build import layers
from symdsl.runner.loading import Run
from symdsl.runner.metrics import noise_by_target
from symdsl.runs.files import names_the_file

_CLOSE = 1e-4
"""Largest difference, relative to the largest output, that rounding may make of random inputs."""

Function = Callable[[Tensor], Tensor]


@attrs.frozen
class Format:
    """A form in which a network needs no symdsl.

    Attributes:
        suffix: what the default path ends with.
        write: writes a run's plain network to a path, and gives what a reader of it computes.
    """

    suffix: str
    write: Callable[[Run, nn.Sequential, Path], Function]


def export_run(run: Run, to: str, path: Path) -> None:
    """Write a run's network in a form that needs no symdsl; `FORMATS` names them.

    What was written is read back and compared with the network on random inputs, one and several at a time. Where that
    fails, nothing is left.

    Raises:
        ValueError: there is no such form.
        RunError: the path is taken, cannot be written or lacks the suffix of its form, a package is
            missing, or the outputs differ.
    """
    if to not in FORMATS:
        raise ValueError(f'`to` (="{to}") must be one of {", ".join(FORMATS)}')
    suffix = FORMATS[to].suffix
    if suffix.startswith(".") and (path.suffix if to == "pt2" else path.suffix.lower()) != suffix:
        raise RunError(f"{path}: must end in `{suffix}`, as a file of this form does")
    if path.exists():
        raise RunError(f"{path}: is there already; name another path with `-o PATH`")
    learned = copy.deepcopy(run.network).cpu().float().eval()
    net = plain_network(learned, layers(run.model.graph))
    with names_the_file(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    try:
        _compare(run, learned, FORMATS[to].write(run, net, path), path)
    except BaseException:
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        raise


@torch.no_grad()
def _compare(run: Run, learned: nn.Module, written: Function, path: Path) -> None:
    data, generator = run.model.data, torch.Generator().manual_seed(0)
    for examples in (1, 5):
        x = torch.randn(examples, data.channels, data.height, data.width, generator=generator)
        expected, found = learned(x), written(x)
        if not float((found - expected).abs().max()) <= _CLOSE * max(1.0, float(expected.abs().max())):
            raise RunError(f"{path}: is removed, as it does not compute what the network does; please report it")


def _example(run: Run) -> tuple[Tensor, ...]:
    return (torch.zeros(3, run.model.data.channels, run.model.data.height, run.model.data.width),)


def _facts(run: Run) -> dict[str, str]:
    """Return what a reader of the file needs beside the network, as JSON texts."""
    data = run.model.data
    metadata = {
        "spec": run.result["spec"],
        "task": data.task,
        "input": [data.channels, data.height, data.width],
        "classes": run.classes,
        "steps": run.prepare.recipe(),
        "preprocessing": run.model.preprocessing.record(),
        "noise_std": _noise_std(run),
    }
    return {"symdsl": json.dumps(metadata, ensure_ascii=False)}


def _noise_std(run: Run) -> list[float]:
    """Return the standard deviation of each target's noise, in the units of the data; none for a classification."""
    if run.model.data.task == "classification":
        return []
    return noise_by_target(run.model.noise, run.model.data.classes, run.model.preprocessing)


def _write_pt2(run: Run, net: nn.Sequential, path: Path) -> Function:
    batch = torch.export.Dim("batch", min=1)
    program = torch.export.export(net, _example(run), dynamic_shapes=({0: batch},))
    torch.export.save(program, path, extra_files={f"{name}.json": text for name, text in _facts(run).items()})
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The given buffer is not writable")  # torch 2.11 warns of its own reading
        read: Function = torch.export.load(path).module()
    return read


def _write_onnx(run: Run, net: nn.Sequential, path: Path) -> Function:
    missing = [one for one in ("onnx", "onnxscript", "onnxruntime") if importlib.util.find_spec(one) is None]
    if missing:
        raise RunError(f"`--to onnx` needs {', '.join(missing)}: `pip install 'symdsl[onnx]'`")
    import onnxruntime

    program = torch.onnx.export(
        net,
        _example(run),
        dynamo=True,
        dynamic_shapes=({0: torch.export.Dim("batch", min=1)},),
        input_names=["images"],
        output_names=["outputs"],
        verbose=False,
    )
    assert program is not None, "it is not written by torch.onnx itself"
    program.model.metadata_props.update(_facts(run))
    program.save(path, external_data=False)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return lambda x: torch.from_numpy(session.run(None, {"images": x.numpy()})[0])


def _write_torch(run: Run, net: nn.Sequential, path: Path) -> Function:
    title = f"`{run.result['spec']}`, seed {run.result['seed']}"
    text = model_source(net, title, __version__, run.classes, run.prepare, dict(_shares(run.result)), _noise_std(run))
    path.mkdir()
    torch.save(net.state_dict(), path / "weights.pt")
    (path / "model.py").write_text(text, encoding="utf-8")
    found = importlib.util.spec_from_file_location("symdsl_exported_model", path / "model.py")
    assert found is not None, "the file was written"
    assert found.loader is not None, "it is a Python file"
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    read: Function = module.load()
    return read


def _shares(result: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the name of every layer and the shares of its candidates."""
    for layer in result["layers"]:
        parts = [f"{one['kind']} {one['relative']:.1%}" for one in layer["candidates"] if not one.get("pruned")]
        yield layer["name"], f"{layer['name']}: {', '.join(parts)}"


FORMATS: dict[str, Format] = {
    "pt2": Format(".pt2", _write_pt2),
    "onnx": Format(".onnx", _write_onnx),
    "torch": Format("-torch", _write_torch),
}
"""Every form by the name `--to` has for it."""
