"""Measuring a learned network again, on its own test data or on others."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from symdsl import data as data_room
from symdsl.analysis.facts import Data
from symdsl.data import Dataset, Preprocessing
from symdsl.diagnostics import RunError
from symdsl.evidence.loss import LIKELIHOODS
from symdsl.nn import Network, outputs_of
from symdsl.runner.device import resolve_device
from symdsl.runner.metrics import evaluate_outputs
from symdsl.runner.model import read_model
from symdsl.runs import RunFolder
from symdsl.runs.folder import WEIGHTS
from symdsl.spec import load_data


def evaluate(
    run: str | Path,
    overrides: Mapping[str, Any] | None = None,
    device: str = "auto",
    data: Dataset | None = None,
) -> dict[str, Any]:
    """Return test metrics of the network that a run learned.

    Args:
        run: a finished run's folder.
        overrides: changes to the spec's data, e.g. `{"data.copies": 1}`.
        device: `auto`, `cpu`, `cuda` or `cuda:n`.
        data: of a spec that has `data given(...)`, see `symdsl.data.from_tensors`.

    Returns:
        `accuracy` (a fraction of 1), `nll` (mean, nats) and `ece`; `rmse`, `r2` and `nll` for a regression. The data
        are standardized with the statistics of the run, and classes are matched by name.

    Raises:
        SpecError: the overrides do not fit the spec.
        RunError: the run is not finished, its files or data cannot be used, or the data are of another shape or hold
            other classes than the network has learned.
    """
    target = resolve_device(device)
    folder = RunFolder.view(run)
    result = folder.read_result()
    folder.refuse_damaged()
    preprocessing = Preprocessing.read(folder.read_info().get("preprocessing"))
    learned: Data = folder.read_graph().graph["data"]
    found = load_data(folder.path / "spec.sym", dict(overrides or {}))
    if _described(found) != _described(learned):
        raise RunError(
            f"the network has learned from {_described(learned)}, but the data hold {_described(found)}: "
            "override the data so that they agree"
        )
    dataset = data_room.load(found, result["seed"], preprocessing, given=data)
    targets = _targets(dataset, preprocessing, learned)
    net = learned_network(folder).to(target)
    likelihood, noise = LIKELIHOODS[learned.task], result.get("noise") or 1.0
    return evaluate_outputs(outputs_of(net, dataset.test.x), targets.to(target), likelihood, noise, preprocessing)


def _described(data: Data) -> str:
    outcomes = "class labels" if data.task == "classification" else f"{data.classes} regression targets"
    return f"images of {data.channels}x{data.height}x{data.width} with {outcomes}"


def _targets(dataset: Dataset, preprocessing: Preprocessing, learned: Data) -> Tensor:
    """The targets of the test examples, labels as the run numbers its classes."""
    if learned.task == "regression":
        return dataset.test.y
    labels = preprocessing.renumbered(dataset.test.y, dataset.preprocessing.classes or ())
    if int(labels.max()) >= learned.classes:
        raise RunError(
            f"the data hold the label {int(labels.max())}, but the run has learned {learned.classes} classes"
        )
    return labels


def learned_network(folder: RunFolder) -> Network:
    """Return the network as a run left it, without the paths that were pruned.

    Args:
        folder: of a finished run.

    Raises:
        RunError: the run is not finished, or its weights are not those of its network.
    """
    return read_model(folder.path / WEIGHTS).network
