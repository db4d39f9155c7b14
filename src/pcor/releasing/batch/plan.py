"""What a run over many records costs, and what that bounds; settled before any row is looked at.

Public: everything here. A plan is made from the schema and the list alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from pcor.errors import ParameterError, plain
from pcor.public.schema import Schema
from pcor.releasing.plan import Plan
from pcor.releasing.request import canonical_record
from pcor.releasing.settings import Settings
from pcor.rows.keys import check_key


@dataclass(frozen=True)
class ManyPlan:
    """What a run over many records does and costs at most.

    Attributes:
        each: what is done for one record.
        records: all of them, in the order asked; "17" is 17.
    """

    each: Plan
    records: tuple[int | str, ...]

    @property
    def count(self) -> int:
        """How many records there are; one that is listed twice is asked for once."""
        return len(set(self.records))

    @property
    def epsilon(self) -> Fraction:
        """The epsilon of all answers together, at most."""
        return self.count * self.each.bill.epsilon

    @property
    def delta(self) -> Fraction:
        """The delta of all answers together, at most."""
        return self.count * self.each.bill.delta

    @property
    def price(self) -> str:
        """The total, worked out."""
        slack = f" and delta {plain(self.delta)}" if self.delta else ""
        each = f"epsilon {plain(self.each.bill.epsilon)} each"
        return f"{self.count:,} records, {each}: epsilon {plain(self.epsilon)}{slack} at most"

    @property
    def together(self) -> str:
        """What the total bounds, and what it does not."""
        bounded = f"epsilon {plain(self.epsilon)}"
        bounded += f" and delta {plain(self.delta)}" if self.delta else ""
        return self.each.guarantee.together(bounded)

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as public parameters."""
        return {
            "records": self.count,
            "epsilon_each": plain(self.each.bill.epsilon),
            "epsilon_total": plain(self.epsilon),
            "delta_total": plain(self.delta),
            "together": self.together,
            "each": self.each.to_dict(),
        }

    def __str__(self) -> str:
        return f"{self.price}.\n{self.together}"


def plan_many(
    schema: Schema, records: Iterable[int | str], epsilon_each: object, **options: Any
) -> ManyPlan:
    """Plan a run over many records from public knowledge alone. Free.

    Args:
        schema: the public description of the table.
        records: their ids, or 0-based row numbers where the schema has no id.
        epsilon_each: the cost of each release, read as written.
        **options: as for ``pcor.release``: detector, search, utility, guarantee, ...

    Raises:
        ParameterError: the list is empty or not a list of keys, or the options do not go together.
        TooLarge: there are more contexts than may be drawn from.
    """
    return ManyPlan(Settings.of(**options).plan(schema, epsilon_each), listed(records))


def listed(records: Iterable[int | str]) -> tuple[int | str, ...]:
    """Return the keys as certificates spell them, or refuse the list."""
    if isinstance(records, str | bytes) or not isinstance(records, Iterable):
        raise ParameterError("records must be a list of keys; for one record use release")
    keys = []
    for key in records:
        check_key(key)
        keys.append(canonical_record(key))
    if not keys:
        raise ParameterError("records is empty: there is nothing to release")
    return tuple(keys)
