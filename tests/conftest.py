"""How many cases a property test tries: 100, or 4,000 with `pytest --hypothesis-profile nightly`.

`HYPOTHESIS_PROFILE=nightly` does the same.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

_SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]

settings.register_profile("ci", max_examples=100, derandomize=True, database=None, deadline=None)
settings.register_profile("nightly", max_examples=4000, deadline=None, print_blob=True, suppress_health_check=_SLOW)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
