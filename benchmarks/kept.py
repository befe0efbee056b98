"""Runs that are kept in a folder: read where they are finished, gone on with where they were interrupted."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from symdsl import runner
from symdsl.runner.searching import objective_of
from symdsl.runs import RunFolder
from symdsl.runs.folder import SPEC
from symdsl.runs.schema import Objective
from symdsl.spec import Spec


def result_of(spec: Spec, folder: Path, objective: Objective | None, device: str = "cpu") -> dict[str, Any]:
    """The result of one run, as `result.json` holds it; ends the program where the folder holds another run."""
    if (folder / "result.json").exists():
        run = RunFolder.view(folder)
        result = run.read_result()
        asked = objective_of(spec, objective)
        if run.read_text(SPEC) != spec.text():
            raise SystemExit(f"{folder}: holds a run of another spec; delete it or give another --out")
        if result["objective"] != asked:
            raise SystemExit(f"{folder}: holds a run by {result['objective']}, not {asked}; give another --out")
        return result
    resume = folder if (folder / "run.json").exists() else None
    return runner.search(spec, device, None if resume else folder, resume, objective=objective).content


def setting(text: str) -> tuple[str, str]:
    """The key and the value of `--set K=V`."""
    key, equals, value = text.partition("=")
    if not (key and equals and value):
        raise argparse.ArgumentTypeError(f"`{text}` must have the form K=V")
    return key, value
