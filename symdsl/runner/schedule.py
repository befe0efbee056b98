"""When things happen in a search and how large its steps are: functions of the epoch, so a resume needs no state."""

from __future__ import annotations

import math

from symdsl.analysis.facts import Search

SCHEDULES = {
    "cosine": lambda progress: 0.5 * (1 + math.cos(math.pi * progress)),
    "constant": lambda progress: 1.0,
}
"""Factor on a first learning rate, by the share of the run that is done, in [0, 1]."""


def evidence_is_due(epoch: int, search: Search) -> bool:
    """Whether an evidence step follows `epoch` (counted from 1)."""
    return epoch > search.burnin and (epoch - search.burnin) % search.every == 0
