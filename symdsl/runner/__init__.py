"""The search: the loop in small steps, schedules, checkpoints, resume."""

from symdsl.runner.evaluate import evaluate, probe
from symdsl.runner.searching import Result, search

__all__ = ["Result", "evaluate", "probe", "search"]
