"""Widest first: climb to wide valid contexts by verdicts and public knowledge alone.

Not in the paper. Nothing is paid before the final draw: every step depends on the table only
through verdicts (a function of COE), on the schema, and on numbers from a public seed. For every
seed the candidates are a function of COE. Proof, and what other designs lost by:
docs/proofs/widest_first.md.

Removing a value never adds a row, so of two valid contexts the one inside the other is never the
larger: climbs go only to contexts that are wider by a guess (``guess.py``), and need no counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from pcor.errors import NoValidContext, ParameterError, check_whole
from pcor.public.context import Words, pack
from pcor.public.guarantee import USUAL, Guarantee
from pcor.public.schema import Schema
from pcor.public.space import Space
from pcor.search.base import MOST_TRIES, NONE_FOUND, ContextBits, Explorer, GraphSearch, as_masks
from pcor.search.blocks import listed_size
from pcor.search.guess import Guess
from pcor.support.arrays import NDArray, np
from pcor.support.threads import one_by_one

# How many contexts are proposed unless somebody says otherwise: more where the space is so large
# that more still find wider ones, up to the time it takes, which rises with the values; few where
# every verification is a refit. Chosen by a study: docs/results/widest_first.md.
_FEW_VALUES = 50
_TRIES_OF_FEW_VALUES = 200_000
_MOST_TRIES = 2_000_000
_TRIES_TIMES_VALUES_SQUARED = 20_000_000_000
_TRIES_OF_REFITS = 2_000

# Groups climb on their own, each on one core: what they meet does not depend on which of them is
# faster. Few tries are not worth a division.
_GROUPS = 4
_SMALLEST_GROUP = 10_000

_ROUNDS = 50  # at least so many, where tries allow
_LARGEST_ROUND = 2048
_PATIENCE = 3  # rounds without success until a climber starts anew
_ENOUGH = 64  # valid contexts to begin the climbs with
_SEEDING = 4  # one try in four goes to finding them; more only while there is none
_REMEMBERED = 64  # where new climbs may begin: the latest tops
_BITS_FOR_A_TRY = 32  # of the table of what was tried: two contexts seldom share one


def usual_tries(steps: int, *, compiled: bool = True) -> int:
    """Return how many contexts to propose where so many steps may come or go: a public rule.

    >>> [usual_tries(steps) for steps in (22, 46, 106, 990)], usual_tries(22, compiled=False)
    ([200000, 200000, 1779992, 20406], 2000)
    """
    if not compiled:
        return _TRIES_OF_REFITS
    if steps <= _FEW_VALUES:
        return _TRIES_OF_FEW_VALUES
    return min(_MOST_TRIES, max(_TRIES_OF_REFITS, _TRIES_TIMES_VALUES_SQUARED // steps**2))


@dataclass(frozen=True)
class WidestFirst(GraphSearch):
    """Climb from many valid contexts at once; keep the widest of all that were met.

    A space of no more contexts than tries is looked at whole. The full context, where it is valid,
    is the only candidate beside a given start: nothing is wider.

    Attributes:
        samples: how many candidates to keep.
        tries: how many contexts to propose; those that cannot help are not verified. ``None`` for
            ``usual_tries``.
        start: a valid context that becomes a candidate, and one more place to climb from.
        seed: of the public numbers. Any is as private as any other.
    """

    name: ClassVar[str] = "widest_first"
    randomized: ClassVar[bool] = False  # its random numbers come from a public seed
    samples: int = 20_000
    tries: int | None = None  # type: ignore[assignment]  # resolved() fills it in
    seed: int = 0

    def __post_init__(self) -> None:
        check_whole(f"samples of search {self.name!r}", self.samples, self.most_samples)
        if self.tries is not None:
            check_whole("tries", self.tries, MOST_TRIES)
        if not isinstance(self.seed, int) or isinstance(self.seed, bool) or self.seed < 0:
            raise ParameterError("seed must be a whole number of at least 0")

    def resolved(
        self,
        schema: Schema,
        *,
        compiled: bool,
        limit: int | None = None,
        guarantee: Guarantee = USUAL,
    ) -> WidestFirst:
        """Return the search with its tries as a number, so that a certificate can say it."""
        del limit, guarantee
        if self.tries is not None:
            return self
        return replace(self, tries=usual_tries(schema.most_steps, compiled=compiled))

    def verifications(self, schema: Schema) -> tuple[int, int]:
        """One with luck (the full context) to all tries, and the start."""
        start, contexts = self.start is not None, schema.most_contexts
        tries = usual_tries(schema.most_steps) if self.tries is None else self.tries
        few = contexts if contexts <= tries else 1
        return min(contexts, few + start), min(contexts, tries + start)

    def guess(self, space: Space) -> Guess:
        """Return what the climbers go by."""
        return Guess(space, self.seed)

    def explore(self, explorer: Explorer) -> list[int]:
        """Return the widest valid contexts met, a given start first."""
        tries = usual_tries(len(explorer.space.steps)) if self.tries is None else self.tries
        given = [] if self.start is None else [explorer.begin(self.start, tries=1)]
        guess = self.guess(explorer.space)
        if listed_size(explorer.space) <= tries:
            found = pack(explorer.every_valid(), explorer.space.schema.width)
        else:
            found = _Climb(explorer, guess, tries).run(explorer.rows(given))
        if not len(found):
            raise NoValidContext(NONE_FOUND)
        masks = [*given, *as_masks(self._widest(found, guess))]
        masks = list(dict.fromkeys(masks))[: self.samples]
        explorer.start = masks[0]
        return masks

    def _widest(self, found: Words, guess: Guess) -> Words:
        """Return the widest contexts, each once; the full one alone, where it is among them."""
        full = (found == guess.full).all(axis=1)
        if full.any():
            return guess.full[np.newaxis]
        order = np.lexsort((*found.T, -guess.usual_widths(found)))
        found = found[order]
        new = np.append(True, (found[1:] != found[:-1]).any(axis=1))
        widest: Words = found[new][: self.samples]
        return widest

    def describe(self) -> dict[str, Any]:
        """Return the public parameters; shares are in the schema, whose fingerprint is there."""
        return super().describe() | {"seed": self.seed}


class _Climb:
    """One run: the contexts that were tried, and which of them were valid."""

    def __init__(self, explorer: Explorer, guess: Guess, tries: int) -> None:
        self._explorer = explorer
        self._guess = guess
        self._tries = self._left = tries
        self._judge = explorer.judge_of_many()
        self._valid: list[Words] = []

    def run(self, given: ContextBits) -> Words:
        """Return all valid contexts met, as words, those given included; some more than once."""
        self._valid.append(self._explorer.space.words_of_rows(given))
        beginnings = self._beginnings(given)
        if len(beginnings) and not beginnings[0].all():  # the full context is the widest
            self._climb(beginnings)
        return np.concatenate(self._valid)

    def _beginnings(self, given: ContextBits) -> ContextBits:
        """Return valid contexts to start from: corners of the space, the given one, random ones."""
        corners = self._guess.corners()[: max(1, self._tries // _SEEDING)]
        valid = np.concatenate([corners[self._verdicts(corners)], given])
        seeding = self._tries - self._tries // _SEEDING
        while self._left > 0 and len(valid) < _ENOUGH and (self._left > seeding or not len(valid)):
            tried = self._guess.random_contexts(min(_LARGEST_ROUND, self._left))
            valid = np.concatenate([valid, tried[self._verdicts(tried)]])
        return valid

    def _verdicts(self, rows: ContextBits) -> ContextBits:
        self._left -= len(rows)
        words = self._explorer.space.words_of_rows(rows)
        verdicts = self._judge(words)
        self._valid.append(words[verdicts])
        return verdicts

    def _climb(self, tops: ContextBits) -> None:
        """Let the groups climb, each with its part of the tries, and collect what they met."""
        count = _GROUPS if self._left >= _GROUPS * _SMALLEST_GROUP else 1
        groups = [_Group(self._guess, tops, self._left // count) for _ in range(count)]
        if self._explorer.compiled:
            one_by_one(count, lambda number: groups[number].climb(self._judge))
        else:  # the user's own detector is asked by one thread
            for group in groups:
                group.climb(self._judge)
        for group in groups:
            self._valid += group.valid


class _Group:
    """Climbers that share what was tried and where they got to. What they meet is in ``valid``."""

    def __init__(self, guess: Guess, tops: ContextBits, tries: int) -> None:
        from pcor._kernels.climb import Climbers, Proposals

        side = math.isqrt(max(1, min(_LARGEST_ROUND, tries // _ROUNDS)))
        self._rounds = tries // side**2  # whole rounds: tries are never exceeded
        self._way = guess.steps, guess.climbers_guesses
        words, factors = max(1, _BITS_FOR_A_TRY * tries // 64), guess.factors()
        self._tried = np.zeros(1 << words.bit_length(), dtype=np.uint64), factors
        self._tops = _latest(tops)
        self._state = guess.factors()[:1]
        self._climbers = Climbers(
            np.zeros((side, len(factors)), dtype=np.uint8),
            np.zeros(side, dtype=np.int64),
            np.zeros(side),
            np.full(side, _PATIENCE),  # all of them begin
            np.zeros(side, dtype=np.bool_),
        )
        self._proposals = Proposals(
            np.zeros((side**2 + 1, len(factors)), dtype=np.uint8),  # the last may be ruled out
            np.zeros((side**2, len(guess.full)), dtype=np.uint64),
            np.zeros(side**2),
            np.zeros(side**2, dtype=np.int64),
        )
        self.valid: list[Words] = []

    def climb(self, judge: Callable[[Words], ContextBits]) -> None:
        """Let every climber step to its widest valid proposal until the rounds are over."""
        from pcor._kernels.climb import begin_anew, propose, step_up

        for _ in range(self._rounds):
            begin_anew(self._climbers, *self._way, self._tops, _PATIENCE, self._state)
            # Also proposals that are ruled out count: the number of rounds is public.
            kept = propose(self._climbers, *self._way, self._tried, self._state, self._proposals)
            words = self._proposals.words[:kept]
            verdicts = judge(words) if kept else np.zeros(0, dtype=bool)
            self.valid.append(words[verdicts])
            step_up(self._climbers, self._proposals, verdicts)


def _latest(tops: ContextBits) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return room for the latest tops, these in it; and how many there were and are."""
    latest = tops[-_REMEMBERED:]
    rows = np.zeros((_REMEMBERED, tops.shape[1]), dtype=np.uint8)
    rows[: len(latest)] = latest
    return rows, np.array([len(latest), len(latest)])
