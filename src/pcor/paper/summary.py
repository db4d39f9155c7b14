"""Means with intervals, times and histograms of what was measured. Private, like what they sum up.

The interval is the paper's: 90 %, of the mean; here from resamples of the repetitions (bootstrap),
with a fixed seed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

INTERVAL = "90 % of the means of 10,000 resamples of the repetitions (bootstrap)"

UTILITY_BINS = 20
TIMES_PER_DECADE = 4  # bins of the histogram of times, which is logarithmic

_RESAMPLES = 10_000


def mean_and_interval(
    numbers: Sequence[float],
) -> tuple[float, float, float] | tuple[None, None, None]:
    """Return the mean and its interval; none where nothing was measured.

    >>> mean_and_interval([0.5, 0.5, 0.5])
    (0.5, 0.5, 0.5)
    """
    found = np.asarray(numbers, dtype=float)
    if len(found) == 0:
        return None, None, None
    draws = np.random.default_rng(0).choice(found, (_RESAMPLES, len(found))).mean(axis=1)
    low, high = np.quantile(draws, [0.05, 0.95])
    mean, low, high = (round(float(number), 4) for number in (found.mean(), low, high))
    return mean, low, high


def utilities(numbers: Sequence[float]) -> dict[str, Any]:
    """Return the entries of a row that speak of utility."""
    mean, low, high = mean_and_interval(numbers)
    counts, _ = np.histogram(numbers, bins=UTILITY_BINS, range=(0.0, 1.0))
    return {"utility": mean, "low": low, "high": high, "utility_histogram": counts.tolist()}


def times(seconds: Sequence[float]) -> dict[str, Any]:
    """Return the entries of a row that speak of time."""
    if not seconds:
        return {"t_min": None, "t_max": None, "t_avg": None, "time_histogram": []}
    return {
        "t_min": _rounded(min(seconds)),
        "t_max": _rounded(max(seconds)),
        "t_avg": _rounded(sum(seconds) / len(seconds)),
        "time_histogram": time_histogram(seconds),
    }


def time_histogram(seconds: Sequence[float]) -> list[list[float]]:
    """Count times in bins of equal ratio: a list of (low end, high end, count).

    >>> time_histogram([0.001, 0.0011, 0.9])[0]
    [0.001, 0.001778, 2]
    """
    places = [math.floor(math.log10(max(s, 1e-6)) * TIMES_PER_DECADE + 1e-9) for s in seconds]
    first, last = min(places), max(places)
    return [
        [_edge(place), _edge(place + 1), places.count(place)] for place in range(first, last + 1)
    ]


def _edge(place: int) -> float:
    return float(f"{10 ** (place / TIMES_PER_DECADE):.4g}")


def _rounded(seconds: float) -> float:
    return float(f"{seconds:.3g}")
