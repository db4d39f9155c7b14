"""Settings for all tests."""

from __future__ import annotations

import logging
import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings

from tests.helpers.postgres import postgres

# Deterministic where a change is judged, free to roam elsewhere; a test must pass either way.
settings.register_profile("ci", deadline=None, derandomize=True, database=None)
settings.register_profile("roam", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "roam"))

# While it compiles, Numba logs its own intermediate code at level DEBUG: numbers, but nobody's.
logging.getLogger("numba").setLevel(logging.WARNING)

# Whoever is put into the background by a script ignores Ctrl-C, and so does all that it starts: the
# tests of Ctrl-C would test nothing.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty place for a ledger: a file, and a database of a real PostgreSQL."""
    if request.param == "sqlite":
        return str(tmp_path / "books.db")
    return postgres().new_database()


@pytest.hookimpl(tryfirst=True)  # xdist reads the groups in the same hook
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the tests of one file share a core, and with it what the file sets up.

    Pages of the documentation share nothing: each is a group of its own. All that ask Spark share
    its one session, which takes longer to start than most of them.
    """
    for item in items:
        group = str(item.path)
        if "page_does_what_it_says" in item.name:
            group = item.name
        elif "spark" in item.name:
            group = "spark"
        item.add_marker(pytest.mark.xdist_group(group))
