"""Under pure DP nobody is exposed: by how much does an answer's chance really differ, at most?

Private: everything; for the owner only. Every context is a candidate, and what somebody changes is
its margin score: rows of one cell that are in the record's region, or are not, change it alike. So
one of each kind is compared, exactly, where that is not too much work; a proof bounds it anyway.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from pcor.audit.changed import Row, cell_codes
from pcor.audit.comparison import AuditCase, comparison
from pcor.audit.neighbours import Neighbour
from pcor.audit.people import kinds_of_people, newcomer_sizes
from pcor.releasing.terms import margin_of
from pcor.search.boxes import Boxes

# The ratio is computed while it takes no more scores than this.
_MOST_SCORES = 1 << 27

Rows = tuple[Row, ...]


def largest_ratio(
    case: AuditCase, metrics: Sequence[float], public: Sequence[int | str]
) -> float | None:
    """Return the largest log ratio of all changes, where that is not too much work.

    With facts it is that of the context and the most that they can add.

    Args:
        case: the record, the plan and the table.
        metrics: those of newcomers.
        public: the keys of other rows that stay.
    """
    changes = [*_leaving(case, public), *_coming(case, metrics)]
    if len(changes) * case.space.size > _MOST_SCORES:
        return None
    way = comparison(case)
    ratios = [way.against(change).ratio for change in changes]
    return case.with_facts(max((ratio for ratio in ratios if ratio is not None), default=None))


def _leaving(case: AuditCase, public: Sequence[int | str]) -> Iterator[Neighbour]:
    """Yield one of each kind of row, or of person, that can go."""
    if case.table.schema.unit.is_person:
        people = kinds_of_people(case.table, case.record, public=public)
        going: list[tuple[Rows, Rows]] = [(kind.rows, kind.come) for kind in people]
    else:
        going = [((row,), ()) for row in _other_rows(case)]
    metrics = np.array([row.value for both in going for rows in both for row in rows])
    inside = iter(_in_region(case, metrics))
    kinds = {
        tuple(tuple((row.places, next(inside)) for row in rows) for rows in both): both
        for both in going
    }
    # In another order of the metrics the same cells may come twice: a comparison more, no harm.
    for both in kinds.values():
        yield _harmless(case, "removed", *both)


def _other_rows(case: AuditCase) -> list[Row]:
    """Return the rows of the table, those that are alike once; not the record itself."""
    table = case.table
    cells = table.cells.in_memory()
    mine = cells.alike(table.words([case.space.fixed])[0], case.record.value)
    others = np.arange(len(cells.values))
    if int(cells.counts[mine].sum()) == 1:  # the record itself, who stays
        others = np.delete(others, mine)
    places = cell_codes(table)[cells.pair_cells[others]].tolist()
    return list(map(Row, map(tuple, places), cells.values[others].tolist()))


def _coming(case: AuditCase, metrics: Sequence[float]) -> Iterator[Neighbour]:
    """Yield one of each kind of newcomer."""
    domains = [range(len(attribute.values)) for attribute in case.table.schema.attributes]
    sides = dict(zip(_in_region(case, np.array(metrics)), metrics, strict=True))
    for value, copies in product(sides.values(), newcomer_sizes(case.table)):
        for where in product(*domains):
            yield _harmless(case, "added", (Row(where, value),) * copies)


def _in_region(
    case: AuditCase, metrics: np.ndarray[tuple[int], np.dtype[np.float64]]
) -> list[bool]:
    """Return which metrics are in the record's region."""
    if not len(metrics):
        return []
    rule, _ = margin_of(case.plan.settings)
    inside: list[bool] = rule.in_region(metrics, case.record.value).tolist()
    return inside


def _harmless(case: AuditCase, kind: str, rows: Rows, come: Rows = ()) -> Neighbour:
    """Return a change under which nothing is said of COE: margin scores do not ask for it."""
    none = Boxes.of(case.space, np.zeros(0, dtype=np.uint64))
    first, *more = rows
    return Neighbour(kind, *first, 1, none, none, tuple(more), come=come)
