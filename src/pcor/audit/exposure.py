"""Who is exposed by a release, and how much? For the owner only.

Private: everything. OCDP compares a table only with neighbours on which the record has the same set
of valid contexts (COE). A person whose removal changes COE has no such neighbour: nothing is
promised to them. They are exposed, and this says by how much: the exact delta, which is the most
that the chance of any set of answers can betray beyond the factor exp(epsilon).

Everybody in the table is looked at, and newcomers of chosen metrics in every possible cell. What is
stated is computed, not sampled, and wrong by less than ``divergence.ERROR``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from pcor.audit.changed import cell_codes
from pcor.audit.comparison import AnswerComparison, AuditCase, comparison
from pcor.audit.cubes import Cubes
from pcor.audit.exact import PATH_LIMIT
from pcor.audit.neighbours import Neighbour, checked_metrics, insertions, removals
from pcor.audit.report import Exposed, Exposure
from pcor.errors import TooLarge
from pcor.public.context import Context
from pcor.public.guarantee import get_guarantee
from pcor.public.schema import MOST_NUMBERED, Schema, Value
from pcor.releasing.plan import Plan
from pcor.releasing.settings import Settings
from pcor.releasing.terms import margin_of
from pcor.rows.table import Table, check_table
from pcor.search import Direct
from pcor.search.blocks import ENUMERATION_LIMIT
from pcor.search.coe import Progress

# Under pure DP the ratio is computed while it takes no more scores than this; a proof bounds it
# anyway.
_MOST_SCORES = 1 << 27

_QUANTILES = (0.0, 0.25, 0.5, 0.75, 1.0)


def exposure(
    table: Table,
    record: int | str,
    epsilon: object,
    *,
    insert: Sequence[float] | None = None,
    rows: Sequence[int | str] | None = None,
    limit: int | None = None,
    paths: int = PATH_LIMIT,
    progress: Progress | None = None,
    **options: Any,
) -> Exposure:
    """Return who a release would expose, and by how much. For the owner only.

    Nothing is released and nothing is charged.

    Args:
        table: the rows.
        record: the record's key.
        epsilon: the total cost of the release.
        insert: the metrics of the newcomers to look at, each in every possible cell; by default the
            record's own and the smallest, the quartiles and the largest of the table. None are
            looked at if it is empty.
        rows: the keys of the people to look at, and with them those who have the same values and
            metric; by default everybody.
        limit: the most verdicts to ask for; see ``neighbours.removals``. A larger space than usual
            is listed up to it too.
        paths: the most paths of random decisions to replay.
        progress: called with (parts done, parts in all) now and then.
        **options: as for ``pcor.release``: settings, or detector, search, utility, ...

    Raises:
        RecordError: the record does not exist, or its id is not unique.
        TooLarge: more verdicts or paths are needed than the limits allow.
        ParameterError: a metric or an option is out of range.
    """
    check_table(table)
    plan = audited_settings(Settings.of(**options), limit).plan(table.schema, epsilon)
    return planned_exposure(
        plan,
        table,
        record,
        insert=insert,
        rows=rows,
        limit=limit,
        paths=paths,
        progress=progress,
    )


def planned_exposure(
    plan: Plan,
    table: Table,
    record: int | str,
    *,
    insert: Sequence[float] | None = None,
    rows: Sequence[int | str] | None = None,
    limit: int | None = None,
    paths: int = PATH_LIMIT,
    progress: Progress | None = None,
) -> Exposure:
    """Return the same for a plan that is made."""
    given = None if insert is None else checked_metrics(insert, "insert")
    case = AuditCase(table, record, plan, max(limit or 0, ENUMERATION_LIMIT))
    metrics = tuple(_usual_metrics(case) if given is None else given)
    people = _people(case, rows)
    contexts = int(case.valid.sum())
    tried = len(metrics) * int(np.prod([len(a.values) for a in table.schema.attributes]))
    own = Context.from_mask(table.schema, case.space.fixed).values
    found = Exposure(
        case.record.key,
        plan,
        contexts,
        people,
        tried=tried,
        metrics=metrics,
        values={name: value for name, [value] in own.items()},
        metric=case.record.value,
    )
    if not plan.guarantee.relaxed:
        return replace(found, everyone=_everyone(case, metrics))
    way = comparison(case, paths)
    gone = removals(case.validity, rows=rows, limit=limit, progress=_phase(progress, 0))
    come, note = _newcomers(case, metrics, limit, _phase(progress, 1), given=given is not None)
    changes = _compared(case, way, [*gone, *come], _phase(progress, 2))
    return replace(
        found,
        exposed=tuple(one for one in changes if one.kind == "removed"),
        newcomers=tuple(one for one in changes if one.kind == "added"),
        tried=0 if note else tried,
        note=note,
    )


def audited_settings(settings: Settings, limit: int | None) -> Settings:
    """Return the settings of a release that draws from as many contexts as an audit looks at."""
    direct = settings.search == "direct" or (
        settings.search == "auto" and not get_guarantee(settings.guarantee).relaxed
    )
    if limit is None or not direct:
        return settings
    return replace(settings, search=Direct(limit=min(max(limit, ENUMERATION_LIMIT), MOST_NUMBERED)))


def exposures(
    table: Table, records: Sequence[int | str], epsilon: object, **options: Any
) -> list[Exposure]:
    """Return the exposure of several records, each by itself; ``exposure`` has the arguments.

    ``joint_exposure`` says what the releases come to together.
    """
    return [exposure(table, record, epsilon, **options) for record in records]


def _people(case: AuditCase, rows: Sequence[int | str] | None) -> int:
    """Return how many people are looked at; the record itself is not one of them."""
    if rows is None:
        return int(case.table.cells.cell_counts.sum()) - 1
    cells = case.table.cells.in_memory()
    records = [case.table.record(key) for key in rows]
    named = {(r.space.fixed, r.value) for r in records if r.key != case.record.key}
    count = 0
    for mask, value in named:
        alike = cells.alike(case.table.words([mask])[0], value)
        itself = (mask, value) == (case.space.fixed, case.record.value)
        count += int(cells.counts[alike].sum()) - itself
    return count


def _usual_metrics(case: AuditCase) -> list[float]:
    """Return the metrics of newcomers that say most: like the record, usual, extreme."""
    cells = case.table.cells.in_memory()
    places = np.cumsum(cells.counts) - 1  # the last row of each pair, by rising metric
    wanted = [round(share * float(places[-1])) for share in _QUANTILES]
    quantiles = cells.values[np.searchsorted(places, wanted)].tolist()
    return sorted({case.record.value, *quantiles})


def _newcomers(
    case: AuditCase,
    metrics: Sequence[float],
    limit: int | None,
    progress: Progress | None,
    *,
    given: bool,
) -> tuple[list[Neighbour], str]:
    """Return the newcomers who change COE; too many are passed over, unless they were asked for."""
    if not metrics:
        return [], ""
    try:
        return insertions(case.validity, metrics, limit=limit, progress=progress), ""
    except TooLarge:
        if given:
            raise
        return [], "Newcomers were not looked at: on this table that takes too many verdicts."


def _compared(
    case: AuditCase, way: AnswerComparison, changes: Sequence[Neighbour], progress: Progress | None
) -> list[Exposed]:
    """Compare the release with and without each, most exposed first."""
    found = []
    for done, change in enumerate(changes, start=1):
        delta, ratio = way.against(change)
        found.append(
            Exposed(
                change.kind,
                _named(case.table.schema, change.places),
                change.value,
                change.rows,
                len(change.lost_cubes),
                len(change.gained_cubes),
                delta,
                ratio,
            )
        )
        if progress is not None:
            progress(done, len(changes))
    return sorted(found, key=lambda one: (-one.delta, -one.lost - one.gained, one.metric))


def _named(schema: Schema, places: Sequence[int]) -> dict[str, Value]:
    return {
        attribute.name: attribute.values[place]
        for attribute, place in zip(schema.attributes, places, strict=True)
    }


def _everyone(case: AuditCase, metrics: Sequence[float]) -> float | None:
    """Return the largest log ratio of all changes by one row, where that is not too much work."""
    changes = _kinds(case, metrics)
    if len(changes) * case.space.size > _MOST_SCORES:
        return None
    way = comparison(case)
    ratios = [way.against(change).ratio for change in changes]
    return max((ratio for ratio in ratios if ratio is not None), default=None)


def _kinds(case: AuditCase, metrics: Sequence[float]) -> list[Neighbour]:
    """Return one of each kind of change by one row.

    Rows of one cell that are in the record's region, or are not, change every margin score alike.
    """
    table = case.table
    rule, _ = margin_of(case.plan.settings)
    cells = table.cells.in_memory()
    inside = rule.in_region(cells.values, case.record.value)
    mine = cells.alike(table.words([case.space.fixed])[0], case.record.value)
    others = np.arange(len(cells.values))
    if int(cells.counts[mine].sum()) == 1:  # the record itself, who stays
        others = np.delete(others, mine)
    places = cell_codes(table)[cells.pair_cells[others]]
    there = zip(places.tolist(), inside[others].tolist(), strict=True)
    firsts = dict(zip(((tuple(p), i) for p, i in there), cells.values[others], strict=True))
    found = [_harmless("removed", where, float(value)) for (where, _), value in firsts.items()]
    domains = [range(len(attribute.values)) for attribute in table.schema.attributes]
    sides = rule.in_region(np.array(metrics), case.record.value).tolist() if metrics else []
    for value in dict(zip(sides, metrics, strict=True)).values():
        found += [_harmless("added", where, value) for where in product(*domains)]
    return found


def _harmless(kind: str, places: tuple[int, ...], value: float) -> Neighbour:
    """Return a change under which nothing is said of COE: margin scores do not ask for it."""
    none = Cubes.of(np.zeros(0, dtype=np.uint64))
    return Neighbour(kind, places, value, 1, none, none)


def _phase(progress: Progress | None, number: int, phases: int = 3) -> Progress | None:
    """Return what reports one of several phases as a part of the whole."""
    if progress is None:
        return None
    return lambda done, total: progress(number * 1000 + 1000 * done // max(total, 1), phases * 1000)
