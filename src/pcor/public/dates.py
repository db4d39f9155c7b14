"""Days: how a schema writes them, what a column's text must be, and spans of years or months.

Public: everything here. Bins of dates are bins of days: a row is binned by its day, and what time
of day it has is not read. A moment is taken as written: ``2019-03-14T23:30+02:00`` is of 14 March,
wherever it is read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import cached_property
from itertools import pairwise
from typing import Any

from pcor.errors import SchemaError, did_you_mean

# The periods that a span can be divided into, each with its months.
PERIODS = {"year": 12, "quarter": 3, "month": 1}

ONE_DAY = timedelta(days=1)

_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)

_KEYS = ("by", "from", "to")
_EXAMPLE = 'date = { by = "quarter", from = "2018-01-01", to = "2020-12-31" }'

_LEAP_YEAR = "([0-9][0-9](0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)"
_DAY = (
    "([0-9][0-9][0-9][0-9]-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])"
    "|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))"
    f"|{_LEAP_YEAR}-02-29)"
)
# What the time of day and the zone behind a day are written with.
TIME = "0-9:.+ZUTC -"

# A text that holds a day: all engines read this pattern alike. Its first ten characters sort as
# days do, whatever follows them, so that texts can be compared with days as they are.
DAY_TEXT = f"{_DAY}([T ][{TIME}]+)?"


def day_number(day: date) -> float:
    """Return a day as rows are compared with it: days since the year 1970."""
    return float((day - date(1970, 1, 1)).days)


def read_day(who: str, given: object) -> date:
    """Return a day that a schema declares: a date, or a text such as 2019-03-14.

    Raises:
        SchemaError: it is no day.
    """
    if isinstance(given, str) and re.fullmatch(_DAY, given) and given >= "0001":
        given = date.fromisoformat(given)
    if not isinstance(given, date) or isinstance(given, datetime):
        shown = str(given) if isinstance(given, date) else repr(given)
        raise SchemaError(f"{who}: {shown} is not a date; write a day as 2019-03-14")
    if given == date.max:  # the day after it cannot be written
        raise SchemaError(f"{who}: dates go up to 9999-12-30, the day before {given}")
    return given


def read_days(who: str, given: Sequence[object]) -> tuple[date, ...]:
    """Return the edges of bins of days.

    Raises:
        SchemaError: some are no dates, or they do not rise.
    """
    if any(isinstance(edge, int | float) for edge in given):
        raise SchemaError(f"{who}: edges must be all numbers or all dates, not some of each")
    days = tuple(read_day(who, edge) for edge in given)
    if len(days) < 2:
        raise SchemaError(f"{who}: edges must be at least two dates")
    if any(low >= high for low, high in pairwise(days)):
        raise SchemaError(
            f"{who}: bins overlap; edges must rise strictly from each date to the next"
        )
    return days


@dataclass(frozen=True)
class Span:
    """Days from a first to a last one, divided into years, quarters or months.

    The first and the last period may be cut short by the ends of the span.

    Attributes:
        by: the period, one of ``PERIODS``.
        first: the first day.
        last: the last day.
    """

    by: str
    first: date
    last: date

    @cached_property
    def edges(self) -> tuple[date, ...]:
        """The first day of each bin, and the last day of the last one.

        These are the same where a span ends with the first day of a period.

        >>> [str(edge) for edge in Span("quarter", date(2018, 2, 1), date(2018, 7, 31)).edges]
        ['2018-02-01', '2018-04-01', '2018-07-01', '2018-07-31']
        """
        months = PERIODS[self.by]
        begins, ends = (_month(day) // months for day in (self.first, self.last))
        later = (divmod(period * months, 12) for period in range(begins + 1, ends + 1))
        return (self.first, *(date(year, month + 1, 1) for year, month in later), self.last)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """What the bins are called.

        >>> Span("month", date(2018, 11, 30), date(2019, 1, 1)).labels
        ('2018-11', '2018-12', '2019-01')
        """
        return tuple(_LABELS[self.by](day) for day in self.edges[:-1])

    @cached_property
    def said(self) -> tuple[str, ...]:
        """What a sentence calls the bins: months have names."""
        if self.by != "month":
            return self.labels
        return tuple(f"{_MONTHS[day.month - 1]} {day.year:04}" for day in self.edges[:-1])

    def to_dict(self) -> dict[str, str]:
        """Return the span as a schema file has it."""
        return {"by": self.by, "from": str(self.first), "to": str(self.last)}


_LABELS = {
    "year": lambda day: f"{day.year:04}",
    "quarter": lambda day: f"{day.year:04} Q{(day.month + 2) // 3}",
    "month": lambda day: f"{day.year:04}-{day.month:02}",
}


def read_span(who: str, declared: Any) -> Span:
    """Return the span that a schema declares.

    Raises:
        SchemaError: a part is missing or unknown, or the span ends before it starts.
    """
    if isinstance(declared, Span):
        declared = declared.to_dict()
    if not isinstance(declared, Mapping):
        raise SchemaError(f"{who}: date must be a table, such as {_EXAMPLE}")
    for key in declared:
        if key not in _KEYS:
            raise SchemaError(
                f"{who}: date has an unknown key {key!r}{did_you_mean(key, _KEYS)}; "
                f"allowed: {', '.join(_KEYS)}"
            )
    for key in _KEYS:
        if key not in declared:
            raise SchemaError(
                f"{who}: date has no {key!r}; the span is declared, never read off the rows: "
                f"{_EXAMPLE}"
            )
    by = declared["by"]
    if not isinstance(by, str) or by not in PERIODS:
        raise SchemaError(
            f"{who}: date is divided by one of {', '.join(PERIODS)}, not {by!r}"
            f"{did_you_mean(by, PERIODS)}"
        )
    first, last = (read_day(who, declared[key]) for key in ("from", "to"))
    if last < first:
        raise SchemaError(f"{who}: date ends on {last}, before it starts on {first}")
    return Span(by, first, last)


def _month(day: date) -> int:
    """Number the months, so that years and quarters are as many of them each."""
    return 12 * day.year + day.month - 1
