"""How many cases property tests try: `HYPOTHESIS_PROFILE=nightly pytest`, or `pytest --hypothesis-profile nightly`."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

_SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]

settings.register_profile("ci", max_examples=500, derandomize=True, database=None, deadline=None)
settings.register_profile("nightly", max_examples=20_000, deadline=None, print_blob=True, suppress_health_check=_SLOW)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
