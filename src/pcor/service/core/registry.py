"""Datasets as an owner registers them: schema, source, guarantee, presets, who may be asked about.

Public: a registration, but for the name of its file, which only owners see, and its fingerprint,
which nobody does. Registrations are never changed: a new one has the next version, and questions
stay with the version they were asked of. What the books call the version of a table is the number
of its file's state: it says whether two files were the same, and nothing else about them.
"""

from __future__ import annotations

import hashlib
import json
import math
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from sqlalchemy import Connection, Select, and_, bindparam, func, insert, select

from pcor.errors import ParameterError, SchemaError, plain
from pcor.ledger.entries import lock_head
from pcor.public.schema import Schema
from pcor.releasing.amounts import amount
from pcor.releasing.plan import Plan
from pcor.releasing.request import canonical_record, check_record
from pcor.releasing.settings import Settings
from pcor.rows.table import Table
from pcor.service.core import tables
from pcor.service.core.cache import LruCache

PRESETS = ("small", "medium", "large")
# Records that a refusal quotes.
SHOWN = 10
ANY = "any"
# Plans that one registration keeps, by their epsilon: the presets, and what owners ask besides.
PLANS = 64
# Characters of registrations that are kept parsed: thousands of usual ones.
PARSED = 1 << 24

# What a registration may be refused with by rules that are not those it was made under: an older
# or a newer version of pcor wrote it.
UNREADABLE = (SchemaError, ParameterError)


@dataclass(frozen=True)
class Registration:
    """One version of a dataset.

    Attributes:
        name: the people.
        version: counted from 1.
        schema: the public description of the table.
        source: the file, relative to the data folder. Owners only.
        file_fingerprint: by which the file is known again. For the service only.
        settings: what is drawn and how; the owner settles it for everybody.
        presets: small, medium and large, each an epsilon.
        records: which records may be asked about; ``None`` for any.
        description: what the owner says about it.
        state: of the file, counted from 1: the same file has the same number, under all versions.
    """

    name: str
    version: int
    schema: Schema
    source: str
    file_fingerprint: str
    settings: Settings
    presets: dict[str, Fraction]
    records: tuple[int | str, ...] | None
    description: str = ""
    state: int = 0

    @cached_property
    def _plans(self) -> dict[Fraction, Plan]:
        return {}

    @cached_property
    def _open(self) -> frozenset[int | str]:
        return frozenset(self.records or ())

    @property
    def largest(self) -> Fraction:
        """The most that an analyst may spend on one release."""
        return self.presets["large"]

    def is_open(self, record: int | str) -> bool:
        """Whether a record may be asked about. Says nothing about whether it exists."""
        return self.records is None or canonical_record(record) in self._open

    def plan(self, epsilon: Fraction) -> Plan:
        """Plan a release from public knowledge alone; plans are cached by epsilon."""
        made = self._plans.get(epsilon)
        if made is None:
            made = self.settings.plan(self.schema, epsilon)
            if len(self._plans) >= PLANS:
                self._plans.clear()
            self._plans[epsilon] = made
        return made

    def check(self) -> None:
        """Refuse a registration by which nothing could ever be released."""
        small, medium, large = (self.presets[name] for name in PRESETS)
        if not small <= medium <= large:
            raise ParameterError("presets must rise: small, medium, large")
        for epsilon in (small, medium, large):
            self.plan(epsilon)
        for record in self.records or ():
            check_record(record)

    def check_cap(self, cap: Fraction | None) -> None:
        """Refuse a preset that no release may cost."""
        for name in PRESETS:
            if cap is not None and self.presets[name] > cap:
                raise ParameterError(
                    f"preset {name} costs {plain(self.presets[name])}, above the cap of "
                    f"{plain(cap)} on one release, so nobody could use it; lower the preset, or "
                    "raise the cap"
                )

    def check_records(self, table: Table) -> None:
        """Refuse open records that do not name one row each. For the owner, who has the rows."""
        missing = [] if self.records is None else table.not_one_row(self.records)
        if missing:
            more = f" and {len(missing) - SHOWN:,} more" if len(missing) > SHOWN else ""
            raise ParameterError(
                "open records must each name one row that fits the schema; these do not: "
                f"{', '.join(map(str, missing[:SHOWN]))}{more}. Correct them, or leave them out"
            )

    def to_public(self) -> dict[str, Any]:
        """Return what an analyst may see."""
        return {
            "name": self.name,
            "version": self.version,
            "description": self.description,
            "schema": _finite(self.schema.to_dict()),
            "options": self.settings.to_json(),
            "guarantee": str(self.settings.guarantee),
            "presets": {name: plain(epsilon) for name, epsilon in self.presets.items()},
            "records": ANY if self.records is None else list(self.records),
        }

    def to_owner(self) -> dict[str, Any]:
        """Return what an owner may see."""
        return self.to_public() | {"source": self.source, "source_state": self.state}

    def to_body(self) -> str:
        """Return the registration as it is kept; the order of attributes matters, so no sorting."""
        kept = self.to_owner() | {"mark": self.file_fingerprint}
        del kept["name"], kept["version"], kept["guarantee"]
        return json.dumps(kept)


def read_presets(given: dict[str, Any]) -> dict[str, Fraction]:
    """Read presets exactly as they are written."""
    return {name: amount(given[name], f"preset {name}") for name in PRESETS}


def read_records(given: object) -> tuple[int | str, ...] | None:
    """Read the list of records that may be asked about."""
    if given == ANY:
        return None
    if not isinstance(given, list):
        raise ParameterError(f"records must be a list of records, or {ANY!r}")
    return tuple(dict.fromkeys(canonical_record(record) for record in given))


def save_registration(
    connection: Connection, new: Registration, now: int, *, replaces: int | None = None
) -> Registration:
    """Keep a registration under the next version; the same again stays what it is.

    A file that was registered before has the state that it had: what was answered about it is not
    paid for again.

    Args:
        connection: to the service's tables.
        new: what is registered.
        now: milliseconds since 1970.
        replaces: the version that must be the newest, 0 for none; by default any.
    """
    lock_head(connection)
    last = _row(connection, new.name)
    newest = 0 if last is None else last.version
    if replaces is not None and replaces != newest:
        raise ParameterError(
            f"dataset {new.name!r} is at version {newest} by now, not {replaces}; look at it and "
            "register again"
        )
    new = replace(new, state=_state(connection, new))
    if last is not None:
        with suppress(*UNREADABLE):  # then this one replaces it
            if _read(*last).to_body() == new.to_body():
                return _read(*last)
    connection.execute(
        insert(tables.datasets).values(
            name=new.name, version=newest + 1, made=now, body=new.to_body()
        )
    )
    saved = find_registration(connection, new.name)
    assert saved is not None  # noqa: S101 (it was written above)
    return saved


def _state(connection: Connection, new: Registration) -> int:
    """Return the number of a file's state: the one it had, or the next.

    The versions are read from the newest on, and no further than to the same file: whoever changes
    a setting reads one. A new file is compared with all of them, once, when it is registered.
    """
    columns = tables.datasets.c
    chosen = select(columns.body).where(columns.name == new.name).order_by(columns.version.desc())
    highest = 0
    for body in connection.execute(chosen).scalars():
        kept = json.loads(body)
        if kept["mark"] == new.file_fingerprint:
            return int(kept["source_state"])
        highest = max(highest, int(kept["source_state"]))
    return highest + 1


def registration_sha256(connection: Connection, name: str, version: int) -> str:
    """Return the hash of a registration, for the event that speaks of it."""
    return _sha256(_row(connection, name, version).body)


def check_registrations(connection: Connection) -> list[str]:
    """Return which registrations are not those that the audit log speaks of, in sentences.

    Events of versions that wrote no hash name what was registered, and say nothing else of it.
    """
    noted: dict[tuple[str, int], str | None] = {}
    for event in map(json.loads, connection.execute(_REGISTERED).scalars()):
        one = event["dataset"], event["version"]
        noted[one] = event.get("sha256", noted.get(one))
    kept = {(row.name, row.version): _sha256(row.body) for row in connection.execute(_EVERY)}
    changed = [one for one, sha256 in noted.items() if sha256 not in (None, kept.get(one))]
    said = dict.fromkeys(changed, "is not what was registered")
    said |= dict.fromkeys(sorted(kept.keys() - noted.keys()), "was never registered")
    return [
        f"version {version} of dataset {name!r} {what}" for (name, version), what in said.items()
    ]


def _sha256(body: str) -> str:
    """Return the hash of all but the file's fingerprint: no event depends on what is in a file."""
    try:
        kept = json.loads(body)
        del kept["mark"]
    except (ValueError, KeyError, TypeError):
        return ""
    return hashlib.sha256(json.dumps(kept).encode("ascii")).hexdigest()


def find_registration(
    connection: Connection, name: str, version: int | None = None
) -> Registration | None:
    """Return a registration: the newest, or a given version."""
    row = _row(connection, name, version)
    return None if row is None else _read(*row)


def read_registrations(
    connection: Connection, names: Select[tuple[str]] | None = None
) -> list[Registration]:
    """Return the newest registration of every dataset, by name.

    One that the rules of today refuse is left out; asked for by its name, it says why.

    Args:
        connection: to the service's tables.
        names: a query for the names of some datasets; by default all.
    """
    columns = tables.datasets.c
    # Found in the database, by its index: versions are kept for ever, and may be many.
    newest = (
        select(columns.name, func.max(columns.version).label("version"))
        .group_by(columns.name)
        .subquery()
    )
    same = and_(columns.name == newest.c.name, columns.version == newest.c.version)
    chosen = select(columns.name, columns.version, columns.body).join(newest, same)
    if names is not None:
        chosen = chosen.where(columns.name.in_(names))
    found = []
    for row in connection.execute(chosen.order_by(columns.name)):
        with suppress(*UNREADABLE):
            found.append(_read(*row))
    return found


_columns = tables.datasets.c
_EVERY = select(_columns.name, _columns.version, _columns.body)
_NAMED = _EVERY.where(_columns.name == bindparam("name"))
_REGISTERED = select(tables.events.c.body).where(tables.events.c.kind == "dataset_registered")
_NEWEST = _NAMED.order_by(_columns.version.desc()).limit(1)
_ONE = _NAMED.where(_columns.version == bindparam("version"))


def _row(connection: Connection, name: str, version: int | None = None) -> Any:
    chosen = _NEWEST if version is None else _ONE
    return connection.execute(chosen, {"name": name, "version": version}).one_or_none()


def parsed_cache(most: int) -> LruCache[tuple[str, int, str], Registration]:
    """Return a cache of parsed registrations, up to a number of characters.

    A version never changes. What one takes of the memory goes with its length, above all with its
    list of records, so they are not counted but measured.
    """
    return LruCache(most, size=lambda row: len(row[2]))


_parsed = parsed_cache(PARSED)


def _read(name: str, version: int, body: str) -> Registration:
    found = _parsed.get((name, version, body))
    if found is None:
        found = _parse(name, version, body)
        _parsed.put((name, version, body), found)
    return found


def _parse(name: str, version: int, body: str) -> Registration:
    kept = json.loads(body)
    return Registration(
        name,
        version,
        Schema.from_dict(kept["schema"]),
        kept["source"],
        kept["mark"],
        Settings.from_json(kept["options"]),
        read_presets(kept["presets"]),
        read_records(kept["records"]),
        kept["description"],
        kept["source_state"],
    )


def _finite(content: Any) -> Any:
    """Return a schema with the ends of open bins as texts: JSON has no infinite numbers."""
    if isinstance(content, dict):
        return {key: _finite(value) for key, value in content.items()}
    if isinstance(content, list):
        return [_finite(value) for value in content]
    return repr(content) if isinstance(content, float) and math.isinf(content) else content
