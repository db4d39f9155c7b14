"""Every context of a schema's family, whoever is asked about, in one numbered list.

Public: everything here; nothing reads a table. A context is in the list if it is one of the family
for some record. It is then one for every record that it covers (``family.every_set``), so the list
serves all of them.

Contexts are numbered from 0, the sets of the first attribute's values changing fastest, and those
of an attribute by rising bits. Where limits hold on whole contexts (``max_clauses``,
``max_named``), members alone are numbered, and their sets are kept in memory.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from pcor.errors import TooLarge, counted
from pcor.public.context import Words, unpack
from pcor.public.family import combined, every_set, every_size, named_items, within
from pcor.public.schema import Attribute, Schema
from pcor.support.arrays import NDArray, np

# More contexts than this no longer fit the kernels' whole numbers.
MOST_CONTEXTS = 1 << 48

# Where limits hold, the words for each set of an attribute are looked at: so many at most.
MOST_WORDED = 1 << 20

# Contexts by the place of each attribute's set among those of its family.
SetNumbers: TypeAlias = "NDArray[np.int64]"


class ListedContexts(NamedTuple):
    """Consecutive contexts, as kernels walk through them.

    Attributes:
        bits: of each context, one each: shape (contexts, values).
        changed: the slowest attribute in which each differs from the one before it; for the first
            the last attribute.
    """

    bits: NDArray[np.uint8]
    changed: NDArray[np.int64]

    def only(self, number: int) -> ListedContexts:
        """Return one of them alone."""
        return ListedContexts(self.bits[number : number + 1], self.changed[:1])


def count_contexts(schema: Schema) -> int:
    """Return how many contexts of the family there are for one record or another."""
    sizes = [every_size(attribute, schema.max_named) for attribute in schema.attributes]
    return combined(sizes, schema.max_clauses, schema.max_named)


def check_listable(schema: Schema) -> None:
    """Refuse to list more contexts than can be numbered.

    Raises:
        TooLarge: there are more, or limits hold and an attribute has too many sets.
    """
    size = count_contexts(schema)
    if size > MOST_CONTEXTS:
        raise TooLarge(
            f"the schema has {counted(size)} contexts; all of them can be listed up to "
            f"{MOST_CONTEXTS:,}"
        )
    for attribute in schema.attributes if schema.limited else ():
        sets = sum(every_size(attribute, None).values())
        if sets > MOST_WORDED:
            raise TooLarge(
                f"attribute {attribute.name!r} has {counted(sets)} sets of values; where "
                f"max_clauses or max_named is declared, every context can be listed up to "
                f'{MOST_WORDED:,}: declare contexts = "range" or "one" for it, or leave out the '
                "limits"
            )


class ContextList:
    """The list; ``part`` gives some of it.

    Attributes:
        schema: what is declared.
        size: how many contexts there are; at most ``MOST_CONTEXTS``.

    Raises:
        TooLarge: there are too many to be listed.
    """

    def __init__(self, schema: Schema) -> None:
        check_listable(schema)
        self.schema, self.size = schema, count_contexts(schema)
        self._sets = [every_set(attribute) for attribute in schema.attributes]
        self._members = self._within_limits() if schema.limited else None

    def part(self, first: int, count: int) -> ListedContexts:
        """Return ``count`` contexts from number ``first`` on."""
        numbers = self._set_numbers(first, count)
        changed = np.full(len(numbers), numbers.shape[1] - 1)
        for place in range(numbers.shape[1]):
            changed[1:][numbers[1:, place] != numbers[:-1, place]] = place
        return ListedContexts(self._bits(numbers), changed)

    def words(self, first: int, count: int) -> Words:
        """Return their bits as 64-bit words: shape (count, words)."""
        bits = self._bits(self._set_numbers(first, count))
        room = np.zeros((len(bits), -(-self.schema.width // 64) * 64), dtype=np.uint8)
        room[:, : self.schema.width] = bits
        return np.packbits(room, axis=1, bitorder="little").view("<u8").astype(np.uint64)

    def _set_numbers(self, first: int, count: int) -> SetNumbers:
        if self._members is not None:
            return self._members[first : first + count].astype(np.int64)
        rest = np.arange(first, first + count)
        columns = []
        for sets in self._sets:
            rest, column = np.divmod(rest, len(sets))
            columns.append(column)
        return np.column_stack(columns)

    def _bits(self, numbers: SetNumbers) -> NDArray[np.uint8]:
        columns = zip(self.schema.attributes, numbers.T, strict=True)
        return np.hstack([self._chosen(place, *column) for place, column in enumerate(columns)])

    def _chosen(
        self, place: int, attribute: Attribute, column: NDArray[np.int64]
    ) -> NDArray[np.uint8]:
        """Return which values the sets of an attribute have."""
        sets, count = self._sets[place], len(attribute.values)
        if isinstance(sets, range):  # all there are: a set's number says which
            return ((column[:, np.newaxis] + sets.start) >> np.arange(count) & 1).astype(np.uint8)
        return unpack([sets[number] for number in column.tolist()], count).view(np.uint8)

    def _within_limits(self) -> NDArray[np.int32]:
        """Return the members within the limits by their sets, as far as the limits allow at once.

        From the slowest attribute on: what is found so far stays in order.
        """
        schema = self.schema
        found = np.zeros((1, 0), dtype=np.int32)
        used = np.zeros((1, 2), dtype=np.int64)  # clauses, items
        for place in reversed(range(len(schema.attributes))):
            attribute, sets = schema.attributes[place], self._sets[place]
            items = named_items(attribute, unpack(sets, len(attribute.values)))
            sizes = np.column_stack([items > 0, items])
            sums, which = np.unique(used, axis=0, return_inverse=True)
            fitting = [
                [
                    n
                    for n, (clauses, named) in enumerate((sizes + one).tolist())
                    if within(clauses, schema.max_clauses) and within(named, schema.max_named)
                ]
                for one in sums
            ]
            chosen = np.concatenate([fitting[n] for n in which.ravel()]).astype(np.int32)
            before = np.repeat(np.arange(len(found)), [len(fitting[n]) for n in which.ravel()])
            found = np.column_stack([chosen, found[before]])
            used = used[before] + sizes[chosen]
        return found
