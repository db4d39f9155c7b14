"""Small tables on which the distribution of answers is computed exactly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

import pcor
from pcor.public.accounting import PrivacyCost
from tests.helpers.neighbours import Row, Small

EPSILON = 1.0
ROUNDING = 1e-9


@st.composite
def tables(draw: st.DrawFn) -> list[Row]:
    """Draw V, far out, and a few ordinary rows."""
    row = st.tuples(st.sampled_from("abc"), st.sampled_from("xy"), st.integers(0, 12).map(float))
    return [("a", "x", 40.0), *draw(st.lists(row, min_size=5, max_size=12))]


def lowest(here: Small) -> pcor.Context:
    """Return the first valid context in the order of masks: a function of COE alone."""
    return min(here.coe, key=lambda context: context.mask)


unhurried = settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.filter_too_much]
)


@dataclass(frozen=True)
class OnlyWithoutB:
    """A utility that is not monotone: an added row raises some scores and lowers others.

    People count for a context without job b, and against one with it.
    """

    monotonic: bool = False
    sensitivity = 1

    def score(self, population: pcor.Population) -> int:
        with_b = "b" in population.context.values["job"]
        return -population.size if with_b else population.size


# Found by trying random tables; each is its own proof.
LARGE: list[Row] = [
    ("a", "x", 40.0), ("a", "y", 8.0), ("a", "y", 9.0), ("b", "y", 5.0), ("c", "x", 7.0),
    ("c", "x", 10.0), ("c", "y", 10.0), ("a", "y", 11.0), ("c", "x", 10.0), ("b", "y", 2.0),
    ("a", "x", 5.0), ("b", "y", 10.0), ("c", "y", 2.0), ("b", "y", 7.0), ("a", "y", 8.0),
]  # fmt: skip
STEEP: list[Row] = [
    ("a", "x", 40.0), ("c", "y", 0.0), ("a", "y", 11.0), ("b", "y", 4.0), ("c", "y", 5.0),
    ("c", "y", 1.0), ("c", "y", 6.0), ("a", "x", 4.0), ("c", "x", 7.0), ("c", "y", 11.0),
    ("c", "y", 11.0), ("a", "y", 9.0),
]  # fmt: skip
NESTED: list[Row] = [
    ("a", "x", 40.0), ("a", "x", 11.0), ("a", "x", 2.0), ("a", "x", 8.0), ("a", "y", 12.0),
    ("b", "y", 5.0), ("b", "y", 1.0), ("b", "x", 9.0), ("c", "y", 2.0), ("c", "x", 5.0),
    ("a", "y", 1.0), ("b", "x", 2.0), ("b", "x", 9.0), ("c", "y", 1.0), ("c", "x", 9.0),
]  # fmt: skip
NEARLY_EQUAL: list[Row] = [
    ("a", "x", 40.0), ("a", "x", 10.0), ("c", "x", 6.0), ("c", "x", 6.0), ("c", "x", 8.0),
    ("a", "y", 7.0), ("c", "x", 5.0),
]  # fmt: skip


EVEN: list[Row] = [
    ("a", "x", 40.0), ("a", "x", 1.0), ("a", "x", 2.0), ("a", "x", 3.0), ("a", "x", 4.0),
    ("b", "x", 2.0), ("c", "x", 3.0), ("a", "y", 1.0), ("a", "y", 3.0),
]  # fmt: skip


def halve_the_noise(accountant: Callable[..., PrivacyCost]) -> Callable[..., PrivacyCost]:
    """Return an accountant that hands out twice the exponent that was paid for."""

    def broken(*args: Any) -> PrivacyCost:
        honest = accountant(*args)
        return replace(honest, eta=2 * honest.eta, step_eta=2 * honest.step_eta)

    return broken
