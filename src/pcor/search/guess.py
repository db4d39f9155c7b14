"""How many rows may a context have? Guesses from public knowledge, and numbers from a public seed.

Public: everything here; nothing reads a table. Where the owner declares ``shares`` in the schema
they are the guess. Where not, all values of an attribute are alike, except that one which stands
for all undeclared ones is taken to have as many rows as the declared ones together.

The numbers are neither secret nor good, and no chance of a release depends on them. They are raw
output of PCG64, which NumPy keeps the same in every version. A logarithm or a power may differ in
its last bit from one machine to another, and then one context may be tried for another: privacy
rests on none of this.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from pcor.public.context import Words, pack, unpack
from pcor.public.schema import Attribute
from pcor.public.space import Space
from pcor.search.base import ContextBits
from pcor.support.arrays import NDArray, np
from pcor.support.threads import in_slices

if TYPE_CHECKING:
    from pcor._kernels.climb import ClimbSteps, Guesses

Numbers: TypeAlias = "NDArray[np.float64]"

# How uneven a climber's guess is at most: the exponent of random odds.
SPREAD = 1.1
SPREAD_OF_SHARES = 0.5

# Guesses are whole numbers, at most about this many rows an attribute: they add exactly, in
# whatever order.
_ROWS = 1 << 22

_CORNER_ATTRIBUTES = 10

# How many guesses there are, of which each climber takes one.
_GUESSES = 256


class Guess:
    """The widths of contexts of one space, and what to try next."""

    def __init__(self, space: Space, seed: int) -> None:
        schema, self._space = space.schema, space
        self._bits = np.random.PCG64(seed)
        self._steps = unpack(space.steps, schema.width)
        self._offsets = np.array(schema.offsets)
        self._attribute = np.array([c.attribute for c in space.chains for _ in c.steps], np.int64)
        ends = np.cumsum([len(c.steps) for c in space.chains])
        self._long = [slice(e - len(c.steps), e) for c, e in zip(space.chains, ends, strict=True)]
        self._long = [part for part in self._long if part.stop - part.start > 1]
        self._own = [p for p in range(schema.width) if space.fixed >> p & 1]
        self._usual = np.concatenate([_usual(a) for a in schema.attributes])
        self._spread = np.concatenate(
            [
                np.full(len(a.values), SPREAD if a.shares is None else SPREAD_OF_SHARES)
                for a in schema.attributes
            ]
        )

    def uniform(self, *shape: int) -> Numbers:
        """Return numbers between 0 and 1, neither included."""
        count = math.prod(shape)
        raw = self._bits.random_raw((count + 1) // 2).astype("<u8").view("<u4")[:count]
        numbers: Numbers = (raw.reshape(shape) + 0.5) / 2.0**32
        return numbers

    def factors(self) -> NDArray[np.uint64]:
        """Return a random odd number for each step, to tell contexts apart by their sums."""
        raw: NDArray[np.uint64] = self._bits.random_raw(len(self._steps)) | np.uint64(1)
        return raw

    def weights(self, count: int) -> Numbers:
        """Return a guess of the rows of every value for each climber: shape (count, t).

        Some climbers' are nearly the usual ones and some far from them, so that among many
        climbers some are right about what matters for this record.
        """
        odds = self.uniform(count, len(self._usual))
        odds /= 1 - odds
        return self._whole(self._usual * odds ** (self._spread * self.uniform(count, 1)))

    def _whole(self, weights: Numbers) -> Numbers:
        totals = np.add.reduceat(weights, self._offsets, axis=1)
        sizes = np.diff(self._offsets, append=weights.shape[1])
        whole: Numbers = np.rint(weights / np.repeat(totals, sizes, axis=1) * _ROWS)
        return np.maximum(whole, 1)

    def _in_family(self, rows: ContextBits) -> ContextBits:
        """Return contexts of the family: of each chain as many steps as there were, from its start.

        Changes ``rows``.
        """
        for part in self._long:
            count = rows[..., part].sum(axis=-1, keepdims=True)
            rows[..., part] = np.arange(part.stop - part.start) < count
        return rows

    @cached_property
    def steps(self) -> ClimbSteps:
        """The steps as climbers take them."""
        from pcor._kernels.climb import ClimbSteps

        sizes = self._steps.sum(axis=1)
        return ClimbSteps(
            self._attribute,
            np.array([(part.start, part.stop) for part in self._long], np.int64).reshape(-1, 2),
            np.append(0, np.cumsum(sizes)),
            np.nonzero(self._steps)[1],
            pack([self._space.fixed], self._space.schema.width)[0],
        )

    @cached_property
    def climbers_guesses(self) -> Guesses:
        """The guesses that climbers take: heavy steps pull, by the square root of their rows."""
        from pcor._kernels.climb import Guesses

        weights, steps = self.weights(_GUESSES), self.steps
        # Exact: whole numbers.
        rows: Numbers = np.add.reduceat(weights[:, steps.positions], steps.starts[:-1], axis=1)
        return Guesses(rows, np.sqrt(rows), np.ascontiguousarray(weights[:, self._own]))

    @cached_property
    def full(self) -> NDArray[np.uint64]:
        """The context with all values, as words."""
        width = self._space.schema.width
        full: NDArray[np.uint64] = pack([(1 << width) - 1], width)[0]
        return full

    def usual_widths(self, words: Words) -> Numbers:
        """Return the widths by the usual guess: the declared shares, or all values alike.

        A width is the logarithm of the guessed rows: attributes multiply, values add.
        """
        from pcor._kernels.climb import usual_widths

        weights = self._whole(self._usual[np.newaxis])[0]
        sizes = np.diff(self._offsets, append=len(weights))
        attribute = np.repeat(np.arange(len(sizes)), sizes)
        widths = np.empty(len(words))
        in_slices(len(words), lambda s: usual_widths(words[s], attribute, weights, widths[s]))
        return widths

    def corners(self) -> ContextBits:
        """Return contexts with all values or the record's own of each attribute, full first."""
        count = min(len(self._own), _CORNER_ATTRIBUTES)
        whole = np.ones((1 << count, len(self._own)), dtype=bool)
        whole[:, :count] = np.arange(1 << count)[:, np.newaxis] >> np.arange(count) & 1 == 0
        return whole[:, self._attribute]

    def random_contexts(self, count: int) -> ContextBits:
        """Return contexts of random shape: of each attribute all, only the own, or some values."""
        shape = (count, len(self._own))
        kind, share = self.uniform(*shape), self.uniform(*shape)
        share = np.where(kind < 0.4, 1.0, np.where(kind < 0.55, 0.0, share))
        chosen: ContextBits = self.uniform(count, len(self._steps)) < share[:, self._attribute]
        return self._in_family(chosen)


def _usual(attribute: Attribute) -> Numbers:
    """Return the rows of each value as far as the schema tells, in any unit."""
    if attribute.shares is not None:
        return np.array(attribute.shares)
    alike = np.ones(len(attribute.values))
    if attribute.other is not None:
        alike[attribute.code(attribute.other)] = max(1, len(alike) - 1)
    return alike
