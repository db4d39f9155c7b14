"""Settings for all tests."""

from __future__ import annotations

import logging
import os

import pytest
from hypothesis import settings

# Deterministic where a change is judged, free to roam elsewhere; a test must pass either way.
settings.register_profile("ci", deadline=None, derandomize=True, database=None)
settings.register_profile("roam", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "roam"))

# While it compiles, Numba logs its own intermediate code at level DEBUG: numbers, but nobody's.
logging.getLogger("numba").setLevel(logging.WARNING)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the tests of one file share a core, and with it what the file sets up.

    Pages of the documentation share nothing: each is a group of its own.
    """
    for item in items:
        alone = "page_does_what_it_says" in item.name
        item.add_marker(pytest.mark.xdist_group(item.name if alone else item.path.name))
