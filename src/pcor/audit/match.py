"""COE match: how often does the set of valid contexts survive when some people come or go?

Private, and NOT PRIVATE in how it is made: seeded, computed from the rows, for the owner only.

The paper (Section 6) removes random rows and reports how well COE matches, without saying whether
that is the share of tables with exactly the same COE or the mean overlap of the two sets; both are
given here, and the share of the old contexts that stay valid. It never adds rows; we do. Where the
schema says whose rows are whose, people come and go with all of their rows.

Group privacy: between two tables that differ by k added or k removed rows and have the same COE,
no answer's chance differs by more than a factor exp(k * epsilon). Every search takes from the table
only COE, which is the same, and scores, which one row moves by at most the sensitivity; with COE
held fixed, k steps of one row each cost epsilon each. Whether COE changes on the way does not
matter. Where the two sets differ, OCDP promises nothing: that is the share to look at. With a delta
each step also adds delta, which the steps after it multiply by exp(epsilon) each.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pcor.audit.changed import Row, cell_codes, changed_table, verdicts
from pcor.audit.owner_only import OwnerOnly
from pcor.audit.people import kinds_of_people
from pcor.detectors import Detector, get_detector
from pcor.errors import ParameterError, UnknownName, check_whole, plain
from pcor.public.accounting import exact
from pcor.public.guarantee import Promise
from pcor.rows.table import Record, Table
from pcor.search.blocks import ENUMERATION_LIMIT
from pcor.search.coe import Progress, check_size
from pcor.search.validity import Validity

CHANGES = (1, 5, 10, 25)
REPEATS = 50
KINDS = ("removed", "added")

# Contexts judged in one go.
_AT_ONCE = 1 << 16

Verdicts = NDArray[np.bool_]


@dataclass(frozen=True, repr=False)
class Match(OwnerOnly):
    """How COE changes when a number of rows come or go. Private: for the owner only.

    Attributes:
        kind: ``"removed"`` or ``"added"``.
        changes: how many rows come or go at once; how many people, where the schema says whose rows
            are whose.
        repeats: how many random tables were looked at.
        equal: the share of them on which COE is the same set.
        overlap: the mean of |A & B| / |A | B| of the old set A and the new one B; 1 where both are
            empty.
        kept: the mean share of the old contexts that are valid on the new table; 1 where there are
            none.
    """

    kind: str
    changes: int
    repeats: int
    equal: float
    overlap: float
    kept: float

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers for the owner's programs."""
        return asdict(self)

    def group(self, promise: Promise) -> str:
        """Say what a release promises to a group of this size."""
        who = "one person" if self.changes == 1 else f"a group of {self.changes}"
        moved = "absence" if self.kind == "removed" else "arrival"
        one = f"a release with epsilon {plain(promise.epsilon)}"
        all_of_them = plain(group_epsilon(promise.epsilon, self.changes))
        if promise.delta:
            one += f" and delta {float(promise.delta):g}"
            slack = group_delta(promise.epsilon, promise.delta, self.changes)
            all_of_them += f" with a delta of {slack:.3g}"
        kept = f"in {self.equal:.1%} of {self.repeats} random tries it did"
        return promise.guarantee.to_group(who, moved, one, all_of_them, kept)


def group_epsilon(epsilon: object, people: int) -> Fraction:
    """Return what a release promises to a group whose coming or going leaves COE as it is.

    >>> str(group_epsilon("0.2", 5))
    '1'
    """
    check_whole("people", people)
    return exact(epsilon) * people


def group_delta(epsilon: object, delta: object, people: int) -> float:
    """Return the slack that goes with ``group_epsilon``: delta for each, times all factors after.

    >>> round(group_delta("0.2", "0.001", 5), 6)
    0.007761
    """
    check_whole("people", people)
    one, slack = float(exact(epsilon)), float(exact(delta, "delta"))
    # Beyond what float64 holds it is beyond 1 too.
    factors = math.expm1(one * people) / math.expm1(one) if one * people < 700 else math.inf
    return min(1.0, slack * factors)


def coe_match(
    table: Table,
    record: int | str,
    detector: str | Detector | None = None,
    *,
    changes: Sequence[int] = CHANGES,
    repeats: int = REPEATS,
    kind: str = "removed",
    seed: int = 0,
    limit: int = ENUMERATION_LIMIT,
    progress: Progress | None = None,
) -> list[Match]:
    """Return how COE changes on random changed tables, by number of rows. For the owner only.

    Removed rows are drawn without replacement from all but the record itself. Of an added row
    every attribute value is drawn uniformly from its declared domain, and the metric is that of a
    row of the table, drawn uniformly: so that newcomers earn what people do, wherever they are.

    Where the schema says whose rows are whose, people are drawn and not rows: they go with all of
    their rows, the record's own person with all but the record; and who is added has as many rows
    as somebody in the table, drawn uniformly, each as above.

    Args:
        table: the rows.
        record: the record's key.
        detector: a detector or its name; by default that of the schema, or lof.
        changes: how many rows, or people, come or go at once.
        repeats: how many random tables for each.
        kind: ``"removed"`` or ``"added"``.
        seed: of the random rows.
        limit: the largest space to enumerate.
        progress: called with (tables done, tables in all) now and then.

    Raises:
        ParameterError: ``kind``, ``seed`` or ``changes`` is out of range.
        TooLarge: the space is larger than the limit.
    """
    if kind not in KINDS:
        raise UnknownName("kind", kind, KINDS)
    check_whole("repeats", repeats)
    if not isinstance(seed, int) or isinstance(seed, bool) or seed < 0:
        raise ParameterError("seed must be a whole number of at least 0")
    for number in changes:
        check_whole("changes", number)
    found = table.record(record)
    check_size(found.space.size, limit)
    table = table.holding(found)
    rows = _Rows(table, Row.of(table.schema, found.space.fixed, found.value))
    drawable = _DrawablePeople(table, found, rows) if table.schema.unit.is_person else rows
    if kind == "removed" and max(changes, default=0) > drawable.others:
        who = "people" if table.schema.unit.is_person else "rows"
        raise ParameterError(f"changes must be at most the number of {who} beside the record")
    rule = get_detector(detector, table.schema)
    before = verdicts(Validity(table, found, rule))
    numbers = np.random.default_rng(seed)
    matches = []
    for done, count in enumerate(changes):
        shares = np.empty((repeats, 3))
        for repeat in range(repeats):
            draw = drawable.some if kind == "removed" else drawable.new
            drawn = draw(count, numbers)
            other = changed_table(table, **{kind: drawn})
            validity = Validity(other, found, rule)
            shares[repeat] = _shares(before, _after(before, validity, drawn))
            if progress is not None:
                progress(done * repeats + repeat + 1, len(changes) * repeats)
        matches.append(Match(kind, count, repeats, *shares.mean(axis=0).tolist()))
    return matches


class _Rows:
    """The rows of a table that can be drawn, by number. Private."""

    def __init__(self, table: Table, own: Row) -> None:
        cells = table.cells.in_memory()
        self._schema, self._values = table.schema, cells.values
        self._places = cell_codes(table)
        self._cells = cells.pair_cells
        counts = cells.counts.astype(np.int64)
        self._ends = np.cumsum(counts)  # every row, to take a metric from
        mine = cells.alike(table.words([own.mask(table.schema)])[0], own.value)
        counts[mine[0]] -= 1  # the record itself stays
        self._ends_of_others = np.cumsum(counts)
        self.others = int(self._ends_of_others[-1])

    def some(self, count: int, numbers: np.random.Generator) -> list[Row]:
        """Draw rows that are there."""
        drawn = numbers.choice(self.others, count, replace=False)
        pairs = np.searchsorted(self._ends_of_others, drawn, side="right")
        return [
            Row(tuple(self._places[self._cells[pair]].tolist()), float(self._values[pair]))
            for pair in pairs
        ]

    def new(self, count: int, numbers: np.random.Generator) -> list[Row]:
        """Draw rows that could come."""
        sizes = [len(attribute.values) for attribute in self._schema.attributes]
        places = numbers.integers(0, sizes, (count, len(sizes)))
        pairs = np.searchsorted(
            self._ends, numbers.integers(0, self._ends[-1], count), side="right"
        )
        return [
            Row(tuple(where), value)
            for where, value in zip(places.tolist(), self._values[pairs].tolist(), strict=True)
        ]


class _DrawablePeople:
    """The people of a table that can be drawn, by number. Private."""

    def __init__(self, table: Table, record: Record, rows: _Rows) -> None:
        self._rows = rows
        kinds = kinds_of_people(table, record)
        self._going = [kind.rows for kind in kinds for _ in range(kind.people)]
        self._sizes = np.unique(table.people, return_counts=True)[1]
        self.others = len(self._going)

    def some(self, count: int, numbers: np.random.Generator) -> list[Row]:
        """Draw people who are there; return all of their rows."""
        drawn = numbers.choice(self.others, count, replace=False)
        return [row for person in drawn for row in self._going[person]]

    def new(self, count: int, numbers: np.random.Generator) -> list[Row]:
        """Draw people who could come; return all of their rows."""
        return self._rows.new(int(numbers.choice(self._sizes, count).sum()), numbers)


def _after(before: Verdicts, validity: Validity, changed: Sequence[Row]) -> Verdicts:
    """Return the verdicts on the changed table.

    A context that covers no changed row has the population it had. Where those are most, only the
    others are judged again, one by one; otherwise all of them, block by block, which is faster for
    each.
    """
    from pcor._kernels.lattice import all_totals

    space, table = validity.record.space, validity.table
    words = table.words([row.mask(table.schema) for row in changed])
    required = space.indices_of(words).astype(np.int64)
    radices = np.array(space.radices, dtype=np.int64)
    touched = all_totals(required, np.ones(len(required), dtype=np.int64), radices) > 0
    if 3 * np.count_nonzero(touched) > len(touched):
        return verdicts(validity)
    after = before.copy()
    indices = np.flatnonzero(touched).astype(np.uint64)
    for first in range(0, len(indices), _AT_ONCE):
        part = indices[first : first + _AT_ONCE]
        after[part] = validity.of_words(space.words_of(part))
    return after


def _shares(before: Verdicts, after: Verdicts) -> tuple[float, float, float]:
    """Return whether the sets are equal, their overlap, and the share of the old one that stays."""
    both, old = np.count_nonzero(before & after), np.count_nonzero(before)
    either = np.count_nonzero(before | after)
    return float(both == either), both / either if either else 1.0, both / old if old else 1.0
