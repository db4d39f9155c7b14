"""The schema: what is public about a table before anybody looks at its rows.

Public: everything here. A schema declares the metric, the context attributes with their whole
domains in order, and what to do with rows that do not fit. Domains are never read off the data
(paper, Section 4): otherwise a released context would tell which values occur. Words are public
like the rest, and part of the schema's fingerprint.

A schema file is TOML::

    [dataset]
    name = "claims"
    id = "claim"                      # optional: the column that names a record
    id_pattern = "C-[0-9]{6}"         # optional: what ids look like, so that misprints are refused
    # positions = "public"            # instead of an id: anybody may know who stands where
    rows = "claims"                   # optional: what a sentence calls the rows
    person = "driver"                 # optional: the column that says whose a row is,
    rows_per_person = 8               # with how many rows one person has at most:
    over = "error"                    # with more, refuse, or "keep" so many of them

    [metric]
    column = "amount"
    missing = "error"                 # or "drop"
    label = "amount paid"             # optional: what a sentence calls it
    unit = "dollars"                  # optional: what its numbers are followed by
    missing_values = ["?", "-1"]      # optional: words that mean no value
    low = 0                           # optional: quantiles are released at 0, 50, ... 20000
    high = 20000
    step = 50

    [attributes.region]
    values = ["north", "south", "elsewhere"]
    other = "elsewhere"               # rows with any other region count as this one
    shares = [0.5, 0.3, 0.2]          # optional: how the rows are spread, if that is public

    [attributes.age]
    edges = [18, 25, 65, 120]         # bins [18, 25), [25, 65), [65, 120]
    outside = "drop"                  # rows outside every bin are left out; default "error"
    label = "age of the driver"       # optional: what a sentence calls it
    unit = "years"                    # optional, for bins and numbers
    # labels = ["young", "grown", "old"]    # instead of the edges: a name for each bin
    contexts = "range"                # a context has an unbroken run of ages; "one", or "any" set

    [attributes.paid]
    date = { by = "quarter", from = "2018-01-01", to = "2020-12-31" }   # or "year", or "month"
    # edges = ["2018-01-01", "2018-09-01", "2019-12-31"]    # or bins of dates, the last one closed

    [attributes.city]
    values = ["Ottawa", "Toronto", "Montreal"]
    groups = { Ontario = ["Ottawa", "Toronto"] }    # one city, a group with it, or all
    strip = true                      # blanks at both ends are ignored
    ignore_case = true                # letters in either case are the same
    aliases = { "T.O." = "Toronto" }  # other spellings of a value
    missing_values = ["n/a"]          # words that mean no value

    [attributes.schooling]
    merge = { school = ["9th", "10th"], college = ["BA", "MA"] }    # what each value stands for

    [contexts]
    max_clauses = 3                   # optional: at most so many attributes are restricted,
    max_named = 6                     # and the sentence names at most so many things

    [release]
    detector = "grubbs"               # optional: what calls a claim an outlier, unless one is given
    brevity = 100                     # optional: rows that each thing named is worth

    [source]
    separator = ";"                   # optional: how the file is written; by default commas,
    encoding = "windows-1252"         # UTF-8,
    decimal = ","                     # and numbers as 1234.5
    thousands = "."
    currency = "€"                    # before or after a number
    dates = "DD.MM.YYYY"              # in texts; by default as 2019-03-14
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pcor.errors import ContextError, RecordError, SchemaError, did_you_mean
from pcor.public.domain import (
    MISSING,
    OUTSIDE,
    Attribute,
    Metric,
    Value,
    find_code,
)
from pcor.public.domain_parts import check_name, check_word
from pcor.public.family import MOST_SETS, combined, most_sets, most_sizes, most_steps
from pcor.public.record_ids import TYPES, check_declared, matches
from pcor.public.schema_file import REVIEW, marked_tables, read_text, written_tables
from pcor.public.schema_parts import (
    DATASET,
    LIMITS,
    METRIC,
    TABLES,
    check_keys,
    read_attribute,
    read_limit,
    read_marks,
    read_metric,
    read_release,
    read_source,
    with_family,
)
from pcor.public.schema_view import as_html, one_line
from pcor.public.source_format import SourceFormat
from pcor.public.unit import OVER, PrivacyUnit, declared_unit

# A schema is declared with these, so they are found here too.
if TYPE_CHECKING:
    from pcor.audit.schema_fit import Misfit

__all__ = [
    "MISSING",
    "OUTSIDE",
    "POSITIONS",
    "REVIEW",
    "Attribute",
    "Metric",
    "Schema",
    "Value",
    "find_code",
]

# What a schema without an id may say of the places of its rows.
POSITIONS = ("public",)

# Contexts are bits of one number while they are visited one by one: so many steps at most.
MOST_STEPS = 62

# A space of up to this many contexts can be listed whole, whatever its steps.
LARGEST_LIST = 1 << 24

# Where limits leave so few contexts, they are listed instead of all that are numbered.
MOST_MEMBERS = 1 << 22

# Contexts are numbered by whole numbers of 64 bits.
MOST_NUMBERED = 1 << 60

# What a schema is called that has no name of its own.
UNNAMED = "dataset"


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Schema:
    """The public description of a table.

    Args:
        metric: the metric column, or a mapping or ``Metric`` that also says what missing does.
        attributes: name -> the domain as a sequence (a set has no order to keep, and is refused),
            or a mapping with the keys of a schema file (``values``, ``edges`` or ``date``,
            ``outside``, ``other``, ``shares``, ``label``, ``unit``, ``labels``, ``contexts``,
            ``groups``, ``strip``, ``ignore_case``, ``aliases``, ``merge``, ``missing_values``).
        id: the column that names a record; without it a record is its 0-based row number.
        name: the name of the dataset, printed on certificates.
        positions: ``"public"`` in a schema without an id: anybody may know how many rows stand
            before a record. ``guarantee="dp"`` needs an id, or this.
        id_type: "integer" where every id is a whole number.
        id_pattern: a regular expression (of RE2) that every id matches as a whole. Whatever does
            not is refused before anything is looked up or charged.
        rows: what a sentence calls the rows, in the plural: "claims".
        person: the column that says whose a row is. All rows of one person are then protected
            together, where otherwise each row is by itself.
        rows_per_person: how many rows of one person a table has at most, as anybody may know.
        over: "error" refuses a table in which somebody has more; "keep" counts only so many of
            their rows, always the same ones, and costs twice.
        release: how records of this dataset are released where nobody says otherwise:
            ``{"detector": "grubbs", "brevity": 100}``.
        contexts: attribute -> which sets of its values a context may have: "any" (the paper's), a
            "range" (an unbroken run in the declared order), "one" (the record's own, or all).
        groups: attribute -> name -> values: a context has the record's own value of it, a group
            with that value, or all. A group may have other groups in it, by their names.
        max_clauses: how many attributes a context may restrict.
        max_named: how many values, ranges, groups and exceptions its sentence may name.
        source: how the table is written down, as ``[source]`` of a schema file says it:
            ``{"separator": ";", "encoding": "windows-1252", "decimal": ","}``.

    Raises:
        SchemaError: the declarations are incomplete or contradict one another.

    >>> schema = Schema(metric="salary", attributes={"job": ["CEO", "Lawyer"], "city": ["Ottawa"]})
    >>> schema.width
    3
    """

    metric: Metric
    attributes: tuple[Attribute, ...]
    id: str | None
    name: str
    positions: str | None
    id_type: str | None
    id_pattern: str | None
    rows: str | None
    person: str | None
    rows_per_person: int | None
    over: str
    max_clauses: int | None
    max_named: int | None
    release: Mapping[str, Any]
    source: SourceFormat
    # Which tables of a draft's file were read off the data; no part of the fingerprint.
    unreviewed: tuple[str, ...]
    # What a draft noticed, for the owner: private, and in no file, copy or fingerprint.
    notes: tuple[str, ...]

    def __init__(
        self,
        metric: str | Metric | Mapping[str, Any],
        attributes: Mapping[str, Any],
        id: str | None = None,  # noqa: A002 (the contract's name)
        name: str = UNNAMED,
        *,
        positions: str | None = None,
        id_type: str | None = None,
        id_pattern: str | None = None,
        rows: str | None = None,
        person: str | None = None,
        rows_per_person: int | None = None,
        over: str = OVER[0],
        contexts: Mapping[str, str] | None = None,
        groups: Mapping[str, Mapping[str, Sequence[Value]]] | None = None,
        max_clauses: int | None = None,
        max_named: int | None = None,
        release: Mapping[str, Any] | None = None,
        source: Mapping[str, str] | SourceFormat | None = None,
    ) -> None:
        if not isinstance(attributes, Mapping):
            raise SchemaError("attributes must map each column's name to its domain")
        for given, what in ((contexts, "contexts"), (groups, "groups")):
            if not isinstance(given, Mapping | None):
                raise SchemaError(f"{what} must map the names of attributes to what is declared")
        columns = tuple(
            with_family(read_attribute(key, declared), contexts, groups)
            for key, declared in attributes.items()
        )
        for given, what in ((contexts, "contexts"), (groups, "groups")):
            check_keys(what, {} if given is None else given, [a.name for a in columns])
        if not columns:
            raise SchemaError("a schema needs at least one attribute; none is declared")
        values: dict[str, Any] = {
            "metric": read_metric(metric),
            "attributes": columns,
            "id": id,
            "name": name,
            "positions": positions,
            "id_type": id_type,
            "id_pattern": id_pattern,
            "rows": rows,
            "person": person,
            "rows_per_person": rows_per_person,
            "over": over,
            "max_clauses": read_limit("max_clauses", max_clauses, len(columns)),
            "max_named": read_limit("max_named", max_named, None),
            "release": read_release(release),
            "source": read_source(source),
            "unreviewed": (),
            "notes": (),
        }
        for key, value in values.items():
            object.__setattr__(self, key, value)
        self._check_columns()

    def _check_columns(self) -> None:
        if self.id is not None:
            check_name("the id column", self.id)
        check_declared(self.id, self.id_type, self.id_pattern)
        declared_unit(self.person, self.rows_per_person, self.over)
        if self.positions is not None:
            if self.positions not in POSITIONS:
                raise SchemaError(f'positions must be "public", not {self.positions!r}')
            if self.id is not None:
                raise SchemaError(
                    "positions speak of row numbers, and with an id a record is not named by one; "
                    "declare the id or positions, not both"
                )
        check_name("the dataset", self.name)
        for column in self.columns:
            if self.columns.count(column) > 1:
                raise SchemaError(f"column {column!r} is declared twice; each column has one role")
        check_word("the word for rows", self.rows)
        self._check_labels()

    def _check_labels(self) -> None:
        """Refuse a label that would be read as another attribute."""
        labelled = [attribute for attribute in self.attributes if attribute.label is not None]
        for one in labelled:
            for other in self.attributes:
                if one is not other and one.label in (other.name, other.label):
                    raise SchemaError(
                        f"attribute {one.name!r}: its label {one.label!r} is also what attribute "
                        f"{other.name!r} is called; give it a label of its own"
                    )

    def __eq__(self, other: object) -> bool:
        # By fingerprint: to Python 1, 1.0 and True are equal, but they are different declarations.
        return self.sha256 == other.sha256 if isinstance(other, Schema) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.sha256)

    def __reduce__(self) -> tuple[Any, ...]:
        # A read-only mapping cannot be pickled; what was declared can.
        return _restored, (self._declared(), self.unreviewed)

    def __repr__(self) -> str:
        return one_line(self)

    def _repr_html_(self) -> str:
        return as_html(self)

    @cached_property
    def offsets(self) -> tuple[int, ...]:
        """For each attribute, the position of its first value among a context's bits."""
        return tuple(accumulate((len(a.values) for a in self.attributes[:-1]), initial=0))

    @property
    def width(self) -> int:
        """The number of attribute values, t in the paper: the length of a context's bits."""
        return self.offsets[-1] + len(self.attributes[-1].values)

    @property
    def limited(self) -> bool:
        """Whether contexts are limited as a whole, beyond the family of each attribute."""
        return self.max_clauses is not None or self.max_named is not None

    @cached_property
    def most_contexts(self) -> int:
        """How many contexts of the family a record can have: those of the record with most."""
        if not self.limited:
            return self.most_numbered
        sizes = [most_sizes(attribute, self.max_named) for attribute in self.attributes]
        return combined(sizes, self.max_clauses, self.max_named)

    @cached_property
    def most_numbered(self) -> int:
        """How many of them there are before limits on whole contexts: these are numbered."""
        return prod(map(most_sets, self.attributes))

    @cached_property
    def most_walked(self) -> int:
        """How many contexts a walk from the widest down can meet.

        It leaves out all below a context with too many clauses. What a sentence names can become
        fewer on the way down, so ``max_named`` spares it nothing.
        """
        if self.most_steps > MOST_STEPS:
            return self.most_contexts if self.lists_members else self.most_numbered
        if self.max_clauses is None or not self._few_sets:
            return self.most_numbered
        sizes = [most_sizes(attribute, None) for attribute in self.attributes]
        return combined(sizes, self.max_clauses, None)

    @cached_property
    def lists_members(self) -> bool:
        """Whether the contexts that the limits leave can be listed, without all the others."""
        few = self.limited and self.most_contexts <= MOST_MEMBERS
        return few and self.most_numbered <= MOST_NUMBERED and self._few_sets

    @property
    def _few_sets(self) -> bool:
        return all(most_sets(attribute) <= MOST_SETS for attribute in self.attributes)

    def drawable(self, limit: int) -> bool:
        """Tell whether contexts can be met best first, or listed, within a limit."""
        walked = self.most_steps <= MOST_STEPS
        listed = self.most_numbered <= LARGEST_LIST or self.lists_members
        return (walked or listed) and self.most_walked <= limit

    @cached_property
    def most_steps(self) -> int:
        """How many steps there are from a record's own values to all values, at most."""
        return sum(map(most_steps, self.attributes))

    @property
    def domains(self) -> dict[str, tuple[Value, ...]]:
        """The declared values of each attribute."""
        return {attribute.name: attribute.values for attribute in self.attributes}

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that a table must have."""
        named = (self.metric.column, *(a.name for a in self.attributes))
        return (*named, *(one for one in (self.id, self.person) if one is not None))

    @cached_property
    def unit(self) -> PrivacyUnit:
        """Who is protected: a row, or a person with up to so many rows."""
        return declared_unit(self.person, self.rows_per_person, self.over)

    @property
    def noun(self) -> str:
        """What a sentence calls the rows."""
        return "rows" if self.rows is None else self.rows

    @property
    def names_records(self) -> bool:
        """Whether a record's name is public: an id, or a row number that was declared so."""
        return self.id is not None or self.positions is not None

    @cached_property
    def attribute_masks(self) -> tuple[int, ...]:
        """For each attribute, the mask of all its values."""
        return tuple(
            ((1 << len(a.values)) - 1) << offset
            for a, offset in zip(self.attributes, self.offsets, strict=True)
        )

    @cached_property
    def sha256(self) -> str:
        """A fingerprint of everything that the schema declares."""
        text = json.dumps(self._declared(), separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def attribute(self, name: str) -> Attribute:
        """Return the attribute of this name, or refuse with the nearest one.

        Raises:
            ContextError: the schema has no attribute of this name.
        """
        return self.attributes[self.index(name)]

    def index(self, name: str) -> int:
        """Return the place of the attribute of this name."""
        names = [a.name for a in self.attributes]
        if name not in names:
            raise ContextError(
                f"the schema has no attribute {name!r}{did_you_mean(name, names)}; "
                f"attributes: {', '.join(names)}"
            )
        return names.index(name)

    def check_id(self, record: object) -> None:
        """Refuse a record that is not written like an id, where the schema says how they are.

        Raises:
            RecordError: the schema rules this id out.
        """
        if not self.id_patterns or matches(str(record), self.id_patterns):
            return
        ways = " and ".join(
            [
                *(["are whole numbers"] if self.id_type is not None else []),
                *([f"match {self.id_pattern}"] if self.id_pattern is not None else []),
            ]
        )
        raise RecordError(
            f"{self.id} {record!r} is not written like an id of this table: they {ways}; check it "
            "for misprints. Nothing was looked up or charged"
        )

    @cached_property
    def id_patterns(self) -> tuple[str, ...]:
        """What every id matches as a whole; nothing where nothing is declared."""
        written = None if self.id_type is None else TYPES[self.id_type]
        return tuple(one for one in (written, self.id_pattern) if one is not None)

    def to_dict(self) -> dict[str, Any]:
        """Return the schema in the shape of a schema file; the order of attributes matters.

        Only a draft has ``unreviewed``, the parts that were read off the data: what is made of it
        again by ``from_dict`` is still a draft.
        """
        marks = {"unreviewed": list(self.unreviewed)} if self.unreviewed else {}
        return self._declared() | marks

    def _declared(self) -> dict[str, Any]:
        # What is not declared is left out: older schemas keep their fingerprints.
        dataset = {key: getattr(self, key) for key in DATASET}
        dataset["over"] = self.over if self.over != OVER[0] else None
        limits = {key: getattr(self, key) for key in LIMITS if getattr(self, key) is not None}
        metric = {key: getattr(self.metric, key) for key in METRIC}
        words = list(self.metric.missing_values)
        metric["missing_values"] = words if words else None
        # How the rows are written says nothing of contexts, but what was answered depends on it:
        # with another decimal mark the same file is another table. So the fingerprint covers it.
        source = self.source.to_dict()
        return {
            "dataset": {key: value for key, value in dataset.items() if value is not None},
            "metric": {key: value for key, value in metric.items() if value is not None},
            "attributes": {a.name: a.to_dict() for a in self.attributes},
            **({"contexts": limits} if limits else {}),
            **({"release": dict(self.release)} if self.release else {}),
            **({"source": source} if source else {}),
        }

    def to_toml(self) -> str:
        """Return the schema as the text of a schema file."""
        return written_tables(self._declared(), self.unreviewed)

    @classmethod
    def from_dict(cls, declared: Mapping[str, Any]) -> Schema:
        """Build a schema from the shape of a schema file; from that of a draft, a draft.

        Raises:
            SchemaError: it is not the shape of a schema, or contradicts itself.
        """
        if not isinstance(declared, Mapping):
            raise SchemaError("a schema must be a mapping, in the shape of a schema file")
        unreviewed = read_marks(declared.get("unreviewed", ()))
        tables = {table: content for table, content in declared.items() if table != "unreviewed"}
        return _restored(tables, unreviewed)

    @classmethod
    def _of_tables(cls, declared: Mapping[str, Any]) -> Schema:
        check_keys("the schema", declared, TABLES)
        for table in ("metric", "attributes"):
            if table not in declared:
                raise SchemaError(
                    f"the schema has no [{table}] table; `pcor schema init` drafts a whole one"
                )
        for table, content in declared.items():
            if not isinstance(content, Mapping):
                raise SchemaError(f"[{table}] must be a table of its own, not a single value")
        dataset = declared.get("dataset", {})
        check_keys("[dataset]", dataset, DATASET)
        limits = declared.get("contexts", {})
        check_keys("[contexts]", limits, LIMITS)
        return cls(
            metric=declared["metric"],
            attributes=declared["attributes"],
            **dataset,
            **limits,
            release=declared.get("release"),
            source=declared.get("source"),
        )

    # -- drafts -----------------------------------------------------------------------------------

    @classmethod
    def draft(
        cls,
        table: Any,
        /,
        *,
        metric: str,
        attributes: Sequence[str] | None = None,
        id: str | None = None,  # noqa: A002 (as of a schema)
        person: str | None = None,
        name: str = "",
        source: Mapping[str, str] | None = None,
    ) -> Schema:
        """Propose a schema for a table. For the owner's eyes: its values were read off the rows.

        A release refuses it until ``reviewed()`` makes it the owner's word. ``to_toml()`` marks
        what is to be reviewed; ``notes`` has what was noticed on the way, a sentence each.

        Args:
            table: a file or a frame.
            metric: the column to judge by.
            attributes: the columns that contexts speak of; by default a few are proposed.
            id: the column that names a record.
            person: the column that says whose a row is.
            name: of the dataset.
            source: what is known of how the file is written, as of a schema: ``{"separator": ";",
                "decimal": ","}``. The rest of ``[source]`` is guessed, and marked.
        """
        from pcor.audit.schema_draft import draft

        read_source(source)  # refuses what cannot be
        found = draft(
            table,
            metric=metric,
            attributes=attributes,
            id_column=id,
            person=person,
            name=name,
            given=source,
        )
        object.__setattr__(found.schema, "notes", found.notes)
        return found.schema

    def check(self, source: Any) -> list[Misfit]:
        """Return what of a table does not fit this schema, with values and counts.

        What is not ``refused`` is only to be looked at: people who differ by blanks or case alone.
        Private: for the owner only, never to be released.
        """
        from pcor.audit.schema_fit import misfits

        return misfits(source, self)

    def marked(self, parts: Iterable[str]) -> Schema:
        """Return the schema as a draft in which these tables of its file were read off the data."""
        return _restored(self._declared(), tuple(parts))

    def reviewed(self) -> Schema:
        """Return a draft as the owner's word: whoever calls this has read every part of it.

        A domain is public. It must say what could occur: what only the rows say leaks them.
        """
        return _restored(self._declared(), ())

    def check_reviewed(self) -> None:
        """Refuse a draft.

        Raises:
            SchemaError: parts of it were read off the data.
        """
        if self.unreviewed:
            raise SchemaError(
                f"the schema {self.name!r} is a draft: {', '.join(self.unreviewed)} were read off "
                "the data, and a domain is public. Read each one, add what could occur but did "
                "not, and take schema.reviewed(). Nothing was released or charged"
            )

    def written(self, **given: str) -> Schema:
        """Return the schema with some of ``[source]`` said otherwise, as options of a command do.

        Raises:
            SchemaError: no table is written like this.
        """
        declared = self._declared()
        source = {"source": {**declared.get("source", {}), **given}}
        return _restored(declared | source, self.unreviewed)

    @classmethod
    def from_file(cls, path: str | Path, *, draft: bool = False) -> Schema:
        """Read a schema file.

        Args:
            path: where it is.
            draft: take one in which the data, and not yet the owner, says what could occur: parts
                that ``pcor schema init`` marked REVIEW. For the owner's eyes, never for a release.

        Raises:
            SchemaError: the file cannot be read, is not a schema, or is a draft.
        """
        declared, text = read_text(path)
        if REVIEW in text and not draft:
            raise SchemaError(
                f"the schema {str(path)!r} is a draft: parts marked REVIEW were read off the data, "
                "and a domain is public. Read each one, add what could occur but did not, delete "
                "the marks, and try again. Nothing was released or charged"
            )
        return _restored(declared, tuple(marked_tables(text)))


def _restored(declared: Mapping[str, Any], unreviewed: tuple[str, ...]) -> Schema:
    schema = Schema._of_tables(declared)
    object.__setattr__(schema, "unreviewed", unreviewed)
    return schema
