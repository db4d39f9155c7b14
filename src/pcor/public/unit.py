"""PrivacyUnit: who is protected. A row, or a person with up to so many rows.

Public: everything here. With a person, neighbours differ by all rows of one person, so whatever
one row can change is multiplied by how many rows a person has at most (docs/proofs/people.md). The
bound is declared, never read off the rows; someone with more rows is refused when the table is
made, or only so many of theirs are kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pcor.errors import SchemaError
from pcor.public.domain_parts import check_name

# What to do about a person with more rows than declared; the usual one first.
OVER = ("error", "keep")

# The largest bound that may be declared.
MOST_ROWS_PER_PERSON = 1_000_000


@dataclass(frozen=True)
class PrivacyUnit:
    """Who is protected: a row; or a person, with all rows that they may have.

    Attributes:
        person: the column that says whose a row is; ``None`` where each row is protected by itself.
        rows: how many rows of one person a table has at most; 1 where the unit is a row.
        over: what happens to a person with more: "error", or "keep" for a fixed choice of them.

    >>> PrivacyUnit("employee", 8).row_changes, PrivacyUnit("employee", 8, "keep").row_changes
    (8, 16)
    """

    person: str | None = None
    rows: int = 1
    over: str = "error"

    @property
    def is_person(self) -> bool:
        """Whether all rows of a person are protected at once."""
        return self.person is not None

    @property
    def chooses(self) -> bool:
        """Whether only some rows of a person with too many are counted."""
        return self.over == "keep"

    @property
    def changes(self) -> int:
        """How many changes of one person's rows lie between neighbours, each in one direction.

        Where rows are chosen, those that arrive can take the place of rows that were there: one
        change adds rows, another removes some.
        """
        return 2 if self.chooses else 1

    @property
    def row_changes(self) -> int:
        """How many rows are added or removed, one after the other, between neighbours at most."""
        return self.rows * self.changes

    @property
    def difference(self) -> str:
        """How neighbouring tables differ, where a person is protected; part of a sentence."""
        counted = " of which are counted" if self.chooses else ""
        return (
            f"all rows of one person, at most {self.rows:,}{counted} (for the record's own person: "
            "all of their other rows)"
        )

    @property
    def whose(self) -> str:
        """What somebody has in the table: "the row" or "the rows"."""
        return "the rows" if self.is_person else "the row"

    @property
    def summary(self) -> str:
        """Who is protected, as a line to add to a plan; nothing where that is a row."""
        if not self.is_person:
            return ""
        kept = ", and no more are counted" if self.chooses else ""
        return (
            f"\nProtected: a person by {self.person!r}, with up to {self.rows:,} rows together"
            f"{kept}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return who is protected, for certificates and plans."""
        if not self.is_person:
            return {"protects": "row"}
        return {
            "protects": "person",
            "person": self.person,
            "rows_per_person": self.rows,
            "over": self.over,
        }


# Each row by itself, where a schema does not say whose rows are whose.
ROW = PrivacyUnit()


def declared_unit(person: object, rows: object, over: object) -> PrivacyUnit:
    """Return the unit that a schema declares.

    Raises:
        SchemaError: a part of it is missing, or cannot be.
    """
    if over not in OVER:
        raise SchemaError(
            f'over must be "error" (refuse a person with more rows) or "keep" (count only '
            f"rows_per_person of them), not {over!r}"
        )
    if person is None and rows is None and over == OVER[0]:
        return ROW
    if person is None or rows is None:
        raise SchemaError(
            "person (the column that says whose a row is) and rows_per_person (how many rows of "
            "one person there are at most) go together, and over goes with them; declare both or "
            "neither"
        )
    check_name("the person column", person)
    most = MOST_ROWS_PER_PERSON
    if not isinstance(rows, int) or isinstance(rows, bool) or not 1 <= rows <= most:
        raise SchemaError(
            f"rows_per_person must be a whole number from 1 to {most:,}, not {rows!r}"
        )
    return PrivacyUnit(str(person), rows, str(over))
