"""The search: the loop in small steps, schedules, checkpoints, resume."""

from symdsl.runner.evaluate import evaluate
from symdsl.runner.searching import Result, search
from symdsl.runner.timing import probe

__all__ = ["Result", "evaluate", "probe", "search"]
