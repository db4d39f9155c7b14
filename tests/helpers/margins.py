"""Detectors and tables for the guarantee that everyone but the record has."""

from __future__ import annotations

import pcor
from tests.helpers.neighbours import Row

DETECTORS: dict[str, pcor.CountDetector] = {
    "tail": pcor.Tail(0.3, min_population=3),
    "lower tail": pcor.Tail(0.2, tail="lower", min_population=2),
    "neighbourhood": pcor.Neighbourhood(3.0, 0.25, min_population=3),
    "rare bin": pcor.RareBin([5.0, 20.0], 0.7, min_population=1),
}
MECHANISMS = ("exponential", "permute_and_flip")


# Three in the tail of eleven: with one row less among the others V is no outlier any more.
ON_THE_EDGE: list[Row] = [
    ("a", "x", 15.0),
    ("a", "x", 16.0),
    ("b", "x", 17.0),
    *[("a", "x", 1.0), ("b", "y", 2.0), ("c", "x", 3.0), ("c", "y", 4.0)] * 2,
]
