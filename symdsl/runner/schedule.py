"""When things happen in a search and how large its steps are: functions without a state of their own."""

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


def burn_in_ends(epoch: int, fit: float, search: Search) -> bool:
    """Whether burn-in lasts no longer than `epoch` (counted from 1), which explained `fit` of the targets' deviance."""
    return epoch >= search.burnin or fit > search.burnin_fit


def evidence_is_due(epoch: int, burnt_in: int | None, search: Search) -> bool:
    """Whether an evidence step follows `epoch`, burn-in having ended after epoch `burnt_in`, if it has."""
    return burnt_in is not None and epoch > burnt_in and (epoch - burnt_in) % search.every == 0
