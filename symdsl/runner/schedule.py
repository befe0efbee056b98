"""When things happen in a search and how large its steps are: functions of the epoch, so a resume needs no state."""

from __future__ import annotations

import math

from symdsl.analysis.facts import Search

SCHEDULES = {
    "cosine": lambda progress: 0.5 * (1 + math.cos(math.pi * progress)),
    "onecycle": lambda progress: 0.5 * (1 - math.cos(2 * math.pi * progress)),
    "constant": lambda progress: 1.0,
}
"""Factor on a step by the share of the run that is done, in [0, 1]: falling from one, rising and falling, or one."""


_COLD = 0.1
"""Factor on the first step of a warm-up."""


def warm_up(progress: float, share: float) -> float:
    """Factor on a step by the share of the run that is done: rises linearly to one over the first `share` of it."""
    return _COLD + (1 - _COLD) * progress / share if progress < share else 1.0


def evidence_is_due(epoch: int, search: Search) -> bool:
    """Whether an evidence step follows `epoch` (counted from 1)."""
    return epoch > search.burnin and (epoch - search.burnin) % search.every == 0
