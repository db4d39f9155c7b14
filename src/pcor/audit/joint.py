"""Who is exposed by several releases taken together, and by how much at most. For the owner only.

Private: everything. Each release is audited by itself (``exposure``); somebody who changes the set
of valid contexts of any one record is exposed by the list. Draws are independent, so over all
answers at the sum of the epsilons a person faces at most 1 - prod(1 - delta_i); the proof is in
docs/proofs/README.md, "Exposed by a list". Nothing is computed here but that.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from pcor.audit.divergence import ERROR
from pcor.audit.owner_only import OwnerOnly
from pcor.audit.report import (
    NOTICEABLE,
    Exposed,
    ExposedRow,
    Exposure,
    chance,
    for_programs,
    position_verdict,
)
from pcor.errors import ParameterError, plain
from pcor.public.guarantee import OWNER_ONLY
from pcor.public.schema import Value

# People alike: their attribute values and metric; or all of their rows, those that go and those
# that stay.
_Kind = tuple[Any, ...]


def joint_delta(deltas: Iterable[float]) -> float:
    """Return a delta that holds for independent answers together, at the sum of their epsilons.

    >>> round(joint_delta([0.45, 0.5]), 12), joint_delta([0.3, 1.0]), joint_delta([])
    (0.725, 1.0, 0.0)
    """
    given = list(deltas)
    if any(delta >= 1 for delta in given):
        return 1.0
    # By logarithms: of many tiny ones nothing is lost to rounding.
    return 0.0 - math.expm1(math.fsum(math.log1p(-delta) for delta in given))


@dataclass(frozen=True, repr=False)
class JointlyExposed(OwnerOnly):
    """People alike whose coming or going changes COE for at least one record. Private.

    Attributes:
        kind: ``"removed"`` for people in the table, ``"added"`` for newcomers.
        values: their attribute values.
        metric: their metric.
        people: how many they are, queried records not counted; 1 for a newcomer.
        records: the records whose COE they change.
        delta: a bound on what all answers together give away of one of them, at the sum of the
            epsilons.
        rows: all rows that come or go with one of them; empty where each row is protected by
            itself.
        kept: rows of theirs that stay, being those of queried records.
    """

    kind: str
    values: dict[str, Value]
    metric: float
    people: int
    records: tuple[int | str, ...]
    delta: float
    rows: tuple[ExposedRow, ...] = ()
    kept: tuple[ExposedRow, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers for the owner's programs."""
        return for_programs(vars(self)) | {"records": list(self.records)}


@dataclass(frozen=True, repr=False)
class JointExposure(OwnerOnly):
    """Who several releases together would expose. Private: for the owner only.

    Attributes:
        found: what was found for each record by itself.
        exposed: people in the table who change the COE of at least one record, most exposed first.
        newcomers: the same for newcomers, at the metrics that were looked at for every record.
    """

    found: tuple[Exposure, ...]
    exposed: tuple[JointlyExposed, ...]
    newcomers: tuple[JointlyExposed, ...]

    @property
    def epsilon(self) -> Fraction:
        """The sum of the epsilons."""
        return sum((one.plan.bill.epsilon for one in self.found), Fraction(0))

    @property
    def exposed_people(self) -> int:
        """How many people in the table are exposed by at least one of the releases."""
        return sum(one.people for one in self.exposed)

    @property
    def largest_delta(self) -> float:
        """The bound for the person in the table who is most exposed; 0 where nobody is."""
        return max((one.delta for one in self.exposed), default=0.0)

    @property
    def verdict(self) -> str:
        """What it comes to, in plain words."""
        last = max(self.found, key=lambda one: one.rows_before)
        return " ".join(filter(None, [self._said(), position_verdict(last)]))

    def _said(self) -> str:
        epsilon = plain(self.epsilon)
        opening = f"Taken together, the releases for {len(self.found)} records, epsilon {epsilon}"
        unmoved = joint_delta(map(_unmoved, self.found))
        slack = f", but for a delta of {chance(unmoved)}" if unmoved else ""
        newcomers = (
            f" {len(self.newcomers):,} possible newcomers would be exposed; the bound on delta for "
            f"the most exposed is {chance(max(one.delta for one in self.newcomers))}."
            if self.newcomers
            else ""
        )
        if not self.exposed:
            return (
                f"{opening} in all, would expose nobody who was looked at: with or without any one "
                "of them no list of answers has a chance that differs by more than a factor "
                f"exp({epsilon}){slack}.{newcomers}"
            )
        count, faced = self.exposed_people, self._facing(NOTICEABLE)
        return (
            f"{opening} in all, would expose {'1 person' if count == 1 else f'{count:,} people'}, "
            f"the records themselves not counted: removing any one of them{self._with_rows} "
            "changes at least one of the sets of valid contexts. For the most exposed the bound on "
            f"delta over all answers is {chance(self.largest_delta)}. A delta above "
            f"{NOTICEABLE:g} is faced by {f'at most {faced:,}' if faced else 'none'} of them."
            f"{newcomers}"
        )

    @property
    def _with_rows(self) -> str:
        return ", with all rows but those of the records," if self.found[0].by_person else ""

    def _facing(self, delta: float) -> int:
        return sum(one.people for one in self.exposed if one.delta > delta)

    def __str__(self) -> str:
        return f"{OWNER_ONLY}\n{self.verdict}"

    def to_dict(self) -> dict[str, Any]:
        """Return everything but what was found for each record, for the owner's programs."""
        return {
            "owner_only": OWNER_ONLY,
            "records": [one.record for one in self.found],
            "verdict": self.verdict,
            "epsilon": plain(self.epsilon),
            "exposed_people": self.exposed_people,
            "largest_delta": self.largest_delta,
            "error": ERROR * len(self.found),
            "exposed": [one.to_dict() for one in self.exposed],
            "newcomers": [one.to_dict() for one in self.newcomers],
        }


def joint_exposure(found: Sequence[Exposure]) -> JointExposure:
    """Return who the releases of several records would expose together. For the owner only.

    Args:
        found: from ``pcor.audit.exposures``, all of one table; a record may occur more than once.

    Raises:
        ParameterError: there is no exposure, or they are of different tables; or people go with
            all of their rows, and not each audit left those of all records in the table.
    """
    if not found:
        raise ParameterError("give at least one audited record")
    if len({one.plan.schema for one in found}) > 1:
        raise ParameterError("the audits must be of one table")
    if found[0].by_person and not _same_rows_stay(found):
        raise ParameterError(
            "of people with several rows those of all records in a list stay, so they have to be "
            "audited together: pcor.audit.exposures(table, records, epsilon), or exposure with "
            "public=records"
        )
    shared = set.intersection(*(set(one.metrics) if one.tried else set() for one in found))
    newcomers = _joined(found, [one.newcomers for one in found])
    return JointExposure(
        tuple(found),
        _joined(found, [one.exposed for one in found]),
        tuple(one for one in newcomers if one.metric in shared),
    )


def _same_rows_stay(found: Sequence[Exposure]) -> bool:
    public = {key for one in found for key in one.public}
    return {one.record for one in found} <= public and all(
        set(one.public) == public for one in found
    )


def _joined(
    found: Sequence[Exposure], exposed: Sequence[Sequence[Exposed]]
) -> tuple[JointlyExposed, ...]:
    """Put together what each audit says of the same people, most exposed first."""
    met: dict[_Kind, dict[int, Exposed]] = {}
    for place, several in enumerate(exposed):
        for one in several:
            met.setdefault(_kind(one), {})[place] = one
    queried = {one.record: _own(one) for one in found}
    joined = []
    for kind, by_place in met.items():
        first = next(iter(by_place.values()))
        people = first.people
        if first.kind == "removed" and not first.rows:
            # A record is not counted in its own audit, but is in those of the others.
            alike = max(one.people + (_own(found[at]) == kind) for at, one in by_place.items())
            people = alike - list(queried.values()).count(kind)
        if people < 1:
            continue
        deltas = [
            by_place[at].delta if at in by_place else _unmoved(one) for at, one in enumerate(found)
        ]
        records = dict.fromkeys(found[at].record for at in by_place)
        joined.append(
            JointlyExposed(
                *(first.kind, first.values, first.metric, people),
                *(tuple(records), joint_delta(deltas), first.rows, first.kept),
            )
        )
    return tuple(sorted(joined, key=lambda one: (-one.delta, -len(one.records), one.metric)))


def _kind(one: Exposed) -> _Kind:
    own = tuple(one.values.values()), one.metric
    if not one.rows:
        return own
    return tuple(
        tuple((*row.values.values(), row.metric) for row in rows) for rows in (one.rows, one.kept)
    )


def _own(found: Exposure) -> _Kind:
    return tuple(found.values.values()), found.metric


def _unmoved(found: Exposure) -> float:
    """Return the delta of a release for people who do not change its COE."""
    return float(found.plan.bill.delta)
