"""A table whose rows can be recognised, and eyes for them in all that leaves."""

from __future__ import annotations

import pickle
import pickletools
import re
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import pcor
from pcor.rows.encoded_rows import EncodedRows
from pcor.rows.table import Record
from pcor.search.utility import Population
from pcor.search.validity import Validity
from tests.helpers.neighbours import every_search

V = "V-one"
OTHER = "ZZ-ID-31"
UNDECLARED = "ZZ-CANARY-7"
# None of these may be part of any text; whole numbers are looked for by their digits.
SPELLINGS = ("ZZ-ID", "ZZ-CANARY", "ZZ-NOTE")

SITES = [f"site {letter}" for letter in "ABCDEFGHIJ"]
KINDS = ["blue", "green", "red"]
SCHEMA = pcor.Schema(
    metric="amount",
    attributes={
        "site": {"values": SITES, "outside": "drop"},
        "kind": {"values": KINDS, "outside": "drop"},
    },
    id="key",
    name="canaries",
)
START = pcor.Context(SCHEMA, {"site": SITES[:1], "kind": KINDS[:1]})
EPSILON = 0.2

# Sizes of cells: even, and V's own is large. A context's mask has V's bits and is odd or smaller,
# so that no count can be taken for the mask of the context that is drawn.
CELL, OUTSIDE = 1_238, 1_130


def columns() -> dict[str, list[Any]]:
    """Return a table with V, tens of thousands of others, and rows that do not fit the schema."""
    table: dict[str, list[Any]] = {name: [] for name in ("key", "site", "kind", "amount", "note")}

    def add(key: str, site: str, kind: str, amount: float) -> None:
        cells = (key, site, kind, amount, f"ZZ-NOTE {key}")
        for name, cell in zip(table, cells, strict=True):
            table[name].append(cell)

    add(V, SITES[0], KINDS[0], 9_000_000.0)
    for place, (site, kind) in enumerate((s, k) for s in SITES for k in KINDS):
        for number in range(9_237 if place == 0 else CELL + 132 * (place - 1)):
            # Few distinct values, each with a fraction of its own: 7134459.25, 7134488.25, ...
            amount = 7_134_459.25 + 29 * (number % 19) + 1_009 * (place % 5)
            if (site, kind) == (SITES[-1], KINDS[-1]):  # among these V is nothing special
                amount = 8_990_013.75 + 7 * number
            add(f"ZZ-ID-{len(table['key'])}", site, kind, amount)
    for number in range(OUTSIDE):
        add(f"ZZ-ID-out-{number}", UNDECLARED, KINDS[0], 8_161_733.75)
    return table


def callable_rule(population: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Call outliers what lies far from the median with few others."""
    far: NDArray[np.bool_] = np.abs(population - np.median(population)) > 1_000_000
    few: NDArray[np.bool_] = far & (far.sum() <= 10)
    return few


DETECTORS: dict[str, pcor.Detector] = {
    "lof": pcor.LOF(),
    "grubbs": pcor.Grubbs(tail="upper"),
    "histogram": pcor.Histogram(),
    "function": pcor.Estimator(callable_rule),
}
SEARCHES = {search.name: search for search in every_search(samples=5)}


class World(NamedTuple):
    """The table and all that must not leave it."""

    source: pa.Table
    table: pcor.Table
    forbidden: frozenset[int]

    def release(self, **how: Any) -> pcor.Release:
        options: dict[str, Any] = {"epsilon": EPSILON, "detector": "grubbs"} | how
        return pcor.release(self.table, V, **options)


@cache
def world() -> World:
    source = pa.table(columns())
    table = pcor.Table(source, SCHEMA)
    space = table.record(V).space
    counts = {source.num_rows, source.num_rows - OUTSIDE, OUTSIDE}
    counts |= {*table.populations([*space.masks()]).tolist(), *table.cells.cell_counts.tolist()}
    for detector in DETECTORS.values():
        found = pcor.matching_contexts(table, V, detector)
        # Neither none nor all of the space, whose size is public.
        assert 1000 <= len(found) < space.size
        counts |= {len(found)}
    others = {int(amount) for amount in source["amount"].to_pylist()[1:]}
    forbidden = frozenset(int(number) for number in counts | others)
    # What is looked for must not be public by chance: parameters of searches and detectors.
    assert min(forbidden) >= 1000
    assert not forbidden & {space.size, 100_000, 1 << 16, 1 << 12, 9_000_000}
    assert not forbidden & {*space.masks(), *SCHEMA.attribute_masks}
    return World(source, table, forbidden)


# Digits that are public: fingerprints, the bits of a context, the page's colours, and the address
# in a plain repr, which holds the digits of some count in one of 400 processes.
_PUBLIC = re.compile(
    r"\b[0-9a-f]{64}\b|<style>.*?</style>|\b[01]{13}\b| at 0x[0-9a-f]+>", re.DOTALL
)
_NUMBER = re.compile(r"\d(?:[\d,_]*\d)?")


def leaks(text: str) -> set[str]:
    """Return what a text gives away: canaries by their spelling, numbers by their digits."""
    found = {spelling for spelling in SPELLINGS if spelling in text}
    for digits in _NUMBER.findall(_PUBLIC.sub(" ", text)):
        for number in (digits, *re.split("[,_]", digits)):
            whole = re.sub("[,_]", "", number)
            found |= {number} if int(whole) in world().forbidden else set()
    return found


def pickled(thing: object) -> str:
    """Return all numbers and texts in an object's pickle, without the pickle's own numbers."""
    own = ("PROTO", "FRAME", "PUT", "BINPUT", "LONG_BINPUT", "GET", "BINGET", "LONG_BINGET")
    parts = [(code.name, part) for code, part, _ in pickletools.genops(pickle.dumps(thing))]
    return "\n".join(str(part) for name, part in parts if name not in own)


PRIVATE = (pcor.Table, EncodedRows, Record, Validity, Population, pcor.MatchingContexts, np.ndarray)
PRIVATE_MODULES = ("pyarrow", "numpy", "polars", "pandas")


def reachable(thing: object) -> Iterator[object]:
    """Yield every object that can be reached through attributes and containers."""
    seen: dict[int, object] = {}
    waiting = [thing]
    while waiting:
        thing = waiting.pop()
        if id(thing) in seen or isinstance(thing, type):
            continue
        seen[id(thing)] = thing
        yield thing
        waiting += _parts(thing)


def _parts(thing: object) -> list[object]:
    parts: list[object] = [*vars(thing).values()] if hasattr(thing, "__dict__") else []
    for kind in type(thing).__mro__:
        slots = getattr(kind, "__slots__", ())
        names = [slots] if isinstance(slots, str) else slots
        parts += [getattr(thing, name) for name in names if hasattr(thing, name)]
    if isinstance(thing, dict):
        parts += [*thing.keys(), *thing.values()]
    elif isinstance(thing, list | tuple | set | frozenset):
        parts += [*thing]
    if callable(thing):
        parts += [cell.cell_contents for cell in getattr(thing, "__closure__", None) or ()]
        parts += [getattr(thing, "__self__", None)]
    return parts


def private_things(thing: object) -> list[object]:
    """Return what can be reached from an object and holds rows, counts or verdicts."""
    return [
        part
        for part in reachable(thing)
        if isinstance(part, PRIVATE)
        or type(part).__module__.split(".")[0] in PRIVATE_MODULES
        or leaks(str(part) if isinstance(part, int | float | str) else "")
    ]
