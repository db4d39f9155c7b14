"""The schema: what is public about a table before anybody looks at its rows.

Public: everything here. A schema declares the metric, the context attributes with their whole
domains in order, and what to do with rows that do not fit. Domains are never read off the data
(paper, Section 4): otherwise a released context would tell which values occur.

A schema file is TOML::

    [dataset]
    name = "claims"
    id = "claim"                      # optional: the column that names a record

    [metric]
    column = "amount"
    missing = "error"                 # or "drop"

    [attributes.region]
    values = ["north", "south", "elsewhere"]
    other = "elsewhere"               # rows with any other region count as this one
    shares = [0.5, 0.3, 0.2]          # optional: how the rows are spread, if that is public

    [attributes.age]
    edges = [18, 25, 65, 120]         # bins [18, 25), [25, 65), [65, 120]
    outside = "drop"                  # rows outside every bin are left out; default "error"
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from pcor.errors import ContextError, SchemaError, did_you_mean

Value = str | int | float | bool

OUTSIDE = ("error", "drop", "other")
MISSING = ("error", "drop")

_KEYS = ("values", "edges", "outside", "other", "shares")


@dataclass(frozen=True)
class Metric:
    """The numeric column by which outliers are judged.

    Attributes:
        column: its name.
        missing: what a missing metric does: ``"error"`` refuses the table, ``"drop"`` leaves the
            row out.
    """

    column: str
    missing: str = "error"

    def __post_init__(self) -> None:
        _check_name("the metric column", self.column)
        if self.missing not in MISSING:
            raise SchemaError(
                f"metric {self.column!r}: missing must be one of {', '.join(MISSING)}, "
                f"not {self.missing!r}"
            )


@dataclass(frozen=True)
class Attribute:
    """A context attribute and its whole domain, in the declared order.

    Attributes:
        name: the column.
        values: the domain. For a binned attribute these are the labels of its bins.
        edges: the bin edges of a numeric attribute: bins are half-open, the last one closed.
        outside: what a row outside the domain (or without a value) does: ``"error"``, ``"drop"``,
            or ``"other"``, which counts it as ``other``.
        other: the declared value that stands for everything else.
        shares: how the rows are spread over the values, in their order and in any unit. Public
            like the rest: shares that were counted in these rows do not belong here, unless
            anybody may know them. They steer ``WidestFirst`` and change no promise.
    """

    name: str
    values: tuple[Value, ...] = ()
    edges: tuple[float, ...] | None = None
    outside: str = "error"
    other: Value | None = None
    shares: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        _check_name("an attribute", self.name)
        if self.edges is not None:
            if self.values:
                raise SchemaError(f"attribute {self.name!r}: give values or edges, not both")
            object.__setattr__(self, "edges", _checked_edges(self.name, self.edges))
            object.__setattr__(self, "values", tuple(_bin_labels(self.edges)))
        object.__setattr__(self, "values", _checked_values(self.name, self.values))
        if self.other is not None and self.outside == "error":
            object.__setattr__(self, "outside", "other")
        self._check_outside()
        if self.shares is not None:
            shares = _checked_shares(self.name, self.shares, len(self.values))
            object.__setattr__(self, "shares", shares)

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
                'outer edges (inf is allowed) or use outside = "drop"'
            )
        elif not any(_same(self.other, value) for value in self.values):
            raise SchemaError(
                f"attribute {self.name!r}: other = {self.other!r} must be one of its values"
            )

    @cached_property
    def kind(self) -> str:
        """How values are compared: ``text``, ``boolean``, ``integer``, ``number`` or ``bins``."""
        return "bins" if self.edges is not None else _kind(self.values)

    @cached_property
    def codes(self) -> dict[Value, int]:
        """The position of each value in the domain."""
        return {value: code for code, value in enumerate(self.values)}

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
        declared: dict[str, Any] = (
            {"values": list(self.values)} if self.edges is None else {"edges": list(self.edges)}
        )
        if self.outside == "drop":
            declared["outside"] = "drop"
        if self.other is not None:
            declared["other"] = self.other
        if self.shares is not None:
            declared["shares"] = list(self.shares)
        return declared


@dataclass(frozen=True, init=False, eq=False)
class Schema:
    """The public description of a table.

    Args:
        metric: the metric column, or a mapping or ``Metric`` that also says what missing does.
        attributes: name -> the domain as a sequence, or a mapping with the keys of a schema file
            (``values`` or ``edges``, ``outside``, ``other``, ``shares``).
        id: the column that names a record; without it a record is its 0-based row number.
        name: the name of the dataset, printed on certificates.

    >>> schema = Schema(metric="salary", attributes={"job": ["CEO", "Lawyer"], "city": ["Ottawa"]})
    >>> schema.width
    3
    """

    metric: Metric
    attributes: tuple[Attribute, ...]
    id: str | None
    name: str

    def __init__(
        self,
        metric: str | Metric | Mapping[str, Any],
        attributes: Mapping[str, Any],
        id: str | None = None,  # noqa: A002 (the contract's name)
        name: str = "dataset",
    ) -> None:
        if not isinstance(attributes, Mapping):
            raise SchemaError("attributes must map each column's name to its domain")
        columns = tuple(_attribute(key, declared) for key, declared in attributes.items())
        if not columns:
            raise SchemaError("a schema needs at least one attribute; none is declared")
        values: dict[str, Any] = {
            "metric": _metric(metric),
            "attributes": columns,
            "id": id,
            "name": name,
        }
        for key, value in values.items():
            object.__setattr__(self, key, value)
        self._check_columns()

    def _check_columns(self) -> None:
        if self.id is not None:
            _check_name("the id column", self.id)
        if not isinstance(self.name, str) or not self.name:
            raise SchemaError("the dataset's name must be a text that is not empty")
        for column in self.columns:
            if self.columns.count(column) > 1:
                raise SchemaError(f"column {column!r} is declared twice; each column has one role")

    def __eq__(self, other: object) -> bool:
        # By fingerprint: to Python 1, 1.0 and True are equal, but they are different declarations.
        return self.sha256 == other.sha256 if isinstance(other, Schema) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.sha256)

    @cached_property
    def offsets(self) -> tuple[int, ...]:
        """For each attribute, the position of its first value among a context's bits."""
        return tuple(accumulate((len(a.values) for a in self.attributes[:-1]), initial=0))

    @property
    def width(self) -> int:
        """The number of attribute values, t in the paper: the length of a context's bits."""
        return self.offsets[-1] + len(self.attributes[-1].values)

    @property
    def free(self) -> int:
        """How many values a context of a given record may have or lack: 2^free such contexts."""
        return self.width - len(self.attributes)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that a table must have."""
        named = (self.metric.column, *(a.name for a in self.attributes))
        return named if self.id is None else (*named, self.id)

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
        text = json.dumps(self.to_dict(), separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def attribute(self, name: str) -> Attribute:
        """Return the attribute of this name, or refuse with the nearest one."""
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

    def to_dict(self) -> dict[str, Any]:
        """Return the schema in the shape of a schema file; the order of attributes matters."""
        dataset = {"name": self.name} | ({"id": self.id} if self.id is not None else {})
        return {
            "dataset": dataset,
            "metric": {"column": self.metric.column, "missing": self.metric.missing},
            "attributes": {a.name: a.to_dict() for a in self.attributes},
        }

    def to_toml(self) -> str:
        """Return the schema as the text of a schema file."""
        lines = []
        for table, content in self.to_dict().items():
            if table == "attributes":
                for name, declared in content.items():
                    lines += ["", f"[attributes.{toml_value(name)}]", *_assignments(declared)]
            else:
                lines += ["", f"[{table}]", *_assignments(content)]
        return "\n".join(lines[1:]) + "\n"

    @classmethod
    def from_dict(cls, declared: Mapping[str, Any]) -> Schema:
        """Build a schema from the shape of a schema file."""
        _check_keys("the schema", declared, ("dataset", "metric", "attributes"))
        for table in ("metric", "attributes"):
            if table not in declared:
                raise SchemaError(f"the schema has no [{table}] table")
        for table, content in declared.items():
            if not isinstance(content, Mapping):
                raise SchemaError(f"[{table}] must be a table of its own, not a single value")
        dataset = declared.get("dataset", {})
        _check_keys("[dataset]", dataset, ("name", "id"))
        return cls(
            metric=declared["metric"],
            attributes=declared["attributes"],
            id=dataset.get("id"),
            name=dataset.get("name", "dataset"),
        )

    @classmethod
    def from_file(cls, path: str | Path) -> Schema:
        """Read a schema file."""
        try:
            declared = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise SchemaError(
                f"no schema file {str(path)!r}; `pcor schema init` drafts one"
            ) from None
        except (OSError, UnicodeDecodeError):
            raise SchemaError(f"the schema file {str(path)!r} cannot be read") from None
        except tomllib.TOMLDecodeError as error:
            raise SchemaError(f"the schema file {str(path)!r} is not TOML: {error}") from None
        return cls.from_dict(declared)


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
    if kind in ("text", "bins"):
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


def toml_value(value: object) -> str:
    """Write one value as TOML. A JSON string is a TOML basic string but for the DEL character."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(value)


def _assignments(content: Mapping[str, Any]) -> list[str]:
    return [
        f"{key} = [{', '.join(toml_value(v) for v in value)}]"
        if isinstance(value, list)
        else f"{key} = {toml_value(value)}"
        for key, value in content.items()
    ]


def _metric(declared: str | Metric | Mapping[str, Any]) -> Metric:
    if isinstance(declared, Metric):
        return declared
    if isinstance(declared, str):
        return Metric(declared)
    if not isinstance(declared, Mapping):
        raise SchemaError("the metric must be named by a text, or declared by a table")
    _check_keys("[metric]", declared, ("column", "missing"))
    if "column" not in declared:
        raise SchemaError("[metric] has no column; name the numeric column to judge by")
    return Metric(declared["column"], declared.get("missing", "error"))


def _attribute(name: str, declared: Any) -> Attribute:
    if not isinstance(declared, Mapping):
        if isinstance(declared, str) or not isinstance(declared, Iterable):
            raise SchemaError(f"attribute {name!r}: the domain must be a list of values")
        return Attribute(name, tuple(declared))
    _check_keys(f"[attributes.{name}]", declared, _KEYS)
    edges, shares = declared.get("edges"), declared.get("shares")
    for key in ("values", "edges", "shares"):
        if key in declared and not isinstance(declared[key], list | tuple):
            raise SchemaError(f"attribute {name!r}: {key} must be a list")
    return Attribute(
        name,
        tuple(declared.get("values", ())),
        None if edges is None else tuple(edges),
        declared.get("outside", "error"),
        declared.get("other"),
        None if shares is None else tuple(shares),
    )


def _check_keys(where: str, declared: Mapping[str, Any], known: Sequence[str]) -> None:
    for key in declared:
        if key not in known:
            raise SchemaError(
                f"{where} has an unknown key {key!r}{did_you_mean(key, known)}; "
                f"allowed: {', '.join(known)}"
            )


def _check_name(what: str, name: object) -> None:
    if not isinstance(name, str) or not name:
        raise SchemaError(f"{what} must be named by a text that is not empty")


def _kind(values: Sequence[Value]) -> str:
    kinds = {type(value) for value in values}
    if kinds == {str}:
        return "text"
    if kinds == {bool}:
        return "boolean"
    if kinds == {int}:
        return "integer"
    return "number" if kinds <= {int, float} else "mixed"


def _same(one: object, other: object) -> bool:
    return type(one) is type(other) and one == other


def _checked_values(name: str, values: Sequence[Value]) -> tuple[Value, ...]:
    if not values:
        raise SchemaError(f"attribute {name!r} has an empty domain; declare its values or edges")
    values = [_python(value) for value in values]
    if _kind(values) == "mixed" or any(v != v or v in (math.inf, -math.inf) for v in values):
        raise SchemaError(
            f"attribute {name!r}: values must all be text, all finite numbers, or all true/false"
        )
    seen: set[Value] = set()
    for value in values:
        if value in seen:
            raise SchemaError(f"attribute {name!r}: the value {value!r} is declared twice")
        seen.add(value)
    return tuple(values)


def _python(value: Any) -> Any:
    """Return NumPy's scalars as Python's own, so that they print as numbers and texts."""
    return value.item() if isinstance(value, np.generic) else value


def _checked_edges(name: str, edges: Sequence[float]) -> tuple[float, ...]:
    edges = [_python(edge) for edge in edges]
    if any(isinstance(e, bool) or not isinstance(e, int | float) or e != e for e in edges):
        raise SchemaError(f"attribute {name!r}: edges must be numbers")
    if len(edges) < 2:
        raise SchemaError(f"attribute {name!r}: edges must be at least two numbers")
    try:
        rounded = [float(edge) for edge in edges]  # as the rows are compared with them
    except OverflowError:
        raise SchemaError(f"attribute {name!r}: an edge is too large; inf is allowed") from None
    if any(low >= high for low, high in pairwise(rounded)):
        raise SchemaError(
            f"attribute {name!r}: bins overlap; edges must rise strictly from each to the next"
        )
    return tuple(edges)


def _checked_shares(name: str, shares: Sequence[float], count: int) -> tuple[float, ...]:
    shares = [_python(share) for share in shares]
    if any(isinstance(s, bool) or not isinstance(s, int | float) for s in shares):
        raise SchemaError(f"attribute {name!r}: shares must be numbers")
    if len(shares) != count:
        raise SchemaError(
            f"attribute {name!r}: shares must be one number for each of its {count} values, in "
            f"their order; {len(shares)} are given"
        )
    if not all(0 <= share < math.inf for share in shares) or not 0 < sum(shares) < math.inf:
        raise SchemaError(f"attribute {name!r}: shares must be 0 or more, finite, and not all 0")
    try:
        return tuple(float(share) for share in shares)
    except OverflowError:
        raise SchemaError(f"attribute {name!r}: a share is too large") from None


def _bin_labels(edges: Sequence[float]) -> list[str]:
    last = len(edges) - 2
    return [
        f"[{low:g}, {high:g}{']' if place == last else ')'}"
        if low == float(f"{low:g}") and high == float(f"{high:g}")
        else f"[{low!r}, {high!r}{']' if place == last else ')'}"
        for place, (low, high) in enumerate(pairwise(edges))
    ]
