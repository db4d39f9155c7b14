"""COE: every context in which a record is an outlier. For the owner only.

Private: everything here. The contexts of a record are judged block by block (``blocks``). Memory is
that of one block and of what is found; ``matching_parts`` hands out what is found block by block,
so that nobody has to hold all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pcor.detectors import Detector, get_detector
from pcor.errors import TooLarge, counted, others_code
from pcor.public.context import Context
from pcor.public.schema import Value
from pcor.rows.table import Table, check_table
from pcor.search.blocks import ENUMERATION_LIMIT, Block, listed_size, of_blocks
from pcor.search.validity import Validity

# The advice to raise a limit stops here: at that pace it is eight hours.
PATIENCE = 1 << 34

Progress = Callable[[int, int], None]
AnyContext = Context | str | Mapping[str, Iterable[Value]]


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

    def to_arrow(self) -> pa.Table:
        """Return them as a table: the sentence, the rows covered, the values of each attribute.

        An attribute that is not restricted has none there.
        """
        contexts, attributes = self.contexts, self.table.schema.attributes
        sets = {
            attribute.name: pa.array(
                [
                    None if len(values) == len(attribute.values) else [str(v) for v in values]
                    for values in (context.values[attribute.name] for context in contexts)
                ],
                pa.list_(pa.string()),
            )
            for attribute in attributes
        }
        # Two columns come before those of the attributes, which may be called anything.
        columns = [pa.array(map(str, contexts), pa.string()), pa.array(self.populations)]
        return pa.Table.from_arrays([*columns, *sets.values()], ["context", "population", *sets])

    def to_pandas(self) -> Any:
        """Return them as a frame of pandas, with the columns of ``to_arrow``."""
        return self.to_arrow().to_pandas()

    def largest(self, count: int) -> MatchingContexts:
        """Return the ``count`` with the most rows, those first; equal ones by their bits as text.

        Nothing but arrays is built for the others, and all may have the same population.
        """
        kept = np.arange(len(self))
        if count < len(self):
            # Those that tie with the last one stay in until their bits have been compared.
            edge = np.partition(self.populations, -count)[-count] if count else np.inf
            kept = np.flatnonzero(self.populations >= edge)
        # As text the first value comes first: the lowest bit has to weigh most.
        bits = np.unpackbits(
            self.masks[kept].astype("<u8").view(np.uint8), axis=1, bitorder="little"
        )
        as_text = np.packbits(bits, axis=1).view(">u8")
        order = np.lexsort((*as_text.T[::-1].astype(np.uint64), -self.populations[kept]))
        first = kept[order[:count]]
        return MatchingContexts(self.table, self.masks[first], self.populations[first])


def matching_contexts(
    table: Table,
    record: int | str,
    detector: str | Detector | None = None,
    *,
    limit: int = ENUMERATION_LIMIT,
    progress: Progress | None = None,
) -> MatchingContexts:
    """Return every context in which the record is an outlier: COE. For the owner only.

    Args:
        table: the rows.
        record: the record's id, or its 0-based row number where the schema has no id.
        detector: a detector or its name; by default that of the schema, or lof.
        limit: the largest space to enumerate.
        progress: called with (contexts done, contexts in all) now and then.

    Raises:
        RecordError: the record does not exist, or its id is not unique.
        TooLarge: the space is larger than the limit.
    """
    check_table(table)
    return joined(matching_parts(table, record, detector, limit=limit, progress=progress))


def matching_parts(
    table: Table,
    record: int | str,
    detector: str | Detector | None = None,
    *,
    limit: int = ENUMERATION_LIMIT,
    progress: Progress | None = None,
) -> Iterator[MatchingContexts]:
    """Return COE as ``matching_contexts`` does, but part by part as it is found.

    At least one part comes, and a part may be empty. What cannot be done is refused at once and
    not when the first part is asked for.
    """
    found = table.record(record)
    check_size(listed_size(found.space), limit)
    validity = Validity(table, found, get_detector(detector, table.schema))
    return _parts(validity, progress)


def _parts(validity: Validity, progress: Progress | None) -> Iterator[MatchingContexts]:
    space = validity.record.space
    done, every = 0, listed_size(space)

    def found(block: Block) -> tuple[int, MatchingContexts]:
        masks = space.words_of(block.indices[block.valid])
        populations = block.populations[block.valid]
        return len(block.valid), MatchingContexts(validity.table, masks, populations)

    for judged, part in of_blocks(validity, found):
        done += judged
        if progress is not None:
            progress(done, every)
        yield part


def joined(parts: Iterable[MatchingContexts]) -> MatchingContexts:
    """Put parts of one COE together; there must be at least one."""
    listed = list(parts)
    return MatchingContexts(
        listed[0].table,
        np.concatenate([part.masks for part in listed]),
        np.concatenate([part.populations for part in listed]),
    )


def check_size(size: int, limit: int) -> None:
    """Refuse to enumerate a space larger than a public limit."""
    if size > limit:
        what = f"the record has {counted(size)} possible contexts, more than the limit of {limit:,}"
        raise TooLarge(
            what,
            python=patience(size, "raise limit="),
            cli=patience(size, "raise --limit"),
            service="the page does not look at so many; pcor audit on the command line may",
        )


def patience(size: int, advice: str) -> str:
    """Return the advice to raise a limit, where that many contexts can be waited for."""
    if size <= PATIENCE:
        return f"{advice} if you have the time: up to half a minute for every 16 million"
    return "no limit helps with so many: declare fewer values, with wider bins and an 'other'"


def is_outlier(
    table: Table, record: int | str, context: AnyContext, detector: str | Detector | None = None
) -> bool:
    """Tell whether the record is an outlier in the context. For the owner only.

    The context may be a ``pcor.Context``, a text such as "job is CEO", or a mapping; any context,
    also one outside the schema's family. Where it does not cover the record, it is no outlier.

    Raises:
        RecordError: the record does not exist, or its id is not unique.
        ContextError: the context cannot be read, or is of another schema.
    """
    check_table(table)
    found, mask = table.record(record), Context.read(table.schema, context).mask
    if found.space.fixed & ~mask:
        return False
    validity = Validity(table, found, get_detector(detector, table.schema))
    return bool(validity.judge(validity.cells, table.words([mask]))[0])


def outliers(
    table: Table, context: AnyContext | None = None, detector: str | Detector | None = None
) -> list[int | str]:
    """Return the records that are outliers in one context. For the owner only.

    Args:
        table: the rows.
        context: where to look; by default the whole table.
        detector: a detector or its name; by default that of the schema, or lof.

    Raises:
        ContextError: the context cannot be read, or is of another schema.
    """
    check_table(table)
    return table.keys_in(*_flagged(table, context, detector))


def outlier_rows(
    table: Table, context: AnyContext | None = None, detector: str | Detector | None = None
) -> list[tuple[int | str, float]]:
    """Return the outliers of one context, each with its metric, the largest first. Owner only."""
    check_table(table)
    found = table.rows_in(*_flagged(table, context, detector))
    return sorted(found, key=lambda row: row[1], reverse=True)


def _flagged(
    table: Table, context: AnyContext | None, detector: str | Detector | None
) -> tuple[int, NDArray[np.float64]]:
    """Return a context's mask and the metrics that are outliers in it."""
    full = Context.full(table.schema)
    mask = (full if context is None else Context.read(table.schema, context)).mask
    rule = get_detector(detector, table.schema)
    values, counts = table.distribution(mask)
    if len(values) == 0 or int(counts.sum()) < rule.min_population:
        return mask, values[:0]
    with others_code(f"the detector {rule.name!r}"):
        flagged = rule.verdicts(values, counts)
    return mask, values[flagged]
