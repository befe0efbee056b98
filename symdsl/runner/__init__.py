"""Searches: training, evidence steps, checkpoints and resuming."""

from symdsl.runner.audits import audit_spec_or_run
from symdsl.runner.evaluate import evaluate
from symdsl.runner.loading import Run, load_run
from symdsl.runner.result import Recorded, Result
from symdsl.runner.searching import search
from symdsl.runner.seeds import SeedsResult, search_seeds
from symdsl.runner.sweeping import grid, sweep
from symdsl.runner.timing import probe

__all__ = [
    "Recorded",
    "Result",
    "Run",
    "SeedsResult",
    "audit_spec_or_run",
    "evaluate",
    "grid",
    "load_run",
    "probe",
    "search",
    "search_seeds",
    "sweep",
]
