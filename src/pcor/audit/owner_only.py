"""For the owner only: people alike, and who of them is exposed. Private: everything here."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

from pcor.public.guarantee import OWNER_ONLY
from pcor.public.schema import Value


class OwnerOnly:
    """A private value. Where it is shown by accident it says no more than that."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: PRIVATE, for the owner only>"


@dataclass(frozen=True, repr=False)
class PeopleAlike(OwnerOnly):
    """People of one cell and one metric, whose coming or going changes COE. Private.

    Attributes:
        kind: ``"removed"`` for people in the table, ``"added"`` for newcomers.
        values: their attribute values.
        metric: their metric.
        people: how many they are, queried records not counted; 1 for a newcomer.
    """

    kind: str
    values: dict[str, Value]
    metric: float
    people: int

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers for the owner's programs."""
        return {k: list(v) if isinstance(v, tuple) else v for k, v in vars(self).items()}


class ExposedPeople(OwnerOnly):
    """Who is exposed, by one release or by several; the people of ``exposed`` have a delta."""

    exposed: tuple[Any, ...]

    @property
    def exposed_people(self) -> int:
        """How many people in the table are exposed."""
        return self.facing(-1.0)

    @property
    def largest_delta(self) -> float:
        """The delta of the person in the table who is most exposed; 0 where nobody is."""
        return max((one.delta for one in self.exposed), default=0.0)

    def facing(self, delta: float) -> int:
        """Return how many people in the table face more than this delta."""
        return sum(one.people for one in self.exposed if one.delta > delta)

    @property
    @abstractmethod
    def verdict(self) -> str:
        """What it comes to, in plain words."""

    def __str__(self) -> str:
        return f"{OWNER_ONLY}\n{self.verdict}"
