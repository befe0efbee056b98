"""The records of a run that a report shows, read from its folder without its data and without torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from symdsl.analysis.facts import Data, Layer
from symdsl.diagnostics import RunError
from symdsl.runs import RunFolder, SeedsFolder, SweepFolder
from symdsl.runs.folder import PICTURE, SPEC
from symdsl.runs.metrics import lost
from symdsl.runs.predictions import FILE as PREDICTIONS
from symdsl.runs.predictions import Predictions
from symdsl.runs.predictions import read as read_predictions

EVIDENCE = "neg_log_evidence_per_example"


@attrs.frozen(eq=False)
class Run:
    """The content of a run folder, finished or not, that a report shows.

    Attributes:
        folder: its folder.
        info: what `run.json` holds, with the present status.
        result: what `result.json` holds; None for a run that is not finished.
        records: what `metrics.jsonl` holds, without lines that are damaged.
        data: what it learned from and was measured on.
        layers: of its network, in order.
        spec: the spec as run.
        picture: what was learned, an SVG file; None where it is not drawn yet.
        predictions: about the test examples; None where there are none yet, or none that are finite.
    """

    folder: Path
    info: Mapping[str, Any]
    result: Mapping[str, Any] | None
    records: Sequence[Mapping[str, Any]]
    data: Data
    layers: tuple[Layer, ...]
    spec: str
    picture: str | None
    predictions: Predictions | None

    @property
    def epoch(self) -> int:
        """The number of epochs done."""
        return int(self.result["epochs"]) if self.result else max((one["epoch"] for one in self.records), default=0)

    @property
    def reason(self) -> str:
        """Why it failed, after a colon; empty where it did not."""
        return f": {self.info['reason']}" if self.info.get("reason") else ""

    @property
    def lost(self) -> list[int]:
        """The epochs of which `metrics.jsonl` has no line, or a damaged one."""
        return lost(self.records, self.epoch)

    @property
    def evidence_steps(self) -> list[Mapping[str, Any]]:
        """The records of the epochs with an evidence step."""
        return [record for record in self.records if record.get(EVIDENCE) is not None]

    @property
    def name(self) -> str:
        """The name of the spec."""
        return str((self.result or self.info)["spec"])


def read_runs(paths: Sequence[Path]) -> list[Run]:
    """Read the runs in some folders, each once; a folder of several seeds or of a sweep stands for all runs in it.

    Raises:
        RunError: a folder holds no run, or a file is damaged.
    """
    folders: dict[Path, Path] = {}
    for folder in (one for path in paths for one in _folders(path)):
        folders.setdefault(folder.resolve(), folder)
    return [_read(RunFolder.view(folder)) for folder in folders.values()]


def without_damaged(paths: Sequence[Path], tell: Callable[[str], object]) -> list[Path]:
    """Return the folders of runs, those of several without the runs that cannot be read.

    Args:
        paths: as `read_runs` takes them.
        tell: takes a line about each run that is left out.

    Raises:
        RunError: a folder of several runs holds none that can be read.
    """
    return [folder for path in paths for folder in ([path] if _several(path) is None else _readable(path, tell))]


def _readable(path: Path, tell: Callable[[str], object]) -> list[Path]:
    found, reasons = [], []
    for folder in _folders(path):
        try:
            _read(RunFolder.view(folder))
            found.append(folder)
        except RunError as error:
            reasons.append(str(error))
    if not found:
        raise RunError(reasons[0])
    for reason in reasons:
        tell(f"left out of the report: {reason}")
    return found


def _folders(path: Path) -> list[Path]:
    several = _several(path)
    if several is None:
        return [path]
    begun = several.view(path).begun()
    if not begun:
        raise RunError(f"{path}: none of the {several.CALLED} has begun, there is nothing to report yet")
    return begun


def _several(path: Path) -> type[SeedsFolder] | type[SweepFolder] | None:
    return next((one for one in (SeedsFolder, SweepFolder) if one.is_one(path)), None)


def _read(run: RunFolder) -> Run:
    from symdsl.graph.build import layers

    info = run.read_info() | {"status": run.present_status}
    finished = info["status"] == "finished"
    if finished:
        run.refuse_damaged(PREDICTIONS)
    graph = run.read_graph()
    run.refuse_damaged(SPEC)
    result = run.read_result() if finished else None
    overflowed = result is not None and result["test"]["nll"] is None  # the outputs are not finite
    return Run(
        folder=run.path,
        info=info,
        result=result,
        records=run.read_metrics(damaged=True),
        data=graph.graph["data"],
        layers=tuple(layers(graph)),
        spec=run.read_text(SPEC),
        picture=run.read_text(PICTURE) if (run.path / PICTURE).exists() and finished else None,
        predictions=None if overflowed else read_predictions(run.path),
    )
