"""Every context of a schema, each with its population and all of its outliers. For the owner only.

Private: everything here. Unlike COE this has no queried record: all contexts of the schema's family
come, for whichever record they are members (``public.context_list`` numbers them), and in each the
detector judges everybody, by its kernel for that (``Detector.all_records``) or one context after
the other. The verdicts are those of ``detector.verdicts``; tests hold every kernel to that on every
context of random tables.
"""

from __future__ import annotations

import hashlib
import json
from functools import partial

import numpy as np
import pyarrow as pa

from pcor.detectors import Detector
from pcor.detectors.all_records import ContextOutliers, SortedRows, by_rule
from pcor.public.context_list import ContextList
from pcor.rows.table import Table
from pcor.support.threads import one_by_one

# Contexts that a core judges in one go: many enough to be worth beginning, few enough that no core
# is left with much to do when the others are done.
SMALLEST_SLICE, LARGEST_SLICE = 64, 1024


class EveryContext:
    """All contexts of a table under a detector; ``judge`` asks for some of them.

    Attributes:
        contexts: all of them, numbered.
        compiled: whether a kernel judges them. Otherwise the detector is asked for each.
        rows: how many rows the table has.
        keys: the records' ids (or 0-based row numbers) by rising metric: whole numbers, or text
            where one of them is text.

    Raises:
        TooLarge: there are too many contexts to be listed.
    """

    def __init__(self, table: Table, detector: Detector) -> None:
        self.contexts = ContextList(table.schema)
        self.detector = detector
        rows = table.rows
        order = np.argsort(rows.metric, kind="stable")
        self.rows = len(order)
        self.keys = _keys(table).take(pa.array(order))
        positions = rows.cells[rows.cell[order]] + np.array(table.schema.offsets)
        self._sorted = SortedRows(
            # One byte where that is enough: more of them fit the processor's cache.
            codes=np.ascontiguousarray(positions.T.astype(np.min_scalar_type(table.schema.width))),
            values=rows.metric[order],
            centre=table.cells.centre,
        )
        kernel = detector.all_records(self._sorted)
        self.compiled = kernel is not None
        self._judge = kernel or partial(by_rule, detector, self._sorted)

    def __repr__(self) -> str:
        return f"<EveryContext of {self.contexts.schema.name!r}: PRIVATE, for the owner only>"

    def judge(self, first: int, count: int) -> ContextOutliers:
        """Return ``count`` contexts from number ``first`` on, judged on all cores by a kernel."""
        if not self.compiled:  # somebody else's code may not like threads
            return self._judge(self.contexts.part(first, count))
        size = max(SMALLEST_SLICE, min(LARGEST_SLICE, count // 8))
        starts = range(first, first + count, size)
        done: dict[int, ContextOutliers] = {}

        def work(place: int) -> None:
            start = starts[place]
            some = self.contexts.part(start, min(size, first + count - start))
            done[place] = self._judge(some)

        one_by_one(len(starts), work)
        return ContextOutliers.joined([done[place] for place in range(len(starts))])

    @property
    def size(self) -> int:
        """How many contexts there are."""
        return self.contexts.size

    def fingerprint(self) -> str:
        """Return a hash of all rows with their keys."""
        keys = json.dumps(self.keys.to_pylist()).encode()
        digest = hashlib.sha256()
        for column in (self._sorted.values.tobytes(), self._sorted.codes.tobytes(), keys):
            digest.update(hashlib.sha256(column).digest())
        return digest.hexdigest()


def _keys(table: Table) -> pa.Array:
    given = table.rows.keys
    if given is None or isinstance(given, np.ndarray):
        return pa.array(np.arange(len(table.rows.metric)) if given is None else given)
    keys = [table.key_of(row) for row in range(len(given))]
    whole = all(isinstance(key, int) and -(1 << 63) <= key < 1 << 63 for key in keys)
    return pa.array(keys if whole else [str(key) for key in keys])
