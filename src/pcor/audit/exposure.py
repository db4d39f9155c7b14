"""Who is exposed by a release, and how much? For the owner only.

Private: everything. OCDP compares a table only with neighbours on which the record has the same set
of valid contexts (COE). A person whose removal changes COE has no such neighbour: nothing is
promised to them. They are exposed, and this says by how much: the exact delta, which is the most
that the chance of any set of answers can betray beyond the factor exp(epsilon).

Everybody in the table is looked at, and newcomers of chosen metrics in every possible cell. Where
the schema says whose rows are whose, a person goes with all of their rows, and newcomers have one
row, or as many as a person may have, all alike. What is stated is computed, not sampled, and wrong
by less than ``divergence.ERROR``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pcor.audit.changed import Row
from pcor.audit.comparison import AnswerComparison, AuditCase, comparison
from pcor.audit.everyone import largest_ratio
from pcor.audit.exact import PATH_LIMIT
from pcor.audit.neighbours import Neighbour, checked_metrics, insertions, removals
from pcor.audit.people import kinds_of_people, newcomer_sizes
from pcor.audit.report import Exposed, ExposedRow, Exposure
from pcor.errors import TooLarge
from pcor.public.context import Context
from pcor.public.guarantee import get_guarantee
from pcor.public.schema import MOST_NUMBERED, Schema, Value
from pcor.releasing.plan import Plan
from pcor.releasing.settings import Settings
from pcor.rows.table import Table, check_table
from pcor.search import Direct
from pcor.search.blocks import ENUMERATION_LIMIT
from pcor.search.coe import Progress

_QUANTILES = (0.0, 0.25, 0.5, 0.75, 1.0)


def exposure(
    table: Table,
    record: int | str,
    epsilon: object,
    *,
    insert: Sequence[float] | None = None,
    rows: Sequence[int | str] | None = None,
    public: Sequence[int | str] = (),
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
        public: the keys of other records that are queried too, such as the rest of a list. Where
            people go with all of their rows, these stay, as the record does.
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
        public=public,
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
    public: Sequence[int | str] = (),
    limit: int | None = None,
    paths: int = PATH_LIMIT,
    progress: Progress | None = None,
) -> Exposure:
    """Return the same for a plan that is made."""
    given = None if insert is None else checked_metrics(insert, "insert")
    case = AuditCase(table, record, plan, max(limit or 0, ENUMERATION_LIMIT))
    metrics = tuple(_usual_metrics(case) if given is None else given)
    people = _people(case, rows, public)
    sizes = newcomer_sizes(table)
    contexts = int(case.valid.sum())
    cells = int(np.prod([len(a.values) for a in table.schema.attributes]))
    tried = len(metrics) * cells * len(sizes)
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
        newcomer_rows=sizes,
        public=_stay(case, public),
    )
    if not plan.guarantee.relaxed:
        return replace(found, everyone=largest_ratio(case, metrics, public))
    way = comparison(case, paths)
    gone = removals(
        case.validity, rows=rows, public=public, limit=limit, progress=_phase(progress, 0)
    )
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

    ``joint_exposure`` says what the releases come to together. All of the records are public: when
    the person of one goes with all of their rows, it stays.
    """
    public = [*options.pop("public", ()), *records]
    return [exposure(table, record, epsilon, public=public, **options) for record in records]


def _people(case: AuditCase, rows: Sequence[int | str] | None, public: Sequence[int | str]) -> int:
    """Return how many people are looked at; the record itself is not one of them.

    Of its person, and of others who are queried, the other rows are.
    """
    if case.table.schema.unit.is_person:
        kinds = kinds_of_people(case.table, case.record, public=public, some=rows)
        return sum(kind.people for kind in kinds)
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


def _stay(case: AuditCase, public: Sequence[int | str]) -> tuple[int | str, ...]:
    """Return the keys of the rows that stay when their person goes, as the table spells them."""
    if not case.table.schema.unit.is_person:
        return ()
    keys = {case.record.key, *(case.table.record(key).key for key in public)}
    return tuple(sorted(keys, key=str))


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
                len(change.lost_boxes),
                len(change.gained_boxes),
                delta,
                case.with_facts(ratio),
                *_rows_of(case.table.schema, change),
            )
        )
        if progress is not None:
            progress(done, len(changes))
    return sorted(found, key=lambda one: (-one.delta, -one.lost - one.gained, one.metric))


def _rows_of(
    schema: Schema, change: Neighbour
) -> tuple[tuple[ExposedRow, ...], tuple[ExposedRow, ...]]:
    """Return a person's rows that come or go, and those that stay; none for a row by itself."""

    def told(rows: Sequence[Row]) -> tuple[ExposedRow, ...]:
        return tuple(ExposedRow(_named(schema, row.places), row.value) for row in rows)

    return (told(change.changed), told(change.kept)) if schema.unit.is_person else ((), ())


def _named(schema: Schema, places: Sequence[int]) -> dict[str, Value]:
    return {
        attribute.name: attribute.values[place]
        for attribute, place in zip(schema.attributes, places, strict=True)
    }


def _phase(progress: Progress | None, number: int, phases: int = 3) -> Progress | None:
    """Return what reports one of several phases as a part of the whole."""
    if progress is None:
        return None
    return lambda done, total: progress(number * 1000 + 1000 * done // max(total, 1), phases * 1000)
