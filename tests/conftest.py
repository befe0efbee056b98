"""How many cases a property test tries, and how many threads a test computes with.

A property test tries 100 cases, or 4,000 with `pytest --hypothesis-profile nightly` or `HYPOTHESIS_PROFILE=nightly`.
"""

from __future__ import annotations

import math
import os

import pytest
from hypothesis import HealthCheck, settings

# Before torch is imported: tests compute with small tensors, for which several threads gain nothing and, on a busy
# machine, cost many times what one costs.
os.environ.setdefault("OMP_NUM_THREADS", "1")

_SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]

settings.register_profile("ci", max_examples=100, derandomize=True, database=None, deadline=None)
settings.register_profile("nightly", max_examples=4000, deadline=None, print_blob=True, suppress_health_check=_SLOW)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.fixture
def fitted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Takes every network for fitted, so that evidence steps move the priors of one that trains for a moment."""
    from symdsl.runner.structure import Structure

    monkeypatch.setattr(Structure, "_fits", lambda *_: True)
    monkeypatch.setattr(Structure, "_nats_gained", lambda *_: math.inf)
