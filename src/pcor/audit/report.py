"""What an exposure audit found, in numbers and in plain words. For the owner only.

Private: everything; a repr shows nothing, and what is printed begins with the line that says so.
Nothing is computed here but sums. ``exposure`` fills it in.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pcor.audit.divergence import ERROR
from pcor.audit.owner_only import OwnerOnly
from pcor.errors import plain
from pcor.public.guarantee import OWNER_ONLY, PureDP
from pcor.public.schema import Value
from pcor.releasing.plan import Plan

# The report warns of any delta above this: one chance in a million.
NOTICEABLE = 1e-6


@dataclass(frozen=True, repr=False)
class ExposedRow(OwnerOnly):
    """A row of somebody who is exposed. Private."""

    values: dict[str, Value]
    metric: float

    def to_dict(self) -> dict[str, Any]:
        """Return it for the owner's programs."""
        return dict(vars(self))


@dataclass(frozen=True, repr=False)
class Exposed(OwnerOnly):
    """People alike whose coming or going changes COE: one cell, one metric. Private.

    Where the schema says whose rows are whose, they have the same rows.

    Attributes:
        kind: ``"removed"`` for people in the table, ``"added"`` for newcomers.
        values: their attribute values; of the row with the smallest metric where they have several.
        metric: their metric, likewise.
        people: how many they are; 1 for a newcomer.
        lost: how many contexts are valid with the table as it is and not after the change.
        gained: how many are valid only after it.
        delta: the smallest delta that bounds what the release gives away of one of them.
        ratio: the largest absolute log ratio of the chances of an answer that is possible with and
            without them; ``None`` where there is none. With facts, at most this: the context's is
            computed, and the facts' part of epsilon is added.
        rows: all rows that come or go with one of them, by rising metric; empty where each row is
            protected by itself.
        kept: rows of theirs that stay, being those of queried records.
    """

    kind: str
    values: dict[str, Value]
    metric: float
    people: int
    lost: int
    gained: int
    delta: float
    ratio: float | None
    rows: tuple[ExposedRow, ...] = ()
    kept: tuple[ExposedRow, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers for the owner's programs."""
        return for_programs(vars(self))


def for_programs(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of somebody exposed; their rows only where people may have several."""
    told = dict(fields)
    rows = {name: [row.to_dict() for row in told.pop(name)] for name in ("rows", "kept")}
    return told | rows if rows["rows"] else told


@dataclass(frozen=True, repr=False)
class Exposure(OwnerOnly):
    """Who is exposed by a release for one record. Private: for the owner only.

    Attributes:
        record: the record's key.
        plan: the plan of the release.
        contexts: in how many contexts the record is an outlier.
        people: how many rows were looked at, the record's own not counted. Where the schema says
            whose rows are whose: how many people, the record's own with their other rows.
        exposed: people in the table whose removal changes COE, most exposed first.
        tried: how many newcomers were looked at.
        newcomers: those who would change COE, most exposed first.
        metrics: the metrics of the newcomers.
        note: why something was not looked at; empty where everything was.
        everyone: under pure DP, the largest log ratio that anybody in the table or any
            newcomer looked at faces, with facts at most this; ``None`` where it was not computed.
        values: the record's own attribute values.
        metric: its own metric.
        newcomer_rows: how many rows the newcomers have, all alike.
        public: the keys of all records that stay when their person goes.
    """

    record: int | str
    plan: Plan
    contexts: int
    people: int
    exposed: tuple[Exposed, ...] = ()
    tried: int = 0
    newcomers: tuple[Exposed, ...] = ()
    metrics: tuple[float, ...] = ()
    note: str = ""
    everyone: float | None = None
    values: dict[str, Value] = field(default_factory=dict)
    metric: float = math.nan
    newcomer_rows: tuple[int, ...] = (1,)
    public: tuple[int | str, ...] = ()

    @property
    def by_person(self) -> bool:
        """Whether people come and go with all of their rows."""
        return self.plan.schema.unit.is_person

    @property
    def rows_before(self) -> int:
        """How many rows stand before the record where it is named by its row number; else 0."""
        return int(self.record) if self.plan.schema.id is None else 0

    @property
    def exposed_people(self) -> int:
        """How many people in the table are exposed."""
        return sum(one.people for one in self.exposed)

    @property
    def largest_delta(self) -> float:
        """The delta of the person in the table who is most exposed; 0 where nobody is."""
        return max((one.delta for one in self.exposed), default=0.0)

    @property
    def largest_newcomer_delta(self) -> float:
        """The delta of the newcomer who would be most exposed; 0 where none would be."""
        return max((one.delta for one in self.newcomers), default=0.0)

    @property
    def largest_ratio(self) -> float | None:
        """The largest log ratio of an answer that is possible with and without an exposed person.

        Under pure DP that of everybody. With facts, at most this: ``facts_ratio`` is in it.
        """
        if not self.plan.guarantee.relaxed:
            return self.everyone
        ratios = [one.ratio for one in self.exposed if one.ratio is not None]
        return max(ratios, default=None)

    @property
    def facts_ratio(self) -> float:
        """How much of each log ratio is the most that facts can add: their part of epsilon."""
        return float(self.plan.bill.facts)

    @property
    def ratio_words(self) -> str:
        """The largest log ratio in words, where there is one; with facts, what it is made of."""
        ratio = self.largest_ratio
        if ratio is None:
            return ""
        of_context = ratio - self.facts_ratio
        of_context = of_context if of_context > ERROR else 0.0
        if not self.plan.bill.facts:
            return f"the largest log ratio is {of_context:.6g}"
        return (
            f"the largest log ratio is at most {ratio:.6g}: {of_context:.6g} for the context, and "
            f"at most {plain(self.plan.bill.facts)} that the facts add"
        )

    def facing(self, delta: float) -> int:
        """Return how many people in the table face more than this delta."""
        return sum(one.people for one in self.exposed if one.delta > delta)

    @property
    def verdict(self) -> str:
        """What it comes to, in plain words."""
        said = _verdict(self) if self.plan.guarantee.relaxed else _pure_dp_verdict(self)
        return " ".join(filter(None, [said, position_verdict(self), self.note]))

    def __str__(self) -> str:
        return f"{OWNER_ONLY}\n{self.verdict}"

    def to_dict(self) -> dict[str, Any]:
        """Return everything, for the owner's programs."""
        return {
            "owner_only": OWNER_ONLY,
            "record": self.record,
            "verdict": self.verdict,
            "contexts": self.contexts,
            "people": self.people,
            "rows_before": self.rows_before,
            "exposed_people": self.exposed_people,
            "largest_delta": self.largest_delta,
            "largest_ratio": self.largest_ratio,
            **({"facts_ratio": self.facts_ratio} if self.plan.bill.facts else {}),
            "error": ERROR,
            "exposed": [one.to_dict() for one in self.exposed],
            "newcomers": {
                "metrics": list(self.metrics),
                "tried": self.tried,
                **({"rows": list(self.newcomer_rows)} if self.by_person else {}),
                "exposed": len(self.newcomers),
                "largest_delta": self.largest_newcomer_delta,
                "list": [one.to_dict() for one in self.newcomers],
            },
            "plan": self.plan.to_dict(),
        }


# -- in plain words -------------------------------------------------------------------------------

_INSTEAD = (
    f"Under guarantee {PureDP.name!r} (detectors {', '.join(PureDP.detectors)}) nobody would be: "
    "it covers everyone but the record."
)


def _verdict(found: Exposure) -> str:
    epsilon = plain(found.plan.bill.epsilon)
    opening = f"For record {found.record}, a release under OCDP with epsilon {epsilon} would expose"
    newcomers = _newcomers_verdict(found)
    if not found.exposed:
        so = "so the promise of OCDP holds for each"
        if not found.contexts:
            so = "and empty, so the answer is always that none was found"
        return (
            f"{opening} nobody of the {found.people:,} people looked at: the set of valid contexts "
            f"is the same without any one of them, {so}.{_own_person(found)}{newcomers}"
        )
    count = found.exposed_people
    who = "1 person" if count == 1 else f"{count:,} people"
    worst = (
        f"{opening} {who} of {found.people:,}: without any one of them the set of valid contexts "
        "is another one, and OCDP promises them nothing. The most exposed faces a delta of "
        f"{chance(found.largest_delta)}: {_meaning(found.largest_delta)}."
    )
    faced = found.facing(NOTICEABLE)
    many = f" More than {NOTICEABLE:g} is faced by {f'{faced:,}' if faced else 'none'} of them."
    return f"{worst}{many}{_own_person(found)}{newcomers} {_INSTEAD}"


def _newcomers_verdict(found: Exposure) -> str:
    if not found.tried:
        return ""
    tried = f"{found.tried:,} possible newcomers{_newcomer_rows(found)}"
    if not found.newcomers:
        return f" None of {tried} would change it."
    return (
        f" Of {tried} {len(found.newcomers):,} would change it; the "
        f"most exposed would face a delta of {chance(found.largest_newcomer_delta)}."
    )


def _newcomer_rows(found: Exposure) -> str:
    """Say how many rows the newcomers have, where they may have several."""
    if not found.by_person:
        return ""
    several = [f"{size:,} rows, all alike" for size in found.newcomer_rows if size > 1]
    return f" (each with {' or '.join(['1 row', *several])}; no others were tried)"


def position_verdict(found: Exposure) -> str:
    """Say what the record's own name tells, which no comparison of answers looks at."""
    schema = found.plan.schema
    if schema.id is not None:
        return ""
    declared = ", which the schema declares public" if schema.positions else ""
    return (
        "Not counted: the schema has no id column, so a record is its row number, which the rows "
        f"before it ({found.rows_before:,}) decide{declared}. To them, and to anybody who would "
        "come before it, nothing is promised: one row more or fewer, and that number names another "
        "row."
    )


def _pure_dp_verdict(found: Exposure) -> str:
    epsilon = plain(found.plan.bill.epsilon)
    computed = f" Computed on this table, {found.ratio_words}." if found.ratio_words else ""
    others = "people, with all of their rows" if found.by_person else "other people"
    return (
        f"For record {found.record}, a release under guarantee {PureDP.name!r} with epsilon "
        f"{epsilon} exposes nobody: with or without any one of the {found.people:,} {others}, "
        f"or a newcomer, {found.plan.promise.bound}.{_own_person(found)}{computed}"
    )


def _own_person(found: Exposure) -> str:
    """Say how the record's own person counts, where people have several rows."""
    if not found.by_person:
        return ""
    queried = "queried records stay" if len(found.public) > 1 else "the record stays"
    return (
        f" A person goes with all of their rows; {queried}, being public, when the other rows of "
        "their person go."
    )


def chance(delta: float) -> str:
    """Write a delta so that a tiny one does not read as 0, nor a near-certain one as 1.

    A computed 1 may be the rounding of a little less.

    >>> [chance(delta) for delta in (3e-12, 0.00042, 0.9834, 0.99999999, 1.0)]
    ['less than 1e-09', '0.00042', '0.983', '0.99999999', 'more than 0.999999999']
    """
    if delta < ERROR:
        return f"less than {ERROR:g}"
    if delta > 1 - ERROR:
        return f"more than {1 - ERROR:.9g}"
    return f"{delta:.3g}" if delta < 0.999 else f"{delta:.9g}"


def _meaning(delta: float) -> str:
    if delta > NOTICEABLE:
        return (
            "with at least that chance the answer, on the table with them or on the one without, "
            "tells those who know all other rows more than epsilon allows"
        )
    return "hardly anything, but no promise says so"
