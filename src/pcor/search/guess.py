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
from typing import TypeAlias

from pcor.public.context import unpack
from pcor.public.schema import Attribute
from pcor.public.space import Space
from pcor.search.base import ContextBits
from pcor.support.arrays import NDArray, np

Numbers: TypeAlias = "NDArray[np.float64]"

# How uneven a climber's guess is at most: the exponent of random odds.
SPREAD = 1.1
SPREAD_OF_SHARES = 0.5

# Guesses are whole numbers, at most about this many rows an attribute: float32 adds them exactly,
# in whatever order a linear algebra library likes.
_ROWS = 1 << 22

_CORNER_ATTRIBUTES = 10


class Guess:
    """The widths of contexts of one space, and what to try next."""

    def __init__(self, space: Space, seed: int) -> None:
        schema = space.schema
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

    def places(self, size: int, count: int) -> NDArray[np.int64]:
        """Return ``count`` random places below ``size``."""
        return (self.uniform(count) * size).astype(np.int64)

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

    def _of_steps(self, weights: Numbers) -> Numbers:
        """Return the guessed rows of every step for each climber: those of its values."""
        added: Numbers = weights @ self._steps.T.astype(np.float64)  # exact: whole numbers
        return added

    def _in_family(self, rows: ContextBits) -> ContextBits:
        """Return contexts of the family: of each chain as many steps as there were, from its start.

        Changes ``rows``.
        """
        for part in self._long:
            count = rows[..., part].sum(axis=-1, keepdims=True)
            rows[..., part] = np.arange(part.stop - part.start) < count
        return rows

    def widths(self, rows: ContextBits, weights: Numbers) -> Numbers:
        """Return the logarithm of the guessed rows: attributes multiply, values add.

        ``rows`` has shape (climbers, contexts, steps), ``weights`` (climbers, t).
        """
        total: Numbers = np.zeros(rows.shape[:2])
        of_steps = self._of_steps(weights)
        for attribute, own in enumerate(self._own):
            columns = np.flatnonzero(self._attribute == attribute)
            weight = of_steps[:, columns, np.newaxis].astype(np.float32)
            added = (rows[:, :, columns].astype(np.float32) @ weight)[:, :, 0]
            total += np.log(added + weights[:, own, np.newaxis])
        return total

    def usual_widths(self, rows: ContextBits) -> Numbers:
        """Return the widths by the usual guess: the declared shares, or all values alike."""
        widths: Numbers = self.widths(rows[np.newaxis], self._whole(self._usual[np.newaxis]))[0]
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

    def kicked(self, at: ContextBits) -> ContextBits:
        """Return the contexts less some steps each: one to all of them, few more often."""
        present = at.sum(axis=1, keepdims=True)
        drops = (present + 1.0) ** self.uniform(len(at), 1)
        kept: ContextBits = at & (self.uniform(*at.shape) * np.maximum(present, 1) >= drops)
        return self._in_family(kept)

    def proposals(self, at: ContextBits, weights: Numbers, count: int) -> ContextBits:
        """Return ``count`` contexts to try from each: steps added, half the time some dropped.

        From one to all that are missing, few more often than many; heavy ones are rather added
        and light ones rather dropped, by the square root of their guess.
        """
        pull = np.sqrt(self._of_steps(weights))
        adding = _in_parts(np.where(at, 0.0, pull))
        dropping = _in_parts(np.where(at, 1.0 / pull, 0.0))
        missing, present = (~at).sum(axis=1, keepdims=True), at.sum(axis=1, keepdims=True)
        shape = (len(at), count)
        adds = np.minimum((missing + 1.0) ** self.uniform(*shape), missing)
        drops = (1.0 + np.minimum(present, adds)) ** self.uniform(*shape)
        drops[self.uniform(*shape) < 0.5] = 0
        chance = np.where(
            at[:, np.newaxis],
            dropping[:, np.newaxis] * drops[:, :, np.newaxis],
            adding[:, np.newaxis] * adds[:, :, np.newaxis],
        )
        proposed: ContextBits = at[:, np.newaxis] ^ (self.uniform(*chance.shape) < chance)
        return self._in_family(proposed)


def _usual(attribute: Attribute) -> Numbers:
    """Return the rows of each value as far as the schema tells, in any unit."""
    if attribute.shares is not None:
        return np.array(attribute.shares)
    alike = np.ones(len(attribute.values))
    if attribute.other is not None:
        alike[attribute.code(attribute.other)] = max(1, len(alike) - 1)
    return alike


def _in_parts(pull: Numbers) -> Numbers:
    """Return each row divided by its sum; a row of zeros stays one."""
    parts: Numbers = pull / np.maximum(pull.sum(axis=1, keepdims=True), 1e-30)
    return parts
