"""The space of a record: the contexts of the schema's family that contain the record's values.

Public given the record; nothing reads a table. No other context can be valid for the record, and
restricting any of the paper's searches to this space leaves its distribution over the valid
contexts of the family unchanged.

A family is a product of chains (``family``), so a context of the space is how far up each chain
goes, and its index is these levels as the digits of one number, the first chain's the lowest. Where
every set of values is allowed all chains have one step of one value: the index then counts in
binary over the free values, and there are 2^(t-m) contexts. Limits on whole contexts
(``max_clauses``, ``max_named``) cut members out of the product, which keeps its numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, chain
from math import prod
from typing import NamedTuple, TypeAlias

from pcor.public.context import Words, pack, unpack
from pcor.public.family import chains, named_items, within
from pcor.public.schema import Schema
from pcor.support.arrays import NDArray, np

# Numbers of contexts, as arrays have them.
Indices: TypeAlias = "NDArray[np.uint64]"


class Chain(NamedTuple):
    """A way up from the record's own value of an attribute: the bits that each step adds."""

    attribute: int
    steps: tuple[int, ...]

    @property
    def radix(self) -> int:
        """How many levels there are."""
        return len(self.steps) + 1

    @property
    def sets(self) -> tuple[int, ...]:
        """What the levels have added, from none of the steps to all of them."""
        return tuple(accumulate(self.steps, int.__or__, initial=0))


@dataclass(frozen=True)
class Space:
    """The contexts of the family that contain a record.

    Attributes:
        schema: what is declared.
        fixed: the record's own values, as bits.
        order: of the chains, where it is not the schema's.
    """

    schema: Schema
    fixed: int
    order: tuple[int, ...] | None = None

    @cached_property
    def chains(self) -> tuple[Chain, ...]:
        """The chains whose levels are the digits of an index."""
        found = []
        for place, (attribute, offset, own) in enumerate(
            zip(
                self.schema.attributes,
                self.schema.offsets,
                self.schema.attribute_masks,
                strict=True,
            )
        ):
            code = (self.fixed & own).bit_length() - 1 - offset
            for steps in chains(attribute, code):
                found.append(Chain(place, tuple(step << offset for step in steps)))
        return tuple(found) if self.order is None else tuple(found[place] for place in self.order)

    @cached_property
    def radices(self) -> tuple[int, ...]:
        """How many levels each chain has."""
        return tuple(one.radix for one in self.chains)

    @cached_property
    def strides(self) -> tuple[int, ...]:
        """What one level of each chain adds to an index."""
        return tuple(accumulate(self.radices, int.__mul__, initial=1))[:-1]

    @cached_property
    def steps(self) -> tuple[int, ...]:
        """The steps of all chains: what may come or go, as bits."""
        return tuple(chain.from_iterable(one.steps for one in self.chains))

    @property
    def size(self) -> int:
        """How many contexts are numbered: all of the family, before limits on whole contexts."""
        return prod(self.radices)

    @cached_property
    def binary(self) -> bool:
        """Whether an index counts in binary over single values, as in the paper."""
        return all(len(one.steps) == 1 for one in self.chains) and all(
            step.bit_count() == 1 for step in self.steps
        )

    # -- one context ------------------------------------------------------------------------------

    def __contains__(self, mask: int) -> bool:
        if self.fixed & mask != self.fixed:
            return False
        if not self.binary and self._closed(mask) != mask:
            return False
        return not self.schema.limited or bool(self.admitted(pack([mask], self.schema.width))[0])

    def _closed(self, mask: int) -> int:
        """Return the smallest context of the product that has these values."""
        closed = self.fixed
        for one in self.chains:
            level = max((n for n, step in enumerate(one.steps, 1) if step & mask), default=0)
            closed |= one.sets[level]
        return closed

    def mask(self, index: int) -> int:
        """Return the ``index``-th context."""
        mask = self.fixed
        if self.binary:
            for place, position, length in self._runs:
                mask |= (index >> place & (1 << length) - 1) << position
            return mask
        for sets in self._sets:
            index, level = divmod(index, len(sets))
            mask |= sets[level]
        return mask

    @cached_property
    def _sets(self) -> tuple[tuple[int, ...], ...]:
        return tuple(one.sets for one in self.chains)

    @cached_property
    def _runs(self) -> tuple[tuple[int, int, int], ...]:
        """Free values as runs: the place of the first in an index, its position, how many.

        Between two values of the record all positions are free, so there are few.
        """
        runs: list[tuple[int, int, int]] = []
        for place, step in enumerate(self.steps):
            position = step.bit_length() - 1
            if runs and position == runs[-1][1] + runs[-1][2]:
                runs[-1] = (*runs[-1][:2], runs[-1][2] + 1)
            else:
                runs.append((place, position, 1))
        return tuple(runs)

    def neighbours(self, mask: int) -> list[int]:
        """Return the contexts of the space that are one step away, down or up a chain."""
        if self.binary:
            found = [mask ^ step for step in self.steps]
        else:
            found = [other for one in self.chains for other in _one_step(mask, one.steps)]
        if self.schema.limited and found:
            admitted = self.admitted(pack(found, self.schema.width))
            return [other for other, yes in zip(found, admitted, strict=True) if yes]
        return found

    # -- many contexts ----------------------------------------------------------------------------

    def masks(self) -> Iterator[int]:
        """Yield all contexts in the order of their index."""
        found = (self.mask(index) for index in range(self.size))
        return (mask for mask in found if mask in self) if self.schema.limited else found

    def words(self, first: int, last: int) -> Words:
        """Return the contexts of index ``first`` to ``last - 1`` as 64-bit words."""
        return self.words_of(np.arange(first, last, dtype=np.uint64))

    def words_of(self, indices: Indices) -> Words:
        """Return the contexts of these indices as 64-bit words."""
        words = np.repeat(pack([self.fixed], self.schema.width), len(indices), axis=0)
        if self.binary:
            for place, position, length in self._runs:
                some = indices >> np.uint64(place) & np.uint64((1 << length) - 1)
                word, bit = divmod(position, 64)
                words[:, word] |= some << np.uint64(bit)
                if bit + length > 64:  # the run goes on in the next word
                    words[:, word + 1] |= some >> np.uint64(64 - bit)
            return words
        rest = indices
        for sets in self._set_words:
            rest, level = np.divmod(rest, np.uint64(len(sets)))
            words |= sets[level]
        return words

    @cached_property
    def level_bits(self) -> tuple[NDArray[np.uint64], ...]:
        """For each chain its levels as bits: level l has the first l of its ``steps``."""
        fields, first = [], 0
        for one in self.chains:
            levels = [((1 << level) - 1) << first for level in range(one.radix)]
            fields.append(np.array(levels, dtype=np.uint64))
            first += len(one.steps)
        return tuple(fields)

    def step_bits(self, indices: Indices) -> Indices:
        """Return contexts as bits, one for each of up to 62 ``steps``, given their indices."""
        bits = np.zeros(len(indices), dtype=np.uint64)
        for levels in self.level_bits:
            indices, level = np.divmod(indices, np.uint64(len(levels)))
            bits |= levels[level]
        return bits

    @cached_property
    def _set_words(self) -> tuple[Words, ...]:
        return tuple(pack(sets, self.schema.width) for sets in self._sets)

    def indices_of(self, words: Words) -> Indices:
        """Return the index of the smallest numbered context that has the values of each row.

        Of a context of the space it is its own; of a row's values, that of the first to cover it.
        """
        indices = np.zeros(len(words), dtype=np.uint64)
        if self.binary:
            for place, step in enumerate(self.steps):
                word, bit = divmod(step.bit_length() - 1, 64)
                indices |= (words[:, word] >> np.uint64(bit) & np.uint64(1)) << np.uint64(place)
            return indices
        for stride, one in zip(self.strides, self.chains, strict=True):
            level = np.zeros(len(words), dtype=np.uint64)
            for number, step in enumerate(one.steps, 1):
                level[self._touched(words, step)] = number
            indices += level * np.uint64(stride)
        return indices

    @cached_property
    def index_of_value(self) -> Indices:
        """What each value adds to the index of the smallest numbered context that covers a cell.

        By the position of its bit. It does so whatever the cell's other values are.
        """
        adds = np.zeros(self.schema.width, dtype=np.uint64)
        for stride, one in zip(self.strides, self.chains, strict=True):
            for number, step in enumerate(one.steps, 1):
                adds[unpack([step], self.schema.width)[0]] = number * stride
        return adds

    def _touched(self, words: Words, step: int) -> NDArray[np.bool_]:
        """Return which rows have a value of a step."""
        bits = pack([step], self.schema.width)[0]
        touched = np.zeros(len(words), dtype=bool)
        for word in np.flatnonzero(bits):
            touched |= (words[:, word] & bits[word]) != 0
        return touched

    def covering(self, indices: Indices, required: int) -> NDArray[np.bool_]:
        """Return which contexts are at least at the levels of another index."""
        if self.binary:
            binary: NDArray[np.bool_] = indices & np.uint64(required) == np.uint64(required)
            return binary
        covering = np.ones(len(indices), dtype=bool)
        for stride, radix in zip(self.strides, self.radices, strict=True):
            level = required // stride % radix
            if level:
                covering &= indices // np.uint64(stride) % np.uint64(radix) >= np.uint64(level)
        return covering

    def count_covering(self, required: int) -> int:
        """Return how many numbered contexts are at least at the levels of an index."""
        levels = zip(self.strides, self.radices, strict=True)
        return prod(radix - required // stride % radix for stride, radix in levels)

    # -- contexts as rows of their steps ----------------------------------------------------------

    def rows_of(self, words: Words) -> NDArray[np.bool_]:
        """Return which steps each context has: one row each, one column for each step."""
        rows = np.zeros((len(words), len(self.steps)), dtype=bool)
        for column, step in enumerate(self.steps):
            rows[:, column] = self._touched(words, step)
        return rows

    def words_of_rows(self, rows: NDArray[np.bool_]) -> Words:
        """Return contexts given by their steps, one row each, as 64-bit words."""
        fixed = pack([self.fixed], self.schema.width)
        bits = np.zeros((len(rows), fixed.shape[1] * 64), dtype=bool)
        bits[:, self._positions] = rows[:, self._step_of_position]
        packed = np.packbits(bits, axis=1, bitorder="little").view("<u8")
        return packed.astype(np.uint64) | fixed

    @cached_property
    def _positions(self) -> NDArray[np.int64]:
        """The values that may come or go, as positions."""
        return np.flatnonzero(~unpack([self.fixed], self.schema.width)[0])

    @cached_property
    def _step_of_position(self) -> NDArray[np.int64]:
        """The step that brings each of them."""
        step = np.zeros(self.schema.width, dtype=np.int64)
        for number, bits in enumerate(unpack(self.steps, self.schema.width)):
            step[bits] = number
        return step[self._positions]

    # -- limits on whole contexts -----------------------------------------------------------------

    def admitted(self, words: Words) -> NDArray[np.bool_]:
        """Return which contexts of the product the limits of the schema leave in the family."""
        return self._within(*clauses_and_items(self.schema, words))

    def _within(self, clauses: NDArray[np.int64], named: NDArray[np.int64]) -> NDArray[np.bool_]:
        yes = np.ones(len(clauses), dtype=bool)
        for numbers, limit in ((clauses, self.schema.max_clauses), (named, self.schema.max_named)):
            if limit is not None:
                yes &= numbers <= limit
        return yes

    @cached_property
    def members(self) -> Indices | None:
        """The indices of all contexts that the limits leave, rising.

        Attribute by attribute, as far as the limits allow: it takes as long as there are members.
        ``None`` where they are not listed (``Schema.lists_members``).
        """
        schema = self.schema
        if not schema.lists_members:
            return None
        # By clauses and items: what is within the limits so far.
        found = {(0, 0): np.zeros(1, dtype=np.int64)}
        for place in range(len(schema.attributes)):
            longer: dict[tuple[int, int], list[NDArray[np.int64]]] = {}
            for (clauses, named), indices in found.items():
                for (more, items), added in self._sets_of(place).items():
                    size = (clauses + more, named + items)
                    if within(size[0], schema.max_clauses) and within(size[1], schema.max_named):
                        longer.setdefault(size, []).append(np.add.outer(indices, added).ravel())
            found = {size: np.concatenate(parts) for size, parts in longer.items()}
        return np.sort(np.concatenate(list(found.values()))).astype(np.uint64)

    def _digits(self, place: int) -> list[int]:
        """Return which digits of an index are the levels of an attribute's chains."""
        return [d for d, one in enumerate(self.chains) if one.attribute == place]

    def _sets_of(self, place: int) -> dict[tuple[int, int], NDArray[np.int64]]:
        """Return what the sets of an attribute add to an index, by their clauses and items."""
        digits = self._digits(place)
        items = self._items_along(place, digits).ravel()
        added = np.zeros(len(items), dtype=np.int64)
        rest = np.arange(len(items))
        for d in digits:
            rest, level = np.divmod(rest, self.radices[d])
            added += level * self.strides[d]
        return {(int(n > 0), int(n)): added[items == n] for n in np.unique(items)}

    def every_admitted(self) -> NDArray[np.bool_]:
        """Return for each numbered context whether the limits leave it in the family."""
        return self._within(*self.every_clauses_and_items())

    def every_clauses_and_items(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the clauses and the named items of every numbered context, by index.

        Attribute by attribute, each along its own chains' digits: a few additions for each context.
        """
        shape = self.radices[::-1]  # the first chain's digit changes fastest: the last axis
        clauses = np.zeros(shape, dtype=np.int64)
        named = np.zeros(shape, dtype=np.int64)
        for place in range(len(self.schema.attributes)):
            digits = self._digits(place)
            if not digits:
                continue
            items = self._items_along(place, digits)
            named += items
            clauses += items > 0
        return clauses.ravel(), named.ravel()

    def _items_along(self, place: int, digits: list[int]) -> NDArray[np.int64]:
        """Return the items of one attribute, shaped to be added along its chains' axes."""
        attribute, offset = self.schema.attributes[place], self.schema.offsets[place]
        own = self.fixed & self.schema.attribute_masks[place]
        bits = np.zeros((prod(self.radices[d] for d in digits), len(attribute.values)), dtype=bool)
        bits[:, own.bit_length() - 1 - offset] = True
        rest = np.arange(len(bits))
        for d in digits:
            rest, level = np.divmod(rest, self.radices[d])
            for number, step in enumerate(self.chains[d].steps, 1):
                values = unpack([step >> offset], len(attribute.values))[0]
                bits[:, values] = (level >= number)[:, np.newaxis]
        shape = [1] * len(self.chains)
        for d in digits:
            shape[len(self.chains) - 1 - d] = self.chains[d].radix
        items: NDArray[np.int64] = named_items(attribute, bits).reshape(shape)
        return items


def clauses_and_items(schema: Schema, words: Words) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return how many attributes each context restricts, and how many items its words name."""
    clauses = np.zeros(len(words), dtype=np.int64)
    named = np.zeros(len(words), dtype=np.int64)
    bits = np.unpackbits(
        words.astype("<u8").view(np.uint8), axis=1, count=schema.width, bitorder="little"
    ).astype(bool)
    for attribute, offset in zip(schema.attributes, schema.offsets, strict=True):
        items = named_items(attribute, bits[:, offset : offset + len(attribute.values)])
        clauses += items > 0
        named += items
    return clauses, named


def in_family(schema: Schema, mask: int) -> bool:
    """Tell whether a context is one of the family; then it is for every record that it covers."""
    some_record = sum(mask & own & -(mask & own) for own in schema.attribute_masks)
    return mask in Space(schema, some_record)


def _one_step(mask: int, steps: tuple[int, ...]) -> Iterator[int]:
    """Yield the context one level down a chain and the one up, where there are such."""
    level = sum(1 for step in steps if step & mask)
    if level:
        yield mask & ~steps[level - 1]
    if level < len(steps):
        yield mask | steps[level]
