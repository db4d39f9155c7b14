"""Is the record an outlier in these contexts? The one question a search may ask for free.

Private: the answers, which together are COE. Batches of contexts in, booleans out; verdicts are
remembered by context, so that no search asks the detector twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pcor.context import Context, pack
from pcor.detectors import Detector, get_detector
from pcor.errors import ContextError, TooLarge
from pcor.table import BATCH, Record, Table, covers_record

# The largest space that is enumerated when nobody says otherwise; public.
ENUMERATION_LIMIT = 1 << 16

Progress = Callable[[int, int], None]


class Validity:
    """The verdicts on one record under one detector."""

    def __init__(self, table: Table, record: Record, detector: Detector) -> None:
        self.table = table
        self.record = record
        self.detector = detector
        self._known: dict[int, bool] = {}

    def __call__(self, masks: Sequence[int]) -> NDArray[np.bool_]:
        """Return, for each context, whether it is valid."""
        for mask in masks:
            if mask not in self._known:
                self._known[mask] = self._verdict(mask)
        return np.array([self._known[mask] for mask in masks], dtype=bool)

    def _verdict(self, mask: int) -> bool:
        if mask not in self.record.space:
            return False
        return self.detector.is_outlier(*self.table.distribution(mask), self.record.value)


@dataclass(frozen=True, repr=False)
class MatchingContexts:
    """All valid contexts of a record (COE). Private: for the owner only, never to be released.

    Attributes:
        table: where they were found.
        masks: bits as 64-bit words, shape (count, words); bit j is the j-th value in schema order.
        populations: how many rows each covers.
    """

    table: Table
    masks: NDArray[np.uint64]
    populations: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.masks)

    def __repr__(self) -> str:
        return f"<MatchingContexts of {self.table.schema.name!r}: PRIVATE, for the owner only>"

    @property
    def contexts(self) -> list[Context]:
        """The contexts, in the order of ``masks``."""
        return [
            Context.from_mask(self.table.schema, int.from_bytes(row.tobytes(), "little"))
            for row in self.masks.astype("<u8")
        ]


def matching_contexts(
    table: Table,
    record: int | str,
    detector: str | Detector = "lof",
    *,
    limit: int = ENUMERATION_LIMIT,
    progress: Progress | None = None,
) -> MatchingContexts:
    """Return every context in which the record is an outlier: COE. For the owner only.

    Args:
        table: the rows.
        record: the record's id, or its 0-based row number where the schema has no id.
        detector: a detector or its name.
        limit: the largest space to enumerate.
        progress: called with (contexts done, contexts in all) now and then.
    """
    found = table.record(record)
    size = found.space.size
    if size > limit:
        raise TooLarge(
            f"the record has {size:,} possible contexts, more than the limit of {limit:,}; "
            "raise limit= (--limit) if you have the time"
        )
    valid = Validity(table, found, get_detector(detector))
    kept: list[int] = []
    for start in range(0, size, BATCH):
        masks = [found.space.mask(i) for i in range(start, min(size, start + BATCH))]
        kept += [mask for mask, yes in zip(masks, valid(masks), strict=True) if yes]
        if progress is not None:
            progress(min(size, start + BATCH), size)
    return MatchingContexts(table, pack(kept, table.schema.width), table.populations(kept))


def is_outlier(
    table: Table, record: int | str, context: Context, detector: str | Detector = "lof"
) -> bool:
    """Tell whether the record is an outlier in the context. For the owner only."""
    _check_schema(table, context)
    found = table.record(record)
    if not covers_record(context, found):
        return False
    return bool(Validity(table, found, get_detector(detector))([context.mask])[0])


def outliers(
    table: Table, context: Context | None = None, detector: str | Detector = "lof"
) -> list[int | str]:
    """Return the records that are outliers in one context. For the owner only.

    Args:
        table: the rows.
        context: where to look; by default the whole table.
        detector: a detector or its name.
    """
    context = Context.full(table.schema) if context is None else context
    _check_schema(table, context)
    mask = context.mask
    rule = get_detector(detector)
    values, counts = table.distribution(mask)
    if len(values) == 0 or int(counts.sum()) < rule.min_population:
        return []
    return table.keys_in(mask, values[rule.verdicts(values, counts)])


def _check_schema(table: Table, context: Context) -> None:
    if context.schema != table.schema:
        raise ContextError("the context belongs to another schema than the table's")
