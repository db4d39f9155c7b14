"""Which changes change COE, by any detector: contexts that cover a changed row are judged again.

Private: everything; for the owner only. A context that covers none of the rows that come or go has
the same population as before, so only the others are judged, by the detector itself on the changed
rows. LOF has a faster way to the same answers (``pcor.audit.lof_windows``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from pcor.audit.changed import Row, cell_places, changed_cells, verdicts
from pcor.errors import TooLarge, counted, others_code
from pcor.public.space import Indices, Space
from pcor.rows.cell_table import CellTable
from pcor.search.blocks import listed_size
from pcor.search.boxes import Boxes
from pcor.search.coe import Progress, patience
from pcor.search.validity import Validity

# The most verdicts that are asked for when nobody says otherwise; public. With a kernel that is a
# minute or two, without one each verdict is a call of Python.
VERDICT_LIMIT = 1 << 26
SLOW_VERDICT_LIMIT = 1 << 20

# To find the rows that some context looks at, every context looks through all rows: so many looks
# are a few seconds.
_MOST_LOOKS = 1 << 31

# Rows that come or go at once.
Rows = tuple[Row, ...]
Changed = tuple[int, Boxes, Boxes]  # the place of the change, contexts lost, contexts gained


def rejudged(
    validity: Validity,
    kind: str,
    changes: Sequence[Rows],
    limit: int | None,
    progress: Progress | None,
    come: Sequence[Rows] = (),
) -> list[Changed]:
    """Try each change, and judge the contexts that cover one of its rows again.

    ``come`` are, for each change, rows that come as those of the change go; by default none do.
    Returns the places of the changes that change COE, rising, with what they change.
    """
    schema, space = validity.table.schema, validity.record.space
    come = come or [()] * len(changes)
    required = [
        [row.required(schema, space) for row in dict.fromkeys([*change, *more])]
        for change, more in zip(changes, come, strict=True)
    ]
    check_verdicts(validity, kind, [one for several in required for one in several], limit)
    again = _ChangedVerdicts(validity, kind, most=max(map(len, changes), default=1))
    singles: dict[tuple[int, ...], list[int]] = {}
    for place, change in enumerate(changes):
        if len(change) == 1 and not come[place]:
            singles.setdefault(change[0].places, []).append(place)
    changed: list[Changed] = []

    def note(place: int, indices: Indices, now: NDArray[np.bool_], done: int) -> None:
        was = again.before[indices]
        lost, gained = indices[was & ~now], indices[now & ~was]
        if len(lost) or len(gained):
            changed.append((place, Boxes.of(space, lost), Boxes.of(space, gained)))
        if progress is not None:
            progress(done, len(changes))

    done = 0
    for places in singles.values():
        indices = again.covering(required[places[0]])
        rows = [changes[place][0] for place in places]
        for place, now in zip(places, again.one_by_one(rows, indices), strict=True):
            done += 1
            note(place, indices, now, done)
    for place, change in enumerate(changes):
        if len(change) > 1 or come[place]:
            done += 1
            indices = again.covering(required[place])
            note(place, indices, again.at_once(change, indices, come[place]), done)
    return sorted(changed, key=lambda one: one[0])


class _ChangedVerdicts:
    """Verdicts on changed tables. Private.

    Args:
        validity: the record, the detector and the table.
        kind: ``"removed"`` or ``"added"``.
        most: how many rows come or go at once, at most.
    """

    def __init__(self, validity: Validity, kind: str, most: int) -> None:
        self._validity, self._kind = validity, kind
        self.before = verdicts(validity)
        self._cells = in_window(validity, spare=most)
        self._members = _members(validity.record.space)

    def covering(self, required: Sequence[int]) -> Indices:
        """Return the contexts that cover at least one of some rows."""
        space = self._validity.record.space
        covering = [space.covering(self._members, one) for one in required]
        return self._members[np.logical_or.reduce(covering)]

    def at_once(self, rows: Rows, indices: Indices, come: Rows = ()) -> NDArray[np.bool_]:
        """Return the verdicts after some rows come or go together; or go, as others come.

        Of those that go only the ones in the window matter: before one beyond it is seen, enough
        nearer ones stay.
        """
        schema = self._validity.table.schema
        if self._kind == "removed":
            rows = tuple(_present(self._validity, self._cells, rows))
        cells = changed_cells(self._cells, schema, self._kind, rows)
        return self._verdicts(changed_cells(cells, schema, "added", come), indices)

    def one_by_one(self, rows: Sequence[Row], indices: Indices) -> Iterator[NDArray[np.bool_]]:
        """Yield the verdicts after each of some rows of one cell comes or goes by itself."""
        quick = self._quick_verdicts([row.value for row in rows], indices)
        for number, row in enumerate(rows):
            sure = quick is not None and quick[1][number].all()
            yield quick[0][number] if quick and sure else self.at_once((row,), indices)

    def _quick_verdicts(
        self, metrics: list[float], indices: Indices
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]] | None:
        """Return the verdicts after changes in one cell, and which are sure, if that is quick.

        Without it each change needs a table of its own.
        """
        validity = self._validity
        detector, value = validity.detector, validity.record.value
        if not detector.wants_moments:
            return None
        cells, words = validity.table.cells.in_memory(), validity.record.space.words_of(indices)
        moments = cells.several_totals(words, validity.cell_moments)
        sign = 1 if self._kind == "added" else -1
        return detector.changed_verdicts(cells, value, words, moments, np.array(metrics), sign)

    def _verdicts(self, cells: CellTable, indices: Indices) -> NDArray[np.bool_]:
        """Ask the detector about contexts of a changed table."""
        detector, value = self._validity.detector, self._validity.record.value
        words = self._validity.record.space.words_of(indices)
        with others_code(f"the detector {detector.name!r}"):
            moments = None
            if detector.wants_moments:
                moments = cells.several_totals(words, detector.cell_moments(cells, value))
            return detector.batch(cells, value, words, moments)


def _present(validity: Validity, cells: CellTable, rows: Rows) -> Iterator[Row]:
    """Yield those of some rows that part of the table has, each as often as it does."""
    for row, times in Counter(rows).items():
        pairs = cells.alike(validity.table.words([row.mask(validity.table.schema)])[0], row.value)
        yield from [row] * min(times, int(cells.counts[pairs].sum()))


def visible_rows(validity: Validity) -> list[Row]:
    """List the rows in the window, each once, by rising metric.

    Where a rule looks at the nearest rows only, a row with that many nearer ones in its own cell
    is seen in no context.
    """
    cells = in_window(validity)
    places = cell_places(validity.table)
    order = np.lexsort((cells.pair_cells, cells.values))
    pairs = zip(cells.pair_cells[order].tolist(), cells.values[order].tolist(), strict=True)
    return list(dict.fromkeys(Row(places[cell], value) for cell, value in pairs))


def in_window(validity: Validity, spare: int = 0) -> CellTable:
    """Return the part of the table that the detector can see, and some rows more on each side.

    All of it, where the detector has to count more rows than it looks at.
    """
    whole, rows = validity.table.cells.in_memory(), validity.detector.window_rows
    if rows is None or validity.detector.min_population > rows:
        return whole
    near, space = whole.nearest(validity.record.value, rows + spare), validity.record.space
    size, pairs = listed_size(space), len(near.values)
    if size > pairs or size * pairs > _MOST_LOOKS:  # it would take longer than it saves
        return near
    words = space.words_of(_members(space))
    return near.nearest_in(words, validity.record.value, rows + spare)


def _members(space: Space) -> Indices:
    """Return the indices of all contexts of a space."""
    if space.members is not None:
        return space.members
    return np.flatnonzero(space.every_admitted()).astype(np.uint64)


def check_verdicts(validity: Validity, kind: str, required: list[int], limit: int | None) -> None:
    """Refuse more verdicts than the limit; how many rows there are is not said, being private."""
    if limit is None:
        limit = VERDICT_LIMIT if validity.detector.has_kernel else SLOW_VERDICT_LIMIT
    space = validity.record.space
    size = listed_size(space)
    times = Counter(required).items()
    if size + sum(n * min(size, space.count_covering(needed)) for needed, n in times) > limit:
        python, cli = patience(size, "raise limit="), patience(size, "raise --limit")
        if size <= limit:  # otherwise it does not help to try fewer rows
            removed = kind == "removed"
            python += (
                f", or give {'rows= to look at some rows only' if removed else 'fewer values'}"
            )
            cli += "" if removed else ", or --insert fewer metrics, or none"
        raise TooLarge(
            f"the record has {counted(size)} possible contexts, and judging them again for every "
            f"row {kind} takes more than the limit of {limit:,} verdicts",
            python=python,
            cli=cli,
            service="the page does not take so long; pcor audit on the command line has --limit",
        )
