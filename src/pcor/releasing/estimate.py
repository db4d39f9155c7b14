"""How long will it take? Asked before anything is started, and answered without the rows.

Public: everything here. How long a rule takes on real rows is private, so it is timed on numbers
that are made up. What else it takes is public too: the schema, the search, and the number of rows
that whoever asks chooses to name.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from math import prod
from typing import Any

from pcor.detectors import Detector
from pcor.errors import check_whole, counted, others_code
from pcor.public.schema import Schema
from pcor.support.arrays import NDArray, np

# Shorter measurements say little. A first one also pays for imports and the like, and counts only
# where that can hardly matter.
LONG_ENOUGH = 0.2
LONG_ENOUGH_FOR_THE_FIRST = 1.0

MOST_ROWS = 10**8


@dataclass(frozen=True)
class Estimate:
    """What to expect of a detector that is fitted anew in every context.

    Attributes:
        verifications: how many contexts are judged: with luck, and at most.
        rows: how many rows each covers on average.
        seconds_each: what one takes on this machine, on all cores if the rule may use them.
    """

    verifications: tuple[int, int]
    rows: int
    seconds_each: float

    @property
    def seconds(self) -> tuple[float, float]:
        """What all of them take: with luck, and at most."""
        few, most = (min(n, 1 << 1000) for n in self.verifications)  # more is beyond a float
        return few * self.seconds_each, most * self.seconds_each

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers, for programs."""
        return asdict(self) | {"seconds": self.seconds}

    def __str__(self) -> str:
        numbers = " to ".join(dict.fromkeys(map(counted, self.verifications)))
        times = " to ".join(dict.fromkeys(map(duration, self.seconds)))
        luck = ", by how soon valid contexts are met" if " to " in times else ""
        return (
            f"{numbers} verifications of {self.rows:,} rows on average, "
            f"{duration(self.seconds_each)} each on this machine: about {times}{luck}"
        )


def estimate(
    detector: Detector,
    schema: Schema,
    rows: int,
    *,
    verifications: tuple[int, int] | None = None,
) -> Estimate | None:
    """Return what to expect; ``None`` for a compiled detector, which takes microseconds each.

    Args:
        detector: the rule. It is run on made-up numbers, for a fraction of a second or a few fits.
        schema: what is public about the table.
        rows: how many rows the table has, or a guess.
        verifications: how many contexts are judged, with luck and at most; by default all that a
            record has.
    """
    check_whole("rows", rows, MOST_ROWS)
    if detector.has_kernel:
        return None
    if verifications is None:
        every = schema.most_contexts
        verifications = every, every
    population = max(1, round(rows * average_share(schema)))
    return Estimate(verifications, population, seconds_each(detector, population))


def average_share(schema: Schema) -> float:
    """Return what part of a table the contexts of a record cover on average.

    A context has the record's value and each other one half of the time: (d + 1) / 2 values of d,
    and as large a part of the rows where all values are equally frequent.
    """
    return prod((len(a.values) + 1) / (2 * len(a.values)) for a in schema.attributes)


def seconds_each(detector: Detector, rows: int) -> float:
    """Time a detector on contexts of so many made-up rows."""
    from pcor.rows.cell_table import CellTable  # a plan, which can ask for this, loads no rows

    cells = CellTable.of_one_cell(_made_up(rows))
    largest = float(cells.values[-1])
    contexts, enough = 1, LONG_ENOUGH_FOR_THE_FIRST
    while True:
        masks = np.zeros((contexts, 1), dtype=np.uint64)
        started = time.perf_counter()
        with others_code(f"the detector {detector.name!r}"):
            detector.batch(cells, largest, masks)
        seconds = time.perf_counter() - started
        if seconds >= enough:
            return seconds / contexts
        contexts, enough = 4 * contexts, LONG_ENOUGH


def _made_up(rows: int) -> NDArray[np.float64]:
    """Return distinct numbers, rising, with a long upper tail, as amounts have."""
    from scipy.special import ndtri  # takes a while to import

    numbers: NDArray[np.float64] = np.exp(ndtri(np.arange(1, rows + 1) / (rows + 1)))
    return numbers


def duration(seconds: float) -> str:
    """Write a time the way people do, in one unit and two digits.

    >>> [duration(seconds) for seconds in (0.0000034, 0.0204, 20.9, 640, 7200, 1e6)]
    ['0.0034 ms', '20 ms', '21 s', '11 minutes', '2 hours', '12 days']
    """
    units = (("ms", 1e-3, 1), ("s", 1, 100), ("minutes", 60, 6000), ("hours", 3600, 48 * 3600))
    fitting = ((unit, length) for unit, length, until in units if seconds < until)
    unit, length = next(fitting, ("days", 86400))
    return f"{float(f'{seconds / length:.2g}'):,g} {unit}"
