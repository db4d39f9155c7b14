"""Guarantees: what a release protects, against what, at what cost; each states it in one place.

Public: everything here. The guarantee of the paper is (epsilon, COE)-OCDP, output constrained
differential privacy (paper, Definitions 2.4 and 2.5), and weaker than differential privacy; it is
never called by the stronger name. Pure DP is differential privacy for everyone but the queried
record. Whatever is said of either, anywhere, is said by its object here; ``Promise`` is what it
states for one release. What a guarantee asks of a release, its price and its candidates are in
``pcor.releasing.terms``, which knows detectors and searches.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from pcor.errors import UnknownName, plain
from pcor.public.unit import ROW, PrivacyUnit
from pcor.support import markup

# The first line of whatever promises nothing.
OWNER_ONLY = "OWNER ONLY: what follows is private and must not be released."

_RECORD = "the queried record itself: its values and its id or row number are public"
_RECORD_OF_PERSON = (
    "the queried record itself: its values, whose it is, and its id or row number are public; the "
    "other rows of its person are protected like another person's"
)
_POSITION = (
    "anyone whose row stands before the record's: the schema has no id column, so adding or "
    "removing such a row changes the record's row number, and the old number names another row"
)
_ROWS = "a person with several rows, beyond epsilon for each of them"
_TIME = "how long the computation took"


def _rows(delta: Fraction, unit: PrivacyUnit) -> str:
    """Say what a person who is several units has: k steps from neighbour to neighbour.

    Each step adds delta and multiplies what the steps before have added by exp(epsilon).
    """
    several, each = _ROWS, "rows"
    if unit.is_person:
        several = (
            f"somebody who is several people by the column {unit.person!r}, beyond epsilon for "
            "each of them"
        )
        each = "of them"
    if delta == 0:
        return several
    growing = "delta * (1 + exp(epsilon) + ... + exp((k - 1) * epsilon))"
    return f"{several} and a delta that grows faster than their number: for k {each} {growing}"


@dataclass(frozen=True)
class Guarantee:
    """A kind of promise. Two of one class are equal; ``OCDP`` and ``PureDP`` are the classes.

    Attributes:
        name: how a request, a certificate and a ledger spell it.
        title: what it is called in a list.
        relaxed: whether it is weaker than differential privacy: it compares only tables on which
            the record has the same set of valid contexts (COE).
        detectors: the names of those that it admits; empty for all.
        kind: what kind of promise that is, in one sentence.
        left_out: to whom nothing is promised, in one sentence; empty where there is nobody.
        condition: where it holds, in the middle of a sentence.
        drawn_from: what draws among all contexts, to begin the refusal of a space that is too
            large, and what to do instead: in Python, on the command line, at the service.
        instead: see ``drawn_from``.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    relaxed: ClassVar[bool]
    detectors: ClassVar[tuple[str, ...]] = ()
    kind: ClassVar[str]
    left_out: ClassVar[str] = ""
    condition: ClassVar[str]
    drawn_from: ClassVar[str]
    instead: ClassVar[tuple[str, str, str]]

    def definition(self, bound: str) -> str:
        """Return the name in full; ``bound`` lists the parameters."""
        raise NotImplementedError

    def neighbours(self, *, by_position: bool, unit: PrivacyUnit = ROW) -> str:
        """Return which two tables are to be hard to tell apart."""
        raise NotImplementedError

    def not_protected(
        self, record: tuple[str, ...], delta: Fraction, unit: PrivacyUnit = ROW
    ) -> tuple[str, ...]:
        """Return who or what it does not speak of, beginning with the record."""
        raise NotImplementedError

    def exceptions(self, *, by_position: bool, unit: PrivacyUnit = ROW) -> tuple[str, ...]:
        """Return for whom or what it does not hold, in words for everybody.

        A certificate has ``not_protected``, which says it in full.
        """
        return (
            *(("anybody who stands before this record in the data",) if by_position else ()),
            "somebody who is in the data under several names"
            if unit.is_person
            else "all that somebody has in the data together, if that is several rows",
            "what several letters about the same data tell together: it adds up",
        )

    def validity(self, needed: str) -> str:
        """Return what is promised about the context itself."""
        raise NotImplementedError

    def plainly(self, bound: str, record: int | str) -> str:
        """Return what a bound on one person's influence holds for, in plain words."""
        raise NotImplementedError

    def returned(self, record: int | str, metric: str, validity: str) -> str:
        """Return what comes back, in plain words."""
        raise NotImplementedError

    def together(self, bounded: str) -> str:
        """Return what a bound on many answers together means."""
        raise NotImplementedError

    def to_group(self, who: str, moved: str, one: str, bounded: str, kept: str) -> str:
        """Return what a release promises to a group of people.

        Args:
            who: the group.
            moved: their absence or arrival.
            one: the release.
            bounded: the epsilon that it promises to all of them.
            kept: how often COE stayed the same when such groups were tried.
        """
        raise NotImplementedError

    def __str__(self) -> str:
        return self.name


class OCDP(Guarantee):
    """Output constrained differential privacy, the paper's relaxed guarantee."""

    name = "ocdp"
    title = "OCDP (relaxed)"
    relaxed = True
    kind = (
        "This is the relaxed guarantee OCDP, weaker than differential privacy: to a person for "
        "whom that does not hold, nothing is promised."
    )
    left_out = (
        "The relaxed guarantee promises nothing to a person without whom the record would stand "
        "out in other groups than it does."
    )
    condition = "only where COE is the same"
    drawn_from = "search 'direct'"
    instead = (
        "use search='widest_first'",
        "use --search widest_first",
        "register it with search widest_first",
    )

    def definition(self, bound: str) -> str:
        """Name it with the set that it is constrained to."""
        return f"({bound}, COE)-OCDP: output constrained differential privacy"

    def neighbours(self, *, by_position: bool, unit: PrivacyUnit = ROW) -> str:
        """Compare only tables with the same COE."""
        place = "the same place and " if by_position else ""
        differ = unit.difference if unit.is_person else "one added or removed row"
        return (
            f"tables that differ by {differ} and in which the queried record has "
            f"{place}the same, non-empty set of valid contexts (COE)"
        )

    def not_protected(
        self, record: tuple[str, ...], delta: Fraction, unit: PrivacyUnit = ROW
    ) -> tuple[str, ...]:
        """Name those who change COE, and COE itself."""
        return (
            *record,
            "anyone whose presence changes the set of valid contexts (COE): the table without them "
            "is not a neighbour, and this definition promises nothing about it",
            "the set of valid contexts itself",
            _rows(delta, unit),
            "several releases taken together, beyond the sum of their epsilons and deltas between "
            "tables on which every queried record keeps its set of valid contexts",
            _TIME,
        )

    def exceptions(self, *, by_position: bool, unit: PrivacyUnit = ROW) -> tuple[str, ...]:
        """Begin with those who change COE: to them nothing is promised."""
        return (
            "anybody without whom this record would stand out in other groups than it does now; "
            "to them nothing is promised",
            *super().exceptions(by_position=by_position, unit=unit),
        )

    def validity(self, needed: str) -> str:
        """Only valid contexts are drawn from."""
        del needed
        return "The record is an outlier in the context by the stated detector."

    def plainly(self, bound: str, record: int | str) -> str:
        """Add the condition on the record's groups."""
        return (
            f"{bound}; provided that record {record} stands out in the same groups with them as "
            "without them."
        )

    def returned(self, record: int | str, metric: str, validity: str) -> str:
        """The group is a valid one, or there is none."""
        del validity
        return (
            f"One sentence naming a group of rows in which record {record} is an outlier by "
            f"{metric}; or, if there is none, that there is none, at the same cost."
        )

    def together(self, bounded: str) -> str:
        """Each record adds a condition."""
        return (
            f"All answers together are bounded by {bounded} only between tables on which every "
            "one of these records keeps its set of valid contexts. Each record adds such a "
            "condition: a person whose presence changes one of these sets is not protected by the "
            f"total, however small it is. For many records prefer guarantee {PureDP.name!r}."
        )

    def to_group(self, who: str, moved: str, one: str, bounded: str, kept: str) -> str:
        """Nothing is promised to a group that changes COE."""
        return (
            f"To {who} whose {moved} leaves the set of valid contexts as it is, {one} promises "
            f"{bounded}; {kept}. To others OCDP promises nothing."
        )


class PureDP(Guarantee):
    """Differential privacy for everyone but the queried record."""

    name = "dp"
    title = "DP for all but the record"
    relaxed = False
    detectors = ("tail", "neighbourhood", "rare_bin")
    kind = "This is differential privacy for everyone but the record itself, which is public."
    condition = "whatever becomes of COE"
    drawn_from = "guarantee 'dp'"
    instead = (
        f"use guarantee={OCDP.name!r}, or declare fewer values",
        f"use --guarantee {OCDP.name}, or declare fewer values",
        f"register it with guarantee {OCDP.name}, or a schema with fewer values",
    )

    def definition(self, bound: str) -> str:
        """Name it with who is left out."""
        return f"({bound})-differential privacy for everyone but the queried record"

    def neighbours(self, *, by_position: bool, unit: PrivacyUnit = ROW) -> str:
        """Compare any two tables that hold the record."""
        differ = unit.difference if unit.is_person else "one other row, added or removed"
        return (
            "any two tables that fit the schema, hold the queried record once"
            f"{' and at the same place' if by_position else ''}, and differ by {differ}"
        )

    def not_protected(
        self, record: tuple[str, ...], delta: Fraction, unit: PrivacyUnit = ROW
    ) -> tuple[str, ...]:
        """Name nobody but the record, and what no guarantee for one row speaks of."""
        return (
            *record,
            _rows(delta, unit),
            "several releases taken together, beyond the sum of their epsilons and deltas",
            _TIME,
        )

    def validity(self, needed: str) -> str:
        """Say when the context is likely a valid one, never whether it is."""
        wanted = needed or (
            "If the record stands out somewhere by the margin that the plan states, it is "
            "likely an outlier in the context drawn; if not, nothing is said of it."
        )
        return (
            f"{wanted} Which of these holds could reveal one person, so it is not said: a "
            "record that is no outlier anywhere gets a context too."
        )

    def plainly(self, bound: str, record: int | str) -> str:
        """There is no condition."""
        del record
        return f"{bound}."

    def returned(self, record: int | str, metric: str, validity: str) -> str:
        """The group may be any."""
        return f"One sentence naming a group of rows for record {record} and {metric}. {validity}"

    def together(self, bounded: str) -> str:
        """The sum bounds it, for all who are not asked about."""
        return (
            f"All answers together are bounded by {bounded} for everyone who is not one of "
            "these records, if they are the only ones about these people."
        )

    def to_group(self, who: str, moved: str, one: str, bounded: str, kept: str) -> str:
        """It holds for every group."""
        del kept
        return (
            f"To {who} {one} under guarantee {self.name!r} promises {bounded}, whatever their "
            f"{moved} does to the set of valid contexts."
        )


# What a release has if nobody says otherwise.
USUAL: Guarantee = OCDP()
# By name, the usual one first.
GUARANTEES: dict[str, Guarantee] = {one.name: one for one in (USUAL, PureDP())}
# What they are called in a list, by name.
TITLES = {name: one.title for name, one in GUARANTEES.items()}


def get_guarantee(guarantee: str | Guarantee) -> Guarantee:
    """Return a guarantee from its name."""
    if any(type(guarantee) is type(known) for known in GUARANTEES.values()):
        return guarantee  # type: ignore[return-value]
    if not isinstance(guarantee, str) or guarantee not in GUARANTEES:
        raise UnknownName("guarantee", guarantee, GUARANTEES)
    return GUARANTEES[guarantee]


@dataclass(frozen=True)
class Promise:
    """What is protected by one release: its guarantee, stated with the release's own numbers.

    Attributes:
        epsilon: the total cost, exact.
        delta: the additive slack in the bound; 0 unless the user gave one.
        guarantee: which kind of promise.
        needed: under pure DP, when the context is likely a valid one: what the plan needs for it.
        by_position: whether a record is named by its row number, for want of an id column.
        unit: who is protected, a row or a person with all of theirs.
        facts: how much of epsilon pays for numbers about the context drawn.
    """

    epsilon: Fraction
    delta: Fraction = Fraction(0)
    guarantee: Guarantee = USUAL
    needed: str = ""
    by_position: bool = False
    unit: PrivacyUnit = ROW
    facts: Fraction = Fraction(0)

    @property
    def definition(self) -> str:
        """The name of the guarantee, in full."""
        return self.guarantee.definition("epsilon" if self.delta == 0 else "epsilon, delta")

    @property
    def neighbours(self) -> str:
        """Which two tables are to be hard to tell apart."""
        return self.guarantee.neighbours(by_position=self.by_position, unit=self.unit)

    @property
    def not_protected(self) -> tuple[str, ...]:
        """Who or what the guarantee does not speak of."""
        own = _RECORD_OF_PERSON if self.unit.is_person else _RECORD
        record = (own, _POSITION) if self.by_position else (own,)
        return self.guarantee.not_protected(record, self.delta, self.unit)

    @property
    def exceptions(self) -> tuple[str, ...]:
        """For whom or what it does not hold, in words for everybody."""
        return self.guarantee.exceptions(by_position=self.by_position, unit=self.unit)

    @property
    def validity(self) -> str:
        """What is promised about the context itself."""
        return self.guarantee.validity(self.needed)

    @property
    def numbers(self) -> str:
        """What is promised of the facts by themselves; "" where there are none."""
        if self.facts == 0:
            return ""
        return (
            f"Of this epsilon, {plain(self.facts)} pays for the numbers. By themselves, whatever "
            "context they are of, they are differentially private for everyone but the record, "
            f"with epsilon = {plain(self.facts)} and without a condition on COE."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the promise for a certificate."""
        return {
            "guarantee": self.guarantee.name,
            "definition": self.definition,
            "neighbours": self.neighbours,
            "epsilon": plain(self.epsilon),
            "delta": plain(self.delta),
            "validity": self.validity,
            **({"facts": self.numbers} if self.facts else {}),
            "not_protected": list(self.not_protected),
            "text": str(self),
        }

    @property
    def bound(self) -> str:
        """How hard two such tables are to tell apart, in the middle of a sentence."""
        if self.delta == 0:
            return f"no answer's chance differs by more than a factor exp({plain(self.epsilon)})"
        return (
            f"no set of answers is more than exp({plain(self.epsilon)}) times as likely on one as "
            f"on the other, plus {plain(self.delta)}"
        )

    @property
    def claim(self) -> str:
        """What is protected, in two sentences."""
        relaxed = "Relaxed guarantee, " if self.guarantee.relaxed else ""
        also = "" if self.delta == 0 else f" and delta = {plain(self.delta)}"
        return (
            f"{relaxed}{self.definition}, with epsilon = {plain(self.epsilon)}{also}. Between "
            f"{self.neighbours}, {self.bound}."
        )

    def to_html(self) -> str:
        """Return the promise in full as HTML to be put into a page."""
        return (
            markup.paragraph(self.claim)
            + (markup.paragraph(self.numbers) if self.facts else "")
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
                *([self.numbers] if self.facts else []),
                self.validity,
                "Not protected:",
                *(f"- {who}" for who in self.not_protected),
            ]
        )
