"""The runs below a folder, with the status of each."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import attrs

from symdsl.diagnostics import RunError
from symdsl.runs.files import names_the_file
from symdsl.runs.folder import RUN, RunFolder
from symdsl.runs.schema import Status


@attrs.frozen
class Listed:
    """One run in a list, with None for what is not known.

    Attributes:
        folder: its folder.
        status: how far it has come; `damaged` where its files cannot be read.
        resumable: whether `--resume` can continue it.
        reason: why it failed, or what is damaged.
        spec: name of its spec.
        objective: `laplace`, `elbo` or `map`.
        seed: its seed.
        epoch: epochs done.
        epochs: epochs it is to have.
        started: when it began, in UTC, as ISO 8601.
        accuracy: on the test data, a fraction of 1; None for regression and before the end, as the next two.
        rmse: root mean squared error on the test data, for regression, in the units of its targets.
        r2: share of the variance of the test targets that is explained, for regression.
        nll: mean negative log-likelihood of the test data per example, in nats.
        neg_log_evidence_per_example: the last known, in nats.
        wall_s: seconds of its epochs, on all machines it ran on.
    """

    folder: Path
    status: Status | Literal["damaged"]
    resumable: bool = False
    reason: str | None = None
    spec: str | None = None
    objective: str | None = None
    seed: int | None = None
    epoch: int | None = None
    epochs: int | None = None
    started: str | None = None
    accuracy: float | None = None
    rmse: float | None = None
    r2: float | None = None
    nll: float | None = None
    neg_log_evidence_per_example: float | None = None
    wall_s: float | None = None

    def content(self) -> dict[str, Any]:
        """Return all fields as values that JSON can hold."""
        return attrs.asdict(self) | {"folder": str(self.folder)}


def listed(root: Path) -> list[Listed]:
    """Return the runs in and below a folder, the latest first; those that cannot be read come last.

    Raises:
        RunError: there is no such folder, or it cannot be read.
    """
    with names_the_file(root, "cannot be read"):
        if not root.is_dir():
            raise RunError(f"{root}: {'not a folder' if root.exists() else 'no such folder'}")
        found = [_listed(folder) for folder in sorted(_folders(root))]
    return sorted(found, key=lambda one: str(one.started or ""), reverse=True)


def _folders(root: Path) -> Iterator[Path]:
    seen: set[str] = set()
    for place, inside, files in os.walk(root, followlinks=True):
        resolved = os.path.realpath(place)
        if resolved in seen:  # by way of links in a circle
            inside.clear()
            continue
        seen.add(resolved)
        if RUN in files:
            inside.clear()  # a run holds no other runs
            yield Path(place)


def _listed(folder: Path) -> Listed:
    try:
        return _read(RunFolder.view(folder))
    except RunError as error:
        return Listed(folder, "damaged", reason=str(error))
    except (KeyError, TypeError, ValueError) as error:  # well-formed JSON that no run has written
        return Listed(folder, "damaged", reason=f"{type(error).__name__}: {error}")


def _read(run: RunFolder) -> Listed:
    info, records = run.read_info(), run.read_metrics(damaged=True)
    key = "neg_log_evidence_per_example"
    known = Listed(
        folder=run.path,
        status=run.present_status,
        resumable=run.resumable,
        reason=info.get("reason"),
        spec=info.get("spec"),
        objective=info.get("objective"),
        seed=info.get("seed"),
        epoch=records[-1]["epoch"] if records else 0,
        epochs=info.get("epochs"),
        started=info.get("started"),
        neg_log_evidence_per_example=next((one[key] for one in reversed(records) if one.get(key) is not None), None),
        wall_s=sum(record.get("wall_s") or 0.0 for record in records),
    )
    if known.status != "finished":
        return known
    result = run.read_result()
    test = result["test"]
    return attrs.evolve(
        known,
        spec=result["spec"],
        objective=result["objective"],
        epoch=result["epochs"],
        accuracy=test.get("accuracy"),
        rmse=test.get("rmse"),
        r2=test.get("r2"),
        nll=test["nll"],
        neg_log_evidence_per_example=result[key],
        wall_s=result["wall_s"]["total"],
    )
