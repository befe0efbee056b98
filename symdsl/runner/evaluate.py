"""Measuring a learned network again, on its own test data or on others."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from symdsl import data as data_room
from symdsl.analysis.facts import Data
from symdsl.data import Dataset, Examples, fingerprint
from symdsl.data.inputs import read_examples
from symdsl.diagnostics import RunError
from symdsl.evidence.loss import LIKELIHOODS
from symdsl.nn import outputs_of
from symdsl.runner.loading import Run, load_run
from symdsl.runner.metrics import evaluate_outputs
from symdsl.runs import RunFolder
from symdsl.runs.folder import CHANGED, SPEC
from symdsl.spec import load_data

Tell = Callable[[str], object]
"""Takes a line that a user should read."""


def untold(line: str) -> None:
    """Drop a line: the default of functions that tell something."""


def evaluate(
    run: str | os.PathLike[str],
    overrides: Mapping[str, Any] | None = None,
    device: str = "auto",
    data: Dataset | None = None,
    tell: Tell = untold,
    inputs: str | Path | Sequence[str | Path] | None = None,
) -> dict[str, Any]:
    """Return test metrics of the network that a run learned.

    Args:
        run: a finished run's folder, or the run itself.
        overrides: changes to the spec's data, e.g. `{"data.copies": 1}`.
        device: `auto`, `cpu`, `cuda` or `cuda:n`.
        data: of a spec that has `data given(...)`, see `symdsl.data.from_tensors`.
        tell: takes a line about data that have changed since the run, or that are not like its own.
        inputs: files to measure it on in place of the spec's data, see `symdsl.data.inputs.read_examples`.

    Returns:
        `accuracy` (a fraction of 1), `nll` (mean, nats) and `ece`; `rmse`, `r2` and `nll` for a regression. The data
        are standardized with the statistics of the run, and classes are matched by name.

    Raises:
        ValueError: there are both inputs and other data, or no inputs in a list of them.
        SpecError: the overrides do not fit the spec.
        RunError: the run is not finished, its files or data cannot be used, or the data are of another shape or hold
            other classes than the network has learned.
    """
    if isinstance(inputs, str | Path):
        inputs = [inputs]
    if inputs is not None and (overrides or data is not None):
        raise ValueError("`inputs` are measured in place of the spec's data: leave `overrides` and `data` out")
    if inputs is not None and not inputs:
        raise ValueError("`inputs` (=[]) must name at least one file or folder, or be left out")
    opened = load_run(run, device)
    model, net = opened.model, opened.network
    if inputs is not None:
        test = read_examples(map(Path, inputs), opened.prepare)
        for remark in opened.prepare.remarks(test.x):
            tell(remark)
    else:
        test = examples_for(opened, overrides, data, tell)
    outputs, targets = outputs_of(net, test.x), test.y.to(net.device)
    found = evaluate_outputs(outputs, targets, LIKELIHOODS[model.data.task], model.noise, model.preprocessing)
    if found["nll"] is None:
        raise RunError("the network's outputs are not finite: numbers in the inputs are too large for it")
    return found


def examples_for(
    run: Run,
    overrides: Mapping[str, Any] | None = None,
    given: Dataset | None = None,
    tell: Tell = untold,
) -> Examples:
    """Return test examples for a run, standardized by its statistics, with labels as it numbers its classes.

    Args:
        run: a finished run.
        overrides: changes to the spec's data.
        given: the data of a spec that has `data given(...)`.
        tell: takes a line if the spec's own data are no longer those of the run, or others are not like these.

    Raises:
        SpecError: the overrides do not fit the spec.
        RunError: the run's files are damaged, or the data cannot be used, are of another shape or hold other classes
            than the network has learned.
    """
    folder = RunFolder.view(run.folder)
    folder.refuse_damaged()
    folder.refuse_damaged(SPEC)
    model, found = run.model, load_data(run.folder / SPEC, dict(overrides or {}))
    if _described(found) != _described(model.data):
        raise RunError(
            f"the network has learned from {_described(model.data)}, but the data hold {_described(found)}: "
            "override the data so that they agree"
        )
    if model.data.task == "classification":  # training labels play no part
        found = attrs.evolve(found, classes=max(found.classes, model.data.classes))
    dataset = data_room.load(found, run.result["seed"], model.preprocessing, given=given)
    if not overrides and given is None and fingerprint(dataset) != folder.read_info()["dataset"]:
        tell(f"note: these are not the numbers that {run.folder.name} learned from: {CHANGED}")
    for doubt in run.prepare.doubts(dataset.test.x) if overrides or given is not None else ():
        tell(doubt)
    if model.data.task == "regression":
        return dataset.test
    labels = model.preprocessing.renumbered(dataset.test.y, dataset.preprocessing.classes or ())
    if int(labels.max()) >= model.data.classes:
        raise RunError(
            f"the data hold the label {int(labels.max())}, but the run has learned {model.data.classes} classes"
        )
    return attrs.evolve(dataset.test, y=labels)


def _described(data: Data) -> str:
    outcomes = "class labels" if data.task == "classification" else f"{data.classes} regression targets"
    return f"images of {data.channels}x{data.height}x{data.width} with {outcomes}"
