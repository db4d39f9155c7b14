"""Populations of every shape that has ever broken a detector, and what detectors say of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from hypothesis import strategies as st

import pcor
from pcor.detectors.base import Counts, Detector, Values, Verdicts
from tests.helpers import naive

Numbers = Sequence[float]


def distinct(population: Numbers) -> tuple[Values, Counts]:
    values, counts = np.unique(np.array(population, dtype=float), return_counts=True)
    return values, counts.astype(np.int64)


def factor(detector: pcor.LOF, population: Numbers, value: float) -> float:
    values, counts = distinct(population)
    return float(detector.factors(values, counts)[np.searchsorted(values, value)])


def flagged(detector: Detector, population: Numbers) -> set[float]:
    return {
        value for value, flag in zip(population, detector.flags(population), strict=True) if flag
    }


def agrees(detector: Detector, twin: naive.Rule, population: Numbers) -> None:
    """Compare every row's verdict with the twin's, where rounding does not decide."""
    flags = detector.flags(population).tolist()
    for value, ours, theirs in zip(population, flags, twin(population), strict=True):
        assert theirs is None or ours == theirs, value


# Whole numbers of every shape that has ever broken a detector.
whole_populations = st.one_of(
    st.lists(st.integers(0, 6), min_size=1, max_size=60),  # heavy ties
    st.builds(lambda value, n: [value] * n, st.integers(-9, 9), st.integers(1, 40)),  # all equal
    st.lists(st.integers(-50, 50), min_size=1, max_size=5),  # tiny
    st.lists(st.integers(-(2**20), 2**20), min_size=1, max_size=60),  # spread, both signs
    st.builds(  # a crowd and a few far away
        lambda crowd, far: crowd + far,
        st.lists(st.integers(0, 12), min_size=15, max_size=50),
        st.lists(st.sampled_from([-900, -40, 25, 40, 900, 10**6]), min_size=1, max_size=3),
    ),
)
# Multiplying by a power of two is exact, so the twins stay exact from 1e-295 to 1e96.
exponents = st.sampled_from([0, 0, 0, -1000, -500, -40, -10, 10, 40, 300])
populations = st.builds(
    lambda numbers, exponent: [math.ldexp(number, exponent) for number in numbers],
    whole_populations,
    exponents,
)
neighbour_counts = st.sampled_from([1, 2, 3, 5, 10, 20])
tie_rules = st.sampled_from(["lower", "all"])
tails = st.sampled_from(["both", "upper", "lower"])

BUILT_IN = [
    pcor.LOF(),
    pcor.LOF(ties="all"),
    pcor.Grubbs(),
    pcor.Grubbs(tail="upper"),
    pcor.Grubbs(tail="lower"),
    pcor.Histogram(),
    pcor.Histogram(include_maximum=False),
]
SMALL = [
    pcor.LOF(k=3, min_population=5),
    pcor.LOF(k=3, ties="all", min_population=1),
    pcor.Grubbs(min_population=1),
    pcor.Grubbs(tail="upper", min_population=3),
    pcor.Histogram(rare=0.1, min_population=1),
    pcor.Histogram(rare=0.2, include_maximum=False, min_population=5),
]
every_detector = st.sampled_from(BUILT_IN + SMALL)


CROWD = [*(100 + 3 * i % 41 for i in range(40)), 400]


@dataclass(frozen=True)
class Above(Detector):
    """A value above a public limit; the limit has no default."""

    name: ClassVar[str] = "above"
    limit: float = field(kw_only=True)

    def verdicts(self, values: Values, counts: Counts) -> Verdicts:  # noqa: ARG002 (the protocol)
        verdicts: Verdicts = values > self.limit
        return verdicts
