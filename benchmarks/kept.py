"""Runs that are kept in a folder: read where they are finished, gone on with where they were interrupted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from symdsl import runner
from symdsl.runner.searching import Objective
from symdsl.runs import RunFolder
from symdsl.spec import Spec


def result_of(spec: Spec, folder: Path, objective: Objective | None, device: str = "cpu") -> dict[str, Any]:
    """The result of one run, as `result.json` holds it."""
    if (folder / "result.json").exists():
        return RunFolder.view(folder).read_result()
    resume = folder if (folder / "run.json").exists() else None
    return runner.search(spec, device, None if resume else folder, resume, objective=objective).content
