"""For tests: a random source that repeats itself, and the contract every detector must keep.

Nothing here is fit for a release: what a seeded source draws can be drawn again by anybody, so its
releases say NOT PRIVATE.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from pcor.detectors import Detector
from pcor.mechanism.ordered_selection import Candidates, draw_first
from pcor.mechanism.randomness import Accepts, keep_accepted

Numbers = NDArray[np.float64]


def seeded(seed: int) -> SeededRandomSource:
    """Return a random source that makes the same decisions every time. NOT PRIVATE."""
    return SeededRandomSource(seed)


class SeededRandomSource:
    """Pseudo-random decisions from a seed, in floating point. NOT PRIVATE."""

    private = False

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311 (marked NOT PRIVATE)

    def uniform(self, count: int) -> int:
        """Return one of ``0 .. count-1``."""
        return self._random.randrange(count)

    def sample(self, size: int, accepts: Accepts, *, wanted: int, cap: int) -> list[int]:
        """Draw accepted indices uniformly with replacement."""
        return keep_accepted(size, accepts, wanted=wanted, cap=cap, uniform=self.uniform)

    def select_first(self, candidates: Candidates, *, eta: Fraction, mechanism: str) -> int | None:
        """Draw while the candidates arrive, best first."""
        return draw_first(candidates, eta, self.uniform, mechanism)

    def select(self, scores: Sequence[int], *, eta: Fraction, mechanism: str) -> int:
        """Draw by adding noise and taking the largest: Gumbel or exponential."""
        scale = float(1 / eta)
        noise = self._gumbel if mechanism == "exponential" else self._exponential
        best = max(scores)
        noisy = [score - best + scale * noise() for score in scores]
        return noisy.index(max(noisy))

    def _gumbel(self) -> float:
        return -math.log(self._exponential())

    def _exponential(self) -> float:
        return -math.log(1.0 - self._random.random()) or 5e-324


def check_detector(detector: Detector, *, seed: int = 0, rounds: int = 50) -> None:
    """Assert that a detector keeps the contract; for the tests of third-party detectors.

    Checked on random populations with many ties, few rows, equal values and far extremes: verdicts
    are booleans of the right shape, the same every time, the same for ``verdict`` and
    ``verdicts``, blind to row order, never true below ``min_population`` or for an absent value;
    and the description holds only what JSON can carry.
    """
    numbers = random.Random(seed)  # noqa: S311 (test data)
    for _ in range(rounds):
        population = _population(numbers, detector.min_population)
        shuffled = numbers.sample(list(population), len(population))
        _check_population(detector, population, shuffled)
    _require(json.loads(json.dumps(detector.describe()))["name"], f"{detector!r} needs a name")


def _check_population(detector: Detector, population: Numbers, shuffled: list[float]) -> None:
    values, counts = np.unique(population, return_counts=True)
    verdicts = detector.verdicts(values, counts)
    where = f"{detector!r} on {population.tolist()}"
    _require(
        isinstance(verdicts, np.ndarray)
        and verdicts.shape == values.shape
        and verdicts.dtype == bool,
        f"{where}: verdicts must be one boolean per distinct value",
    )
    _require(
        (verdicts == detector.verdicts(values.copy(), counts.copy())).all(),
        f"{where}: the same population got different verdicts",
    )
    for place in range(len(values)):
        _require(
            detector.verdict(values, counts, place) == verdicts[place],
            f"{where}: verdict() and verdicts() disagree",
        )
        _require(
            detector.is_outlier(values, counts, float(values[place])) == verdicts[place],
            f"{where}: is_outlier() and verdicts() disagree",
        )
    _require(
        set(np.array(shuffled)[detector.flags(shuffled)]) == set(values[verdicts]),
        f"{where}: the order of rows changed a verdict",
    )
    _require(
        not detector.is_outlier(values, counts, float(values[-1]) + 1.0),
        f"{where}: a value that is not there was called an outlier",
    )
    few = population[: detector.min_population - 1]
    values, counts = np.unique(few, return_counts=True)
    _require(
        not detector.flags(few).any()
        and not any(detector.is_outlier(values, counts, float(value)) for value in values),
        f"{where}: something was flagged below min_population",
    )


def _require(holds: object, message: str) -> None:
    if not holds:
        raise AssertionError(message)


def _population(numbers: random.Random, smallest: int) -> Numbers:
    size = numbers.randint(smallest, smallest + 60)
    spread = numbers.choice([0, 3, 10, 1000])
    values = [float(numbers.randint(0, spread)) for _ in range(size)]
    for _ in range(numbers.randint(0, 3)):
        values[numbers.randrange(size)] = numbers.choice([-1.0, 1.0]) * numbers.uniform(1, 1e6)
    return np.array(values)
