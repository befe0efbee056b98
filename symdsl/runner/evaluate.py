"""Measuring a learned network again, on its own test data or on others."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file

from symdsl import data as data_room
from symdsl import lowering
from symdsl.diagnostics import RunError
from symdsl.evidence.loss import LIKELIHOODS
from symdsl.nn import Network
from symdsl.runner.device import resolve_device
from symdsl.runner.metrics import evaluate_outputs, outputs_of
from symdsl.runs import RunFolder
from symdsl.spec import Spec, load


def evaluate(run: str | Path, overrides: Mapping[str, Any] | None = None, device: str = "auto") -> dict[str, Any]:
    """Test metrics of the network a run learned.

    Args:
        run: a finished run's folder.
        overrides: changes to the spec's data, e.g. `{"data.copies": 1}`.
        device: `auto`, `cpu`, `cuda` or `cuda:n`.

    Returns:
        `accuracy` (a fraction of 1), `nll` (mean, nats) and `ece`; `rmse` and `nll` for regression.

    Raises:
        SpecError: the overrides do not fit the spec.
        RunError: the run is not finished, or its files or data cannot be used.
    """
    target = resolve_device(device)
    folder = RunFolder.view(run)
    result = folder.read_result()
    folder.refuse_damaged()
    spec = load(folder.path / "spec.sym", dict(overrides or {}))
    net = learned_network(folder, spec).to(target)
    test = data_room.load(spec).test
    likelihood = LIKELIHOODS[spec.facts.data.task]
    metrics = evaluate_outputs(outputs_of(net, test.x), test.y.to(target), likelihood, result.get("noise") or 1.0)
    return {name: value for name, value in metrics.items() if value is not None}


def learned_network(folder: RunFolder, spec: Spec) -> Network:
    """The network as a run left it, without the paths that were switched off.

    Args:
        folder: of a finished run.
        spec: its spec, perhaps with other data.

    Raises:
        RunError: the run is not finished, or its weights are not those of this network.
    """
    net = lowering.compile(spec)
    path = folder.path / "model.safetensors"
    try:
        weights = load_file(path)
        for key, parameter in net.tensors().items():
            parameter.data.copy_(weights[key])
    except (OSError, SafetensorError, KeyError, RuntimeError) as error:
        raise RunError(f"{path}: does not hold the weights of this network: {error}") from error
    layers = dict(net.layers())
    for layer in folder.read_result()["layers"]:
        for candidate in layer["candidates"]:
            if candidate.get("off"):
                layers[layer["name"]].switch_off(candidate["kind"])
    return net.eval()
