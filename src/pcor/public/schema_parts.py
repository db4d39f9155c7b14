"""What a schema declares, part by part: read from names, lists and tables, and checked.

Public: everything here. ``pcor.public.schema`` puts the parts together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from pcor.errors import SchemaError, did_you_mean
from pcor.public.domain import Attribute, Metric, Value
from pcor.public.domain_parts import check_name, check_order
from pcor.public.source_format import SourceFormat
from pcor.public.spellings import SPELLING

TABLES = ("dataset", "metric", "attributes", "contexts", "release", "source")
_OF_PEOPLE = ("person", "rows_per_person", "over")
DATASET = ("name", "id", "id_type", "id_pattern", "positions", "rows", *_OF_PEOPLE)
METRIC = ("column", "missing", "label", "unit", "missing_values", "low", "high", "step")
_DOMAIN = ("values", "edges", "date", "outside", "other", "shares")
_WORDS = ("label", "unit", "labels")
_RULES = (*SPELLING, "missing_values")
_KEYS = (*_DOMAIN, *_WORDS, "contexts", "groups", *_RULES)
LIMITS = ("max_clauses", "max_named")
_RELEASE = {"detector": str, "brevity": int}


def read_metric(declared: str | Metric | Mapping[str, Any]) -> Metric:
    """Return the metric that a column's name, or a table, declares."""
    if isinstance(declared, Metric):
        return declared
    if isinstance(declared, str):
        return Metric(declared)
    if not isinstance(declared, Mapping):
        raise SchemaError("the metric must be named by a text, or declared by a table")
    check_keys("[metric]", declared, METRIC)
    if "column" not in declared:
        raise SchemaError(
            '[metric] has no column; name the numeric column to judge by: column = "amount"'
        )
    return Metric(**declared)


def read_attribute(name: str, declared: Any) -> Attribute:
    """Return the attribute that a list of values, or a table, declares."""
    check_name("an attribute", name)
    if not isinstance(declared, Mapping):
        if isinstance(declared, str) or not isinstance(declared, Iterable):
            raise SchemaError(f"attribute {name!r}: the domain must be a list of values")
        check_order(name, declared)
        return Attribute(name, tuple(declared))
    check_keys(f"[attributes.{name}]", declared, _KEYS)
    edges, shares, labels = (declared.get(key) for key in ("edges", "shares", "labels"))
    for key in ("values", "edges", "shares", "labels"):
        if key in declared and not isinstance(declared[key], list | tuple):
            raise SchemaError(f"attribute {name!r}: {key} must be a list")
    return Attribute(
        name,
        tuple(declared.get("values", ())),
        None if edges is None else tuple(edges),
        declared.get("outside", "error"),
        declared.get("other"),
        None if shares is None else tuple(shares),
        label=declared.get("label"),
        unit=declared.get("unit"),
        labels=None if labels is None else tuple(labels),
        date=declared.get("date"),
        **{key: declared[key] for key in _RULES if key in declared},
    ).in_family(declared.get("contexts"), declared.get("groups"))


def with_family(
    attribute: Attribute,
    contexts: Mapping[str, str] | None,
    groups: Mapping[str, Mapping[str, Sequence[Value]]] | None,
) -> Attribute:
    """Return the attribute in the family that is given for it beside its domain, if one is."""
    kind = None if contexts is None else contexts.get(attribute.name)
    named = None if groups is None else groups.get(attribute.name)
    if kind is None and named is None:
        return attribute
    if not attribute.takes_any_set:
        raise SchemaError(
            f"attribute {attribute.name!r}: its family is declared twice, with its domain and "
            "beside it; declare it once"
        )
    return attribute.in_family(kind, named)


def read_release(given: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """Return how records are released where nobody says otherwise, or refuse what cannot be."""
    if not isinstance(given, Mapping | None):
        raise SchemaError('release must be a table, such as {"detector": "grubbs"}')
    # In one order however it is declared: it is part of the schema's fingerprint.
    declared = {} if given is None else {key: given[key] for key in sorted(given)}
    check_keys("[release]", declared, tuple(_RELEASE))
    for key, value in declared.items():
        kind = _RELEASE[key]
        if not isinstance(value, kind) or isinstance(value, bool):
            wanted = "a whole number" if kind is int else 'a name, such as detector = "grubbs"'
            raise SchemaError(f"[release] {key} must be {wanted}, not {value!r}")
        if isinstance(value, str):
            check_name(f"[release] {key}", value)
        if isinstance(value, int) and value < 0:
            raise SchemaError(f"[release] {key} must be at least 0, not {value!r}")
    return MappingProxyType(declared)


def read_source(given: Mapping[str, str] | SourceFormat | None) -> SourceFormat:
    """Return how the table is written down, or refuse what no table can be."""
    if isinstance(given, SourceFormat):
        return given
    if not isinstance(given, Mapping | None):
        raise SchemaError('source must be a table, such as {"separator": ";"}')
    declared = {} if given is None else given
    check_keys("[source]", declared, tuple(name for name, _ in SourceFormat.options()))
    return SourceFormat(**declared)


def read_marks(given: object) -> tuple[str, ...]:
    """Return which parts of a draft were read off the data."""
    if isinstance(given, list | tuple) and all(isinstance(part, str) for part in given):
        return tuple(given)
    raise SchemaError('unreviewed must list parts of a draft, such as ["attributes.region"]')


def read_limit(name: str, limit: int | None, most: int | None) -> int | None:
    """Return a limit on whole contexts, or refuse one that cannot be."""
    if limit is None:
        return None
    whole = isinstance(limit, int) and not isinstance(limit, bool)
    if whole and 0 <= limit <= (limit if most is None else most):
        return limit
    up_to = "of at least 0" if most is None else f"from 0 to {most}, the number of attributes"
    raise SchemaError(f"{name} must be a whole number {up_to}, not {limit!r}")


def check_keys(where: str, declared: Mapping[str, Any], known: Sequence[str]) -> None:
    """Refuse a key that nothing is declared by, with the nearest that is."""
    for key in declared:
        if key not in known:
            raise SchemaError(
                f"{where} has an unknown key {key!r}{did_you_mean(key, known)}; "
                f"allowed: {', '.join(known)}"
            )
