"""The domain of a column: what a schema declares of the metric and of each attribute.

Public: everything here. A domain is checked when it is declared: values of one kind, none twice,
bins that do not overlap. ``Attribute.cell_code`` says which value a cell has, for every way of
reading a table; ``find_code`` which value a word of a context, a group or a sentence is.
"""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass, replace
from datetime import date as Day  # noqa: N812 (an attribute has a field of that name)
from functools import cached_property
from itertools import pairwise
from typing import Any

from pcor.errors import ContextError, SchemaError, did_you_mean
from pcor.public.dates import ONE_DAY, Span, day_number, read_span
from pcor.public.domain_parts import Edge as Edge
from pcor.public.domain_parts import Value as Value
from pcor.public.domain_parts import (
    bin_labels,
    check_name,
    check_order,
    check_word,
    checked_edges,
    checked_shares,
    checked_values,
    is_same,
    kind_of,
)
from pcor.public.family import Groups, check_kind, read_groups
from pcor.public.grid import MetricGrid, read_grid
from pcor.public.spellings import (
    Aliases,
    Merge,
    Spellings,
    check_rules,
    read_rules,
    read_words,
    spellings_of,
)

OUTSIDE = ("error", "drop", "other")
MISSING = ("error", "drop")

# Kinds of values that are not numbers.
_WITHOUT_UNIT = ("text", "boolean", "mixed")


@dataclass(frozen=True)
class Metric:
    """The numeric column by which outliers are judged.

    Attributes:
        column: its name.
        missing: what a missing metric does: ``"error"`` refuses the table, ``"drop"`` leaves the
            row out.
        label: what people call it; by default its column.
        unit: what a number of it is followed by: "hours a week".
        missing_values: words that mean no value: ``["?", "n/a", "-1"]``. A number among them means
            that number however it is written.
        low: the least number at which a quantile of it may be released (facts),
        high: the largest,
        step: and how far apart these numbers are. All three or none; public like the rest, and
            what could occur, not what did.
    """

    column: str
    missing: str = "error"
    label: str | None = None
    unit: str | None = None
    missing_values: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    step: float | None = None

    def __post_init__(self) -> None:
        check_name("the metric column", self.column)
        read_grid(self.low, self.high, self.step)
        words = read_words(f"metric {self.column!r}", self.missing_values)
        object.__setattr__(self, "missing_values", words)
        check_word(f"metric {self.column!r}: its label", self.label)
        check_word(f"metric {self.column!r}: its unit", self.unit)
        if self.missing not in MISSING:
            raise SchemaError(
                f"metric {self.column!r}: missing must be one of {', '.join(MISSING)}, "
                f"not {self.missing!r}"
            )

    @property
    def spoken(self) -> str:
        """What a sentence calls it."""
        return self.column if self.label is None else self.label

    @property
    def grid(self) -> MetricGrid | None:
        """The numbers at which its quantiles may be released, where they are declared."""
        return read_grid(self.low, self.high, self.step)


@dataclass(frozen=True)
class Attribute:
    """A context attribute and its whole domain, in the declared order.

    Attributes:
        name: the column.
        values: the domain. For a binned attribute these are the labels of its bins.
        edges: the bin edges of an attribute of numbers, or of dates (as ``datetime.date``, or as
            text: "2019-03-14"). Bins are half-open, the last one closed.
        outside: what a row outside the domain (or without a value) does: ``"error"``, ``"drop"``,
            or ``"other"``, which counts it as ``other``.
        other: the declared value that stands for everything else.
        shares: how the rows are spread over the values, in their order and in any unit. Public
            like the rest: shares that were counted in these rows do not belong here, unless
            anybody may know them. They steer ``WidestFirst`` and change no promise.
        label: what people call the attribute; by default its column.
        unit: what its numbers are followed by: "years".
        labels: a name for each bin, in their order; without them a bin is written by its edges.
        contexts: which sets of values a context may have: ``"any"``, a ``"range"``, or ``"one"``.
        groups: named sets of values, which may nest, in the place of ``contexts``: a context has
            the record's own value, a group with it, or all.
        date: a declared span of days, divided by ``"year"``, ``"quarter"`` or ``"month"``, in the
            place of edges: ``{ by = "quarter", from = "2018-01-01", to = "2020-12-31" }``.
        strip: whether blanks at both ends of a cell are ignored; for texts, and dates in texts.
        ignore_case: whether letters in either case are the same; for texts.
        aliases: other spellings of declared values, which are texts: ``{ "Priv." = "Private" }``.
        merge: the same from the other side, value by value: ``{ school = ["9th", "10th"] }``.
            ``values`` may be left out where merge has them all, in their order.
        missing_values: words that mean no value: ``["?", "n/a", "-1"]``; ``outside`` says what such
            a row does. In bins a number or a day among them means it however it is written.
    """

    name: str
    values: tuple[Value, ...] = ()
    edges: tuple[Edge, ...] | None = None
    outside: str = "error"
    other: Value | None = None
    shares: tuple[float, ...] | None = None
    label: str | None = None
    unit: str | None = None
    labels: tuple[str, ...] | None = None
    contexts: str = "any"
    groups: Groups = ()
    date: Span | None = None
    strip: bool = False
    ignore_case: bool = False
    aliases: Aliases = ()
    merge: Merge = ()
    missing_values: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_name("an attribute", self.name)
        for given in (self.values, self.edges, self.shares, self.labels):
            check_order(self.name, given)
        for rule, read in read_rules(self).items():
            object.__setattr__(self, rule, read)
        if sum((bool(self.values), self.edges is not None, self.date is not None)) > 1:
            raise SchemaError(
                f"attribute {self.name!r}: give its values, its edges or its date, only one of them"
            )
        if self.date is not None:
            span = read_span(f"attribute {self.name!r}", self.date)
            object.__setattr__(self, "date", span)
            object.__setattr__(self, "edges", span.edges)
            object.__setattr__(self, "labels", span.labels if self.labels is None else self.labels)
        elif self.edges is not None:
            object.__setattr__(self, "edges", checked_edges(self.name, self.edges))
        if self.edges is not None:
            object.__setattr__(self, "values", tuple(bin_labels(self.edges)))
        self._check_words()
        if self.labels is not None:
            object.__setattr__(self, "values", self.labels)
        object.__setattr__(self, "values", checked_values(self.name, self.values))
        if self.other is not None and self.outside == "error":
            object.__setattr__(self, "outside", "other")
        self._check_outside()
        if self.shares is not None:
            shares = checked_shares(self.name, self.shares, len(self.values))
            object.__setattr__(self, "shares", shares)
        check_kind(self.name, self.contexts)
        if self.contexts == "range" and self.other is not None:
            raise SchemaError(
                f"attribute {self.name!r}: a range needs an order, and other = {self.other!r}, for "
                'everything else, has no place in one; take contexts = "one", or groups'
            )
        check_rules(self)

    def in_family(self, contexts: object = None, groups: object = None) -> Attribute:
        """Return the attribute with the sets that contexts may have of it.

        Raises:
            SchemaError: there is no such family, the groups cannot be, or both are given.
        """
        if groups is None:
            kind = "any" if contexts is None else check_kind(self.name, contexts)
            return replace(self, contexts=kind, **self._own_values)
        if contexts is not None:
            raise SchemaError(
                f"attribute {self.name!r}: groups say which sets of values there are; give groups "
                "or contexts, not both"
            )
        return replace(self, groups=read_groups(self, groups), **self._own_values)

    @property
    def _own_values(self) -> dict[str, Any]:
        """What to give a copy for values: bins have theirs from the edges, edges from a span."""
        if self.edges is None:
            return {}
        return {"values": (), "edges": self.edges if self.date is None else None}

    def _check_words(self) -> None:
        check_word(f"attribute {self.name!r}: its label", self.label)
        check_word(f"attribute {self.name!r}: its unit", self.unit)
        numbers = self.edges is not None or kind_of(self.values) not in _WITHOUT_UNIT
        if self.unit is not None and (self.days or not numbers):
            raise SchemaError(
                f"attribute {self.name!r}: a unit follows numbers, and its values are none; leave "
                "the unit out"
            )
        if self.labels is None:
            return
        if self.edges is None:
            raise SchemaError(
                f"attribute {self.name!r}: labels name bins, and it has none; declare edges, or "
                "write the names as its values"
            )
        for label in self.labels:
            check_word(f"attribute {self.name!r}: each of its labels", label, wanted=True)
        bins = len(self.values)
        if len(self.labels) != bins or len(set(self.labels)) != bins:
            raise SchemaError(
                f"attribute {self.name!r}: labels must be {bins} different names, one for each "
                f"bin in their order; {len(set(self.labels))} are given"
            )

    def _check_outside(self) -> None:
        if self.outside not in OUTSIDE:
            raise SchemaError(
                f"attribute {self.name!r}: outside must be one of {', '.join(OUTSIDE)}, "
                f"not {self.outside!r}"
            )
        if self.outside != "other":
            if self.other is not None:
                raise SchemaError(
                    f"attribute {self.name!r}: other = {self.other!r} and "
                    f"outside = {self.outside!r} exclude each other"
                )
        elif self.edges is not None:
            raise SchemaError(
                f"attribute {self.name!r}: a binned attribute has no 'other' value; widen the "
                f'outer edges{"" if self.days else " (inf is allowed)"} or use outside = "drop"'
            )
        elif not any(is_same(self.other, value) for value in self.values):
            raise SchemaError(
                f"attribute {self.name!r}: other = {self.other!r} must be one of its values"
            )

    @cached_property
    def kind(self) -> str:
        """What values are: ``text``, ``boolean``, ``integer``, ``number``, ``bins``, ``dates``."""
        if self.edges is None:
            return kind_of(self.values)
        return "dates" if self.days else "bins"

    @property
    def spoken(self) -> str:
        """What a sentence calls it."""
        return self.name if self.label is None else self.label

    @property
    def said(self) -> tuple[Value, ...]:
        """What a sentence calls its values: months have names."""
        if self.date is None or self.labels != self.date.labels:
            return self.values
        return self.date.said

    @cached_property
    def days(self) -> tuple[tuple[Day, Day], ...]:
        """The first and the last day of each bin of dates; nothing of another attribute."""
        edges = [edge for edge in self.edges or () if isinstance(edge, Day)]
        return tuple(
            (low, high if place == len(edges) - 2 else high - ONE_DAY)
            for place, (low, high) in enumerate(pairwise(edges))
        )

    @cached_property
    def thresholds(self) -> tuple[float, ...]:
        """The edges as rows are compared with them: numbers, or days since the year 1970."""
        return tuple(
            day_number(edge) if isinstance(edge, Day) else float(edge) for edge in self.edges or ()
        )

    @property
    def takes_any_set(self) -> bool:
        """Whether a context may have any set of its values, as in the paper."""
        return self.contexts == "any" and not self.groups

    @cached_property
    def ordered(self) -> bool:
        """Whether the declared order means something, so that a run of values is a range.

        Bins, numbers that rise or fall strictly, and whatever is declared as ranges. A value that
        stands for everything else has no place in an order of numbers.
        """
        if self.edges is not None or self.contexts == "range":
            return True
        if self.other is not None or self.kind not in ("integer", "number"):
            return False
        rises = {low < high for low, high in pairwise(self.values)}  # type: ignore[operator]
        return len(rises) == 1

    @cached_property
    def codes(self) -> dict[Value, int]:
        """The position of each value in the domain, by what a sentence calls it too."""
        every = (*enumerate(self.said), *enumerate(self.values))
        return {value: code for code, value in every}

    @cached_property
    def spellings(self) -> Spellings:
        """Which texts mean which value, where values are texts."""
        return spellings_of(self)

    def cell_code(self, cell: object) -> int:
        """Return the position of a cell's value in the domain, by the rules of cleaning, or -1."""
        return self.spellings.code(cell) if self.kind == "text" else find_code(self, cell)

    def code(self, value: object) -> int:
        """Return the position of ``value`` in the domain, or refuse with the nearest value."""
        found = find_code(self, value)
        if found < 0:
            shown = ", ".join(str(v) for v in self.values[:12])
            more = f", ... ({len(self.values)} in all)" if len(self.values) > 12 else ""
            raise ContextError(
                f"attribute {self.name!r} has no value {value!r}"
                f"{did_you_mean(value, self.values)}; allowed: {shown}{more}"
            )
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return the declaration as the schema file has it."""
        declared: dict[str, Any] = {}
        if self.date is not None:
            declared["date"] = self.date.to_dict()
        elif self.edges is not None:
            declared["edges"] = [str(e) if isinstance(e, Day) else e for e in self.edges]
        else:
            declared["values"] = list(self.values)
        if self.outside == "drop":
            declared["outside"] = "drop"
        if self.other is not None:
            declared["other"] = self.other
        if self.shares is not None:
            declared["shares"] = list(self.shares)
        words = {"label": self.label, "unit": self.unit}
        declared |= {key: word for key, word in words.items() if word is not None}
        if self.labels is not None and (self.date is None or self.labels != self.date.labels):
            declared["labels"] = list(self.labels)
        if self.contexts != "any":
            declared["contexts"] = self.contexts
        if self.groups:
            declared["groups"] = {
                name: [self.values[place] for place in sorted(group)] for name, group in self.groups
            }
        rules = {
            "strip": self.strip,
            "ignore_case": self.ignore_case,
            "aliases": dict(self.aliases),
            "merge": {value: list(spellings) for value, spellings in self.merge},
            "missing_values": list(self.missing_values),
        }
        return declared | {key: rule for key, rule in rules.items() if rule}


def find_code(attribute: Attribute, value: object) -> int:
    """Return the code of a value as the attribute's kind compares it, or -1.

    Columns arrive in many types (a year as a whole number, as text from a CSV file, as a float
    beside missing values), so each kind says what it takes for its own.

    >>> find_code(Attribute("year", (2019, 2020)), "2020")
    1
    >>> find_code(Attribute("year", (2019, 2020)), 2020.5)
    -1
    """
    canonical = _canonical(attribute.kind, value)
    return -1 if canonical is None else attribute.codes.get(canonical, -1)


def _canonical(kind: str, value: object) -> Value | None:
    if value is None:
        return None
    if kind in ("text", "bins", "dates"):
        return str(value)
    if kind == "boolean":
        # "1.0": a column of 0 and 1 is one of floats where some are missing.
        spoken = {"true": True, "1": True, "1.0": True, "false": False, "0": False, "0.0": False}
        return spoken.get(str(value).strip().lower())
    if isinstance(value, bool):
        return None
    if isinstance(value, int | str):
        # Not through a float, which rounds whole numbers above 2^53 to a neighbour.
        with contextlib.suppress(ValueError):
            return int(value)
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    # A whole float and the whole number are the same key in Python, so 2020.0 finds 2020.
    return number if math.isfinite(number) else None
