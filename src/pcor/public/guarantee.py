"""The promise: exactly what a release protects, against what, at what cost.

Public: everything here. The guarantee of the paper is (epsilon, COE)-OCDP, output constrained
differential privacy (paper, Definitions 2.4 and 2.5), and weaker than differential privacy; it is
never called by the stronger name. ``guarantee="dp"`` is differential privacy for everyone but the
queried record.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from pcor.errors import plain
from pcor.support import markup

GUARANTEES = ("ocdp", "dp")

# The first line of whatever promises nothing.
OWNER_ONLY = "OWNER ONLY: what follows is private and must not be released."

_RECORD = "the queried record itself: its values and its id or row number are public"
_POSITION = (
    "anyone whose row stands before the record's: the schema has no id column, so adding or "
    "removing such a row changes the record's row number, and the old number names another row"
)
_ROWS = "a person with several rows, beyond epsilon for each of them"
_TIME = "how long the computation took"


def _rows(delta: Fraction) -> str:
    """Say what a person with several rows has: k steps from neighbour to neighbour.

    Each step adds delta and multiplies what the steps before have added by exp(epsilon).
    """
    if delta == 0:
        return _ROWS
    growing = "delta * (1 + exp(epsilon) + ... + exp((k - 1) * epsilon))"
    return f"{_ROWS} and a delta that grows faster than their number: for k rows {growing}"


@dataclass(frozen=True)
class Promise:
    """What is protected.

    Attributes:
        epsilon: the total cost, exact.
        delta: the additive slack in the bound; 0 unless the user gave one.
        guarantee: "ocdp" or "dp".
        needed: under "dp", when the context is likely a valid one: what the plan needs for it.
        by_position: whether a record is named by its row number, for want of an id column.
    """

    epsilon: Fraction
    delta: Fraction = Fraction(0)
    guarantee: str = "ocdp"
    needed: str = ""
    by_position: bool = False

    @property
    def definition(self) -> str:
        """The name of the guarantee, in full."""
        bound = "epsilon" if self.delta == 0 else "epsilon, delta"
        if self.guarantee == "dp":
            return f"({bound})-differential privacy for everyone but the queried record"
        return f"({bound}, COE)-OCDP: output constrained differential privacy"

    @property
    def neighbours(self) -> str:
        """Which two tables are to be hard to tell apart."""
        if self.guarantee == "dp":
            return (
                "any two tables that fit the schema, hold the queried record once"
                f"{' and at the same place' if self.by_position else ''}, and differ by "
                "one other row, added or removed"
            )
        place = "the same place and " if self.by_position else ""
        return (
            "tables that differ by one added or removed row and in which the queried record has "
            f"{place}the same, non-empty set of valid contexts (COE)"
        )

    @property
    def not_protected(self) -> tuple[str, ...]:
        """Who or what the guarantee does not speak of."""
        record = (_RECORD, _POSITION) if self.by_position else (_RECORD,)
        if self.guarantee == "dp":
            return (
                *record,
                _rows(self.delta),
                "several releases taken together, beyond the sum of their epsilons and deltas",
                _TIME,
            )
        return (
            *record,
            "anyone whose presence changes the set of valid contexts (COE): the table without them "
            "is not a neighbour, and this definition promises nothing about it",
            "the set of valid contexts itself",
            _rows(self.delta),
            "several releases taken together, beyond the sum of their epsilons and deltas between "
            "tables on which every queried record keeps its set of valid contexts",
            _TIME,
        )

    @property
    def validity(self) -> str:
        """What is promised about the context itself."""
        if self.guarantee == "dp":
            needed = self.needed or (
                "If the record stands out somewhere by the margin that the plan states, it is "
                "likely an outlier in the context drawn; if not, nothing is said of it."
            )
            return (
                f"{needed} Which of these holds could reveal one person, so it is not said: a "
                "record that is no outlier anywhere gets a context too."
            )
        return "The record is an outlier in the context by the stated detector."

    def to_dict(self) -> dict[str, Any]:
        """Return the promise for a certificate."""
        return {
            "guarantee": self.guarantee,
            "definition": self.definition,
            "neighbours": self.neighbours,
            "epsilon": plain(self.epsilon),
            "delta": plain(self.delta),
            "validity": self.validity,
            "not_protected": list(self.not_protected),
            "text": str(self),
        }

    @property
    def claim(self) -> str:
        """What is protected, in two sentences."""
        relaxed = "" if self.guarantee == "dp" else "Relaxed guarantee, "
        also = "" if self.delta == 0 else f" and delta = {plain(self.delta)}"
        bound = (
            f"no answer's chance differs by more than a factor exp({plain(self.epsilon)})"
            if self.delta == 0
            else f"no set of answers is more than exp({plain(self.epsilon)}) times as likely on "
            f"one as on the other, plus {plain(self.delta)}"
        )
        return (
            f"{relaxed}{self.definition}, with epsilon = {plain(self.epsilon)}{also}. Between "
            f"{self.neighbours}, {bound}."
        )

    def to_html(self) -> str:
        """Return the promise in full as HTML to be put into a page."""
        return (
            markup.paragraph(self.claim)
            + markup.paragraph(self.validity)
            + markup.paragraph("Not protected:")
            + markup.listed(self.not_protected)
        )

    def _repr_html_(self) -> str:
        return markup.fragment(self.to_html())

    def __str__(self) -> str:
        return "\n".join(
            [
                self.claim,
                self.validity,
                "Not protected:",
                *(f"- {who}" for who in self.not_protected),
            ]
        )
