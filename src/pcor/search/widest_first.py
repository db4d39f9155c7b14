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
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from pcor.errors import NoValidContext, ParameterError, check_whole
from pcor.public.guarantee import USUAL, Guarantee
from pcor.public.schema import Schema
from pcor.public.space import Space
from pcor.search.base import MOST_TRIES, NONE_FOUND, ContextBits, Explorer, GraphSearch
from pcor.search.blocks import listed_size
from pcor.search.guess import Guess, Numbers
from pcor.support.arrays import NDArray, np

# How many contexts are proposed unless somebody says otherwise: more where the space is larger, up
# to the time it takes, which rises with the values; few where every verification is a refit.
_FEW_VALUES = 30
_TRIES_OF_FEW_VALUES = 500_000
_MOST_TRIES = 2_000_000
_TRIES_TIMES_VALUES_SQUARED = 20_000_000_000
_TRIES_OF_REFITS = 2_000

_ROUNDS = 50  # at least so many, where tries allow
_LARGEST_ROUND = 2048
_PATIENCE = 3  # rounds without success until a climber starts anew
_ENOUGH = 64  # valid contexts to begin the climbs with
_SEEDING = 4  # one try in four goes to finding them; more only while there is none
_REMEMBERED = 64  # where new climbs may begin: the latest tops
_RIVALS = 16  # of which each climber takes the widest
_TABU_BITS = 24


def usual_tries(steps: int, *, compiled: bool = True) -> int:
    """Return how many contexts to propose where so many steps may come or go: a public rule.

    >>> [usual_tries(steps) for steps in (22, 60, 106, 990)], usual_tries(22, compiled=False)
    ([500000, 2000000, 1779992, 20406], 2000)
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
            found = explorer.rows(explorer.every_valid())
        else:
            found = _Climb(explorer, guess, tries).run(explorer.rows(given))
        if not len(found):
            raise NoValidContext(NONE_FOUND)
        full = found.all(axis=1)
        found = found[full] if full.any() else found
        widest = np.argsort(-guess.usual_widths(found), kind="stable")[: self.samples]
        masks = list(dict.fromkeys([*given, *explorer.masks(found[widest])]))[: self.samples]
        explorer.start = masks[0]
        return masks

    def describe(self) -> dict[str, Any]:
        """Return the public parameters; shares are in the schema, whose fingerprint is there."""
        return super().describe() | {"seed": self.seed}


class _Climb:
    """One run: the contexts that were tried, and which of them were valid."""

    def __init__(self, explorer: Explorer, guess: Guess, tries: int) -> None:
        self._explorer = explorer
        self._guess = guess
        self._tries = self._left = tries
        self._side = math.isqrt(max(1, min(_LARGEST_ROUND, tries // _ROUNDS)))
        self._tried = np.zeros(1 << _TABU_BITS, dtype=bool)
        self._factors = guess.factors()
        self._valid: list[NDArray[np.uint8]] = []

    def run(self, given: ContextBits) -> ContextBits:
        """Return all valid contexts met, each once, those given included."""
        self._valid.append(np.packbits(given, axis=1))
        beginnings = self._beginnings(given)
        if len(beginnings) and not beginnings[0].all():  # the full context is the widest
            self._climb(beginnings)
        packed = np.unique(np.concatenate(self._valid), axis=0)
        return np.unpackbits(packed, axis=1, count=given.shape[1]).astype(bool)

    def _beginnings(self, given: ContextBits) -> ContextBits:
        """Return valid contexts to start from: corners of the space, the given one, random ones."""
        corners = self._guess.corners()[: max(1, self._tries // _SEEDING)]
        valid = np.concatenate([corners[self._judge(corners)], given])
        seeding = self._tries - self._tries // _SEEDING
        while self._left > 0 and len(valid) < _ENOUGH and (self._left > seeding or not len(valid)):
            tried = self._guess.random_contexts(min(self._side**2, self._left))
            valid = np.concatenate([valid, tried[self._judge(tried)]])
        return valid

    def _climb(self, tops: ContextBits) -> None:
        """Let every climber step to its widest valid proposal until the tries run out."""
        guess, side = self._guess, self._side
        at, weights, height = self._begin(tops, side)
        stuck, arrived = np.zeros(side, dtype=np.int64), np.zeros(side, dtype=bool)
        while self._left >= side * side:  # whole rounds: tries are never exceeded
            proposed = guess.proposals(at, weights, side)
            # Also for proposals that were ruled out: the number of rounds is public.
            self._left -= side * side
            widths = guess.widths(proposed, weights)
            wider = widths > height[:, np.newaxis] + 1e-9
            wider[wider] = self._judge_new(proposed[wider])
            widths[~wider] = -np.inf
            best = widths.argmax(axis=1)
            up = wider.any(axis=1)
            at[up], height[up] = proposed[up, best[up]], widths[up, best[up]]
            stuck, arrived = np.where(up, 0, stuck + 1), arrived | up
            done = stuck >= _PATIENCE
            if done.any():
                tops = np.concatenate([tops, at[done & arrived]])[-_REMEMBERED:]
                at[done], weights[done], height[done] = self._begin(tops, int(done.sum()))
                stuck[done], arrived[done] = 0, False

    def _begin(self, tops: ContextBits, count: int) -> tuple[ContextBits, Numbers, Numbers]:
        """Return where so many climbers begin, their guesses, and how wide it is there by those.

        Each begins at the widest of a few tops that others got to, less some values. What is left
        may not be valid; the first step is then to a wider context that is.
        """
        weights = self._guess.weights(count)
        rivals = tops[self._guess.places(len(tops), count * _RIVALS)].reshape(count, _RIVALS, -1)
        widest = self._guess.widths(rivals, weights).argmax(axis=1)
        at = self._guess.kicked(rivals[np.arange(count), widest])
        return at, weights, self._guess.widths(at[:, np.newaxis], weights)[:, 0]

    def _judge_new(self, rows: ContextBits) -> ContextBits:
        """Return which are valid and were not tried before: nobody climbs the same way twice.

        Two contexts may share a place of the table; the second is then lost, which is harmless.
        """
        places = ((rows @ self._factors) >> np.uint64(64 - _TABU_BITS)).astype(np.int64)
        new = ~self._tried[places]
        self._tried[places] = True
        new[new] = self._verdicts(rows[new])
        return new

    def _judge(self, rows: ContextBits) -> ContextBits:
        self._left -= len(rows)
        return self._verdicts(rows)

    def _verdicts(self, rows: ContextBits) -> ContextBits:
        verdicts = self._explorer.verdicts(rows)
        self._valid.append(np.packbits(rows[verdicts], axis=1))
        return verdicts
