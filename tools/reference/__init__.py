"""The reference, written from the code: `python -m tools.reference`.

Public: everything here. Each page is a function of the code alone: no clock, no path, no width of a
terminal and no version of a machine enters, so the same code gives the same pages everywhere, and
a test can compare them with what is committed.
"""

from tools.reference.pages import PAGES, stale, write

__all__ = ["PAGES", "stale", "write"]
