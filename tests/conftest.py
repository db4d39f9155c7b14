"""Settings for all tests."""

from __future__ import annotations

import gc
import logging
import os
import signal
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests.helpers.postgres import postgres

# Deterministic where a change is judged, free to roam elsewhere; a test must pass either way.
settings.register_profile("ci", deadline=None, derandomize=True, database=None)
settings.register_profile("roam", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "roam"))

# While it compiles, Numba logs its own intermediate code at level DEBUG: numbers, but nobody's.
logging.getLogger("numba").setLevel(logging.WARNING)

# Nothing to collect, and importing it is a release.
collect_ignore = ["helpers/ledger_warm.py"]

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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put first what takes longest."""
    from tests.helpers.scheduling import rank

    items.sort(key=lambda item: rank(item.nodeid))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Have the garbage collector look at what tests make, not at all that is imported for them."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_sessionfinish() -> None:
    """Let it look at everything again: some libraries count what is left when Python ends."""
    gc.unfreeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    """Let the tests of one file share a worker."""
    from tests.helpers.scheduling import Scheduling

    config.option.loadscopereorder = False
    return Scheduling(config, log)
