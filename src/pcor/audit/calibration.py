"""Calibration: how rare is it to stand out here? Asked before anybody is asked about.

Private: everything; for the owner only. Of a sample of rows it is found out how many are outliers
in at least one context, for the schema's family and for others, and for stricter rules. Where
nearly everybody stands out somewhere, an answer means nothing, whoever it is about. Which rows are
looked at is drawn from a seed; no record that somebody asked about is looked at for itself.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np

from pcor.audit.neighbours import removals
from pcor.audit.owner_only import OwnerOnly
from pcor.detectors import Detector, get_detector
from pcor.errors import TooLarge, check_whole, counted
from pcor.public.context import mask_of
from pcor.public.guarantee import OWNER_ONLY
from pcor.public.schema import Schema
from pcor.public.space import Space, clauses_and_items
from pcor.rows.table import Record, Table, check_table
from pcor.search.best_first import BestFirst
from pcor.search.blocks import ENUMERATION_LIMIT
from pcor.search.coe import Progress, check_size
from pcor.search.validity import Validity
from pcor.support.threads import one_by_one

ROWS = 200

# To find nothing takes a look at every context: so many are looked at in one family, about, and
# fewer rows where each has more; but never fewer than these.
_MOST_LOOKS = 1 << 26
_FEWEST_ROWS = 12

# Of so many rows that stand out it is counted who would be exposed.
EXPOSED = 10

# The two-sided 95 % quantile of the normal distribution, for Wilson's interval.
_Z = 1.959964

# What makes a rule stricter, by the name of its parameter.
_STRICTER = {"threshold": 4 / 3, "alpha": 1 / 5, "rare": 1 / 5, "share": 1 / 5}


@dataclass(frozen=True, repr=False)
class CalibrationPoint(OwnerOnly):
    """What a family and a detector make of the sampled rows. Private.

    Attributes:
        family: what contexts may be.
        detector: the rule, in words.
        contexts: how many contexts a record can have, at most; public.
        rows: how many rows were looked at.
        standing_out: how many of them are outliers in some context.
        named: how many things the words for the largest valid context name, on average.
        exposed: how many people are exposed by a release, on average of those looked at; ``None``
            where that takes too long.
    """

    family: str
    detector: str
    contexts: int
    rows: int
    standing_out: int
    named: float | None
    exposed: float | None

    @property
    def share(self) -> float:
        """The part of the sampled rows that stand out somewhere."""
        return self.standing_out / self.rows

    @property
    def interval(self) -> tuple[float, float]:
        """Where the share of all rows lies, with 95 % confidence (Wilson 1927)."""
        n, p = self.rows, self.share
        middle = (p + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
        half = _Z / (1 + _Z**2 / n) * math.sqrt(p * (1 - p) / n + _Z**2 / (4 * n**2))
        return max(0.0, middle - half), min(1.0, middle + half)

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers for the owner's programs."""
        low, high = self.interval
        return asdict(self) | {"share": self.share, "low": low, "high": high}


@dataclass(frozen=True, repr=False)
class Calibration(OwnerOnly):
    """How rare it is to stand out, for several families and rules. Private: for the owner only.

    Attributes:
        points: the schema's own family first.
        left_out: the families with too many contexts to look at, and how many; public.
    """

    points: tuple[CalibrationPoint, ...]
    left_out: dict[str, int]

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers for the owner's programs."""
        return {
            "owner_only": OWNER_ONLY,
            "points": [point.to_dict() for point in self.points],
            "left_out": {name: counted(contexts) for name, contexts in self.left_out.items()},
        }


def calibrate(
    table: Table,
    rows: int = ROWS,
    detector: str | Detector | None = None,
    *,
    exposed: int = EXPOSED,
    seed: int = 0,
    limit: int = ENUMERATION_LIMIT,
    progress: Progress | None = None,
    found: Callable[[CalibrationPoint], None] | None = None,
) -> Calibration:
    """Tell how many of some random rows stand out in at least one context. For the owner only.

    Args:
        table: the rows, in memory.
        rows: how many of them to look at; fewer in a family of millions of contexts.
        detector: a detector or its name; by default that of the schema, or lof.
        exposed: of how many that stand out to count whom a release exposes; 0 for none.
        seed: of which rows are looked at.
        limit: families in which a record can have more contexts are left out.
        progress: called with (rows done, rows in all) of a family now and then, from 0 for each.
        found: called with what is known of a family as soon as it is.

    Raises:
        ParameterError: a number is not one that can be.
        SourceError: the rows are not in memory.
        TooLarge: a record has too many contexts in every family.
    """
    check_table(table)
    check_whole("rows", rows)
    check_whole("exposed", exposed, least=0)
    check_whole("limit", limit)
    every_family = families(table.schema)
    small = [(name, schema) for name, schema in every_family if schema.drawable(limit)]
    if not small:
        check_size(min(schema.most_walked for _, schema in every_family), limit)
    rule = get_detector(detector, table.schema)
    asked = [
        (name, schema, kind)
        for name, schema in small
        for kind in ([rule, *stricter(rule)] if schema == small[0][1] else [rule])
    ]
    samples = [
        _sampled(table, min(rows, max(_FEWEST_ROWS, _MOST_LOOKS // schema.most_walked)), seed)
        for _, schema, _ in asked
    ]
    points = []
    step = progress or (lambda *_: None)
    for (name, schema, kind), sample in zip(asked, samples, strict=True):
        step(0, len(sample))
        points.append(_point(name, table.in_family(schema), kind, sample, exposed, step))
        if found is not None:
            found(points[-1])
    larger = {name: one.most_contexts for name, one in every_family if (name, one) not in small}
    return Calibration(tuple(points), larger)


def families(schema: Schema) -> list[tuple[str, Schema]]:
    """Return the schema's own family and some others, with their names; the same one only once."""
    short = [
        {"groups": a.to_dict()["groups"]}
        if a.groups
        else {"contexts": "range" if a.ordered else "one"}
        for a in schema.attributes
    ]
    few = [most for most in (3, 2, 1) if most < len(schema.attributes)]
    found = [
        ("as declared", schema),
        ("any set of values", _with_families(schema, [{} for _ in schema.attributes])),
        ("ranges and own values", _with_families(schema, short)),
        *(
            (
                f"the same, at most {most} {'clauses' if most > 1 else 'clause'}",
                _with_families(schema, short, max_clauses=most),
            )
            for most in few
        ),
    ]
    seen: dict[str, tuple[str, Schema]] = {}
    for name, one in found:
        seen.setdefault(one.sha256, (name, one))
    return list(seen.values())


def _with_families(schema: Schema, kinds: list[dict[str, Any]], **limits: int) -> Schema:
    """Return the schema with other families, one for each attribute."""
    declared = schema.to_dict()
    own = zip(declared["attributes"].items(), kinds, strict=True)
    attributes = {
        name: {k: v for k, v in said.items() if k not in ("contexts", "groups")} | kind
        for (name, said), kind in own
    }
    return Schema.from_dict(declared | {"attributes": attributes, "contexts": limits})


def stricter(rule: Detector) -> list[Detector]:
    """Return the rule with a higher bar, where it is known which of its parameters is that."""
    names = {field.name for field in fields(rule)} if is_dataclass(rule) else set()
    return [
        replace(rule, **{name: round(getattr(rule, name) * factor, 6)})
        for name, factor in _STRICTER.items()
        if name in names and isinstance(getattr(rule, name), float)
    ][:1]


def _sampled(table: Table, rows: int, seed: int) -> list[int]:
    """Return the places of random rows, in order; all of them where they are few."""
    count = len(table.rows.metric)
    numbers = random.Random(seed)  # noqa: S311 (which rows to look at)
    return sorted(numbers.sample(range(count), min(rows, count)))


def _point(
    name: str,
    table: Table,
    rule: Detector,
    chosen: Sequence[int],
    exposed: int,
    progress: Progress,
) -> CalibrationPoint:
    """Look at the chosen rows in one family, by one rule."""
    widest: dict[int, int | None] = {}

    def look(place: int) -> None:
        widest[place] = _largest_valid(Validity(table, _record(table, chosen[place]), rule))
        progress(len(widest), len(chosen))

    if rule.has_kernel:
        one_by_one(len(chosen), look)
    else:  # somebody else's code may not like threads
        for place in range(len(chosen)):
            look(place)
    standing = [place for place in sorted(widest) if widest[place] is not None]
    masks = [mask for place in standing if (mask := widest[place]) is not None]
    named = clauses_and_items(table.schema, table.words(masks))[1] if masks else None
    return CalibrationPoint(
        family=name,
        detector=describe(rule),
        contexts=table.schema.most_contexts,
        rows=len(chosen),
        standing_out=len(standing),
        named=None if named is None else float(named.mean()),
        exposed=_exposed(table, rule, [chosen[place] for place in standing[:exposed]]),
    )


def describe(rule: Detector) -> str:
    """Write a detector and its settings in one line."""
    said = rule.describe()
    settings = ", ".join(f"{key} {value}" for key, value in said.items() if key != "name")
    return f"{said['name']} ({settings})" if settings else str(said["name"])


def _record(table: Table, row: int) -> Record:
    rows = table.rows
    own = mask_of(table.schema, rows.cells[rows.cell[row]])
    return Record(table.key_of(row), float(rows.metric[row]), Space(table.schema, own))


def _largest_valid(validity: Validity) -> int | None:
    """Return the largest context in which the record is an outlier, if there is one."""
    order = BestFirst(validity, validity.table.cells.cell_counts)
    while not order.finished and not order.ranked():
        order.advance()
    return order.mask(0) if order.ranked() else None


def _exposed(table: Table, rule: Detector, rows: Sequence[int]) -> float | None:
    """Return how many people a release for one of these rows exposes, on average."""
    counts = []
    for row in rows:
        try:
            found = removals(Validity(table, _record(table, row), rule))
        except TooLarge:
            return None
        counts.append(sum(one.rows for one in found))
    return float(np.mean(counts)) if counts else None
