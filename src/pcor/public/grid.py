"""MetricGrid: the numbers at which quantiles of the metric may be released.

Public: everything here. A grid is declared with the metric (``low``, ``high``, ``step``) and never
read off the rows. A metric belongs to the nearest point; what lies beyond an end, to that end.
Which point that is depends on the number alone, so rounding to the grid protects and costs nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from pcor.errors import SchemaError
from pcor.support.arrays import NDArray, np

# More points than this are finer than anybody reads; every one of them is a candidate of a draw.
MOST_POINTS = 100_000

# No metric is larger.
_LARGEST = 10.0**100

NO_GRID = (
    "a quantile is drawn from a public grid, and the schema declares none: give [metric] low, high "
    "and step, such as low = 0, high = 10000, step = 50 (in Python metric={'column': ..., 'low': "
    "0, 'high': 10000, 'step': 50})"
)


@dataclass(frozen=True)
class MetricGrid:
    """Evenly spaced points, from ``low`` to ``high``, ``step`` apart; as they were written.

    >>> grid = MetricGrid(0, 1, 0.25)
    >>> grid.size, grid.point(3), grid.places(np.array([-5.0, 0.3, 0.4, 7.0])).tolist()
    (5, 0.75, [0, 1, 2, 4])
    """

    low: float
    high: float
    step: float

    def __post_init__(self) -> None:
        for name in ("low", "high", "step"):
            given = getattr(self, name)
            number = isinstance(given, int | float) and not isinstance(given, bool)
            if not number or not math.isfinite(given) or abs(given) > _LARGEST:
                raise SchemaError(f"[metric] {name} must be a number, not {given!r}")
        if self.step <= 0 or self.high <= self.low:
            raise SchemaError("[metric] low must be below high, and step above 0")
        steps = (_exact(self.high) - _exact(self.low)) / _exact(self.step)
        if steps.denominator != 1:
            raise SchemaError(
                f"[metric] step = {self.step} does not lead from low = {self.low} to high = "
                f"{self.high} in whole steps; change one of them"
            )
        if steps >= MOST_POINTS:
            raise SchemaError(
                f"[metric] low, high and step make {int(steps) + 1:,} points, and at most "
                f"{MOST_POINTS:,} are allowed; take a larger step"
            )

    @property
    def size(self) -> int:
        """How many points there are."""
        return int((_exact(self.high) - _exact(self.low)) / _exact(self.step)) + 1

    @property
    def steps_per_unit(self) -> float:
        """How many steps there are in 1, as the nearest number."""
        return float(1 / _exact(self.step))

    @property
    def rounding(self) -> str:
        """What is done to a metric, in the middle of a sentence."""
        low, high, step = (f"{number:,}" for number in (self.low, self.high, self.step))
        return f"rounded to steps of {step} between {low} and {high}"

    def beyond(self, point: float) -> str:
        """Return what to write after a point at an end, which stands for all beyond it, too."""
        if point >= self.high:
            return " or more"
        return " or less" if point <= self.low else ""

    def point(self, place: int) -> float:
        """Return the point at this place, as the nearest number; a whole one as such."""
        exact = _exact(self.low) + place * _exact(self.step)
        return int(exact) if exact.denominator == 1 else float(exact)

    def places(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the place of the point that each value belongs to.

        Engines compute the same in SQL, by the same operations of IEEE 754 in the same order
        (``Pushdown.on_grid``). Each of them is monotone, so the whole is. There is no division
        among them: Polars makes a product of one, which rounds differently.
        """
        low, high, last = float(self.low), float(self.high), self.size - 1
        places = np.floor((np.clip(values, low, high) - low) * self.steps_per_unit + 0.5)
        found: NDArray[np.int64] = np.minimum(places, last).astype(np.int64)
        return np.where(values >= high, last, found)


def read_grid(low: float | None, high: float | None, step: float | None) -> MetricGrid | None:
    """Return the grid that a metric declares, if it does; or refuse a part of one."""
    given = {"low": low, "high": high, "step": step}
    missing = [name for name, value in given.items() if value is None]
    if len(missing) == len(given):
        return None
    if missing:
        raise SchemaError(
            f"[metric] has no {missing[0]}: a grid needs low, high and step, all three of them"
        )
    return MetricGrid(**given)  # type: ignore[arg-type]


def _exact(number: float) -> Fraction:
    """Return a number as it was written: 0.1 is one tenth."""
    return Fraction(repr(number))
