"""Settings for all tests."""

from __future__ import annotations

import logging
import os

from hypothesis import settings

# Deterministic where a change is judged, free to roam elsewhere; a test must pass either way.
settings.register_profile("ci", deadline=None, derandomize=True, database=None)
settings.register_profile("roam", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "roam"))

# While it compiles, Numba logs its own intermediate code at level DEBUG: numbers, but nobody's.
logging.getLogger("numba").setLevel(logging.WARNING)
