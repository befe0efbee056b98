"""The trial of two starts: how long it takes, and which of them a search goes on from."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from symdsl.analysis.facts import Search

LEAST_GAIN = 0.15
"""Nats of evidence per example by which one start is better: twice the deviation of the difference of two seeds."""

BEST_EVIDENCE = "best_neg_log_evidence_per_example"
"""The key of a record of `metrics.jsonl` that starts are compared by."""

_SHARE = 0.2
"""Share of the epochs that each of two starts is tried for."""

_BEHIND = 2
"""Evidence steps in a row, the last of an epoch each, after which a start of worse evidence is given up."""

Records = Sequence[Mapping[str, Any]]


def trial_epochs(search: Search) -> int:
    """Return the number of epochs that each of two starts is tried for."""
    return search.burnin + math.ceil(_SHARE * (search.epochs - search.burnin))


def is_behind(records: Records, others: Records) -> bool:
    """Return whether the evidence is worse by `LEAST_GAIN` than from another start, at two evidence steps in a row.

    Args:
        records: of the epochs of this start so far.
        others: of those of the other start.
    """
    pairs = [(one.get(BEST_EVIDENCE), other.get(BEST_EVIDENCE)) for one, other in zip(records, others, strict=False)]
    losses = [own - other for own, other in pairs if own is not None and other is not None]
    return len(losses) >= _BEHIND and min(losses[-_BEHIND:]) > LEAST_GAIN


def late_evidence(records: Records) -> float:
    """Return the best negative log evidence per example, in the mean over the second half of some epochs, or NaN."""
    found = [one.get(BEST_EVIDENCE) for one in records[len(records) // 2 :]]
    there = [one for one in found if one is not None]
    return math.fsum(there) / len(there) if there else math.nan
