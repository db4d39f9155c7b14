"""Which tests share a worker, and in which order they are begun.

The tests of one file share what the file sets up: servers, databases, compiled kernels. Pages of
the documentation share nothing, so each goes where there is room. All that ask Spark share its one
session, which takes longer to start than most of them. xdist's own groups do not hold under every
version of pytest, and where they do not nobody says so; ``tests/project/test_scheduling.py`` would.
"""

from __future__ import annotations

from xdist.scheduler import LoadFileScheduling

# What takes longest is begun first, so that no worker is left alone with it at the end.
LONG = ("spark", "page_does_what_it_says", "test_browser", "test_site", "faults", "one_state")


def group(test: str) -> str:
    """Return the group of a test, by its id."""
    if "spark" in test:
        return "spark"
    return test if "page_does_what_it_says" in test else test.split("::", 1)[0]


def rank(test: str) -> int:
    """Return how early a test is begun: the lower the earlier."""
    return next((place for place, name in enumerate(LONG) if name in test), len(LONG))


class Scheduling(LoadFileScheduling):  # type: ignore[misc]  # xdist has no types
    """Hands out tests by group, in the order in which they were collected."""

    def _split_scope(self, nodeid: str) -> str:
        return group(nodeid)
