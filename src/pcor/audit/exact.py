"""The exact output distribution of a release, by replaying every random decision.

Private: the distribution; for the owner only. The code that releases is the code that is audited:
the search of ``release`` runs once per path through the tree of decisions, with a random source
that takes each branch in turn and multiplies up its chance; the last draw's chances are computed.
Small spaces only.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pcor.errors import NO_CONTEXT, NoValidContext, TooLarge
from pcor.mechanism.ordered_selection import Candidates
from pcor.mechanism.randomness import Accepts, RandomSource
from pcor.public.context import Context
from pcor.releasing.plan import Plan
from pcor.releasing.run import best_first, check_start, explore
from pcor.releasing.settings import Settings
from pcor.rows.table import Table
from pcor.search.validity import Validity

# More paths than this are not replayed; searches are then audited by sampling.
PATH_LIMIT = 100_000

# A tree as wide everywhere as on its first path has this many times too many leaves: do not begin.
_FAR_TOO_MANY = 1000


def exact_distribution(
    table: Table, record: int | str, epsilon: object, *, limit: int = PATH_LIMIT, **options: Any
) -> dict[Context, float]:
    """Return the chance of every context that a release could give. For the owner only.

    Where a capped search can come back with nothing, the chances fall short of 1 by that much. A
    chance below 1e-308 is given as 0; ``exact_log_chances`` keeps it. Facts take their part of
    epsilon; ``exact_answers`` has them together with the context.

    Args:
        table: the rows.
        record: the record's key.
        epsilon: the total cost.
        limit: the most paths of decisions to replay.
        **options: as for ``pcor.release``: settings, or detector, search, utility, ...

    Raises:
        NoValidContext: no answer but "none was found" is possible.
        TooLarge: there are more contexts, or more paths of decisions, than the limit.
    """
    logs = exact_log_chances(table, record, epsilon, limit=limit, **options)
    if set(logs) == {None}:
        raise NoValidContext(NO_CONTEXT)
    return {context: math.exp(log) for context, log in logs.items() if context is not None}


def exact_log_chances(
    table: Table, record: int | str, epsilon: object, *, limit: int = PATH_LIMIT, **options: Any
) -> dict[Context | None, float]:
    """Return the logarithm of the chance of every answer; ``None`` stands for "none was found"."""
    return planned_log_chances(
        Settings.of(**options).plan(table.schema, epsilon), table, record, limit
    )


def planned_log_chances(
    plan: Plan, table: Table, record: int | str, limit: int
) -> dict[Context | None, float]:
    """Return the same for a plan that is made."""
    queried = table.record(record)
    check_start(plan.search, queried)
    validity = Validity(table, queried, plan.detector)
    logs: dict[int | None, list[float]] = {}
    for number, (path, chooser) in enumerate(_paths()):
        try:
            masks, scores = _candidates(plan, validity, chooser)
            last = selection_log_chances(
                scores, eta=plan.bill.eta, mechanism=plan.selection
            ).tolist()
        except NoValidContext:
            masks, last = [None], [0.0]
        for mask, log in zip(masks, last, strict=True):
            logs.setdefault(mask, []).append(chooser.log_chance + log)
        if number >= limit or path.size > _FAR_TOO_MANY * limit:
            raise TooLarge(
                f"the release has more than {limit:,} paths of decisions; take a smaller table, "
                "fewer samples, or raise limit="
            )
        path.finish()
    return {
        None if mask is None else Context.from_mask(table.schema, mask): _log_of_sum(terms)
        for mask, terms in sorted(logs.items(), key=lambda item: (item[0] is None, item[0] or 0))
        if max(terms) > -math.inf
    }


def _candidates(
    plan: Plan, validity: Validity, chooser: RandomSource
) -> tuple[Sequence[int | None], list[int]]:
    """Return the candidates of the last draw and their scores; ordered ones to the end."""
    ordered = best_first(plan, validity)
    if ordered is None:
        return explore(plan, validity, chooser)
    while not ordered.finished:
        ordered.advance()
    scores = [run.utility for run in ordered.ranked() for _ in range(run.count)]
    if not scores:
        raise NoValidContext(NO_CONTEXT)
    return ordered.masks(), scores


def largest_log_ratio(here: Mapping[Any, float], there: Mapping[Any, float]) -> float:
    """Return the largest absolute log ratio of any answer's chance.

    Of what ``exact_log_chances`` returns, or ``exact_answers``.

    Infinite where an answer is possible on one side only; "none was found" is an answer too.
    """
    if set(here) != set(there):
        return math.inf
    return max((abs(here[answer] - there[answer]) for answer in here), default=0.0)


def _log_of_sum(logs: Sequence[float]) -> float:
    top = max(logs)
    return (
        top + math.log(math.fsum(math.exp(log - top) for log in logs)) if top > -math.inf else top
    )


class _Path:
    """The decisions taken so far; the last one that has a next branch advances."""

    def __init__(self) -> None:
        self.taken: list[int] = []
        self.widths: list[int] = []
        self.depth = 0

    @property
    def size(self) -> int:
        """How many paths there would be, were the tree as wide everywhere as here."""
        return math.prod(self.widths)

    def decide(self, width: int) -> int:
        """Return the branch to take at this decision."""
        if self.depth == len(self.taken):
            self.taken.append(0)
            self.widths.append(width)
        branch = self.taken[self.depth]
        self.depth += 1
        return branch

    def finish(self) -> None:
        """Move on to the next path, in the order of a counter."""
        while self.taken and self.taken[-1] + 1 == self.widths[-1]:
            self.taken.pop()
            self.widths.pop()
        if self.taken:
            self.taken[-1] += 1
        self.depth = 0


def _paths() -> Iterator[tuple[_Path, _ReplayedSource]]:
    path = _Path()
    yield path, _ReplayedSource(path)
    while path.taken:
        yield path, _ReplayedSource(path)


class _ReplayedSource:
    """Takes the branches that a path says and keeps the logarithm of their chance."""

    private = False

    def __init__(self, path: _Path) -> None:
        self.log_chance = 0.0
        self._path = path

    def uniform(self, count: int) -> int:
        self.log_chance -= math.log(count)
        return self._path.decide(count)

    def sample(self, size: int, accepts: Accepts, *, wanted: int, cap: int) -> list[int]:
        """Branch over multisets of accepted indices instead of over every try."""
        accepted = tuple(int(i) for i in np.flatnonzero(accepts(range(size))))
        branches = _sampled(accepted, size, wanted, cap)
        drawn, chance = branches[self._path.decide(len(branches))]
        self.log_chance += math.log(chance) if chance > 0 else -math.inf
        return list(drawn)

    def select_first(self, candidates: Candidates, *, eta: Fraction, mechanism: str) -> int | None:
        raise RuntimeError(f"computed, not replayed: {candidates!r}, {eta}, {mechanism}")

    def select(self, scores: Sequence[int], *, eta: Fraction, mechanism: str) -> int:
        logs = selection_log_chances(scores, eta=eta, mechanism=mechanism)
        branch = self._path.decide(len(scores))
        self.log_chance += float(logs[branch])
        return branch


Sampled = list[tuple[tuple[int, ...], float]]


@lru_cache(maxsize=16)
def _sampled(accepted: tuple[int, ...], size: int, wanted: int, cap: int) -> Sampled:
    """Return every multiset that ``RandomSource.sample`` can return, with its chance."""
    if accepted and math.comb(len(accepted) + wanted - 1, wanted) > PATH_LIMIT:
        raise TooLarge(
            f"there are more than {PATH_LIMIT:,} ways to draw {wanted} samples; take a smaller "
            "table or fewer samples"
        )
    ways: Sampled = []
    for kept, chance in _kept_counts(len(accepted), size, wanted, cap):
        for drawn in combinations_with_replacement(accepted, kept):
            orders = math.factorial(kept)
            for copies in Counter(drawn).values():
                orders //= math.factorial(copies)
            ways.append((drawn, chance * float(Fraction(orders, max(len(accepted), 1) ** kept))))
    return ways


def _kept_counts(accepted: int, size: int, wanted: int, cap: int) -> Iterator[tuple[int, float]]:
    """Yield how many are kept, with its chance: binomial, cut off at ``wanted``."""
    if size <= cap:
        yield (wanted if accepted else 0), 1.0
        return
    from scipy import stats  # takes long to import

    kept = stats.binom(cap, accepted / size)
    for short in range(min(wanted, cap + 1)):
        yield short, float(kept.pmf(short))
    if wanted <= cap:
        yield wanted, float(kept.sf(wanted - 1))


def selection_chances(
    scores: Sequence[int], *, eta: Fraction, mechanism: str
) -> NDArray[np.float64]:
    """Return the chance of each index under a selection mechanism."""
    chances: NDArray[np.float64] = np.exp(
        selection_log_chances(scores, eta=eta, mechanism=mechanism)
    )
    return chances


def selection_log_chances(
    scores: Sequence[int], *, eta: Fraction, mechanism: str
) -> NDArray[np.float64]:
    """Return the logarithm of the chance of each index under a selection mechanism.

    The exponential mechanism's are its definition. Permute-and-flip's: a random order is a
    uniform arrival time x for each candidate, and i is taken if it succeeds and nobody before it
    did, so its chance is the integral of q_i * prod(1 - x q_j, j != i) over [0, 1]
    (q = exp(eta (u - max))), a polynomial that Gauss-Legendre quadrature integrates exactly.
    """
    best = max(scores)
    log_q = np.array([float(eta * (score - best)) for score in scores])
    q = np.exp(log_q)
    if mechanism == "exponential":
        logs: NDArray[np.float64] = log_q - math.log(q.sum())
        return logs
    nodes, weights = _quadrature(len(scores) // 2 + 1)
    x = (nodes[:, np.newaxis] + 1) / 2
    failures = np.log1p(-x * q)  # no node is at 1, so none is the logarithm of 0
    others = np.exp(failures.sum(axis=1, keepdims=True) - failures)
    flipped: NDArray[np.float64] = log_q + np.log((weights / 2) @ others)
    return flipped


@lru_cache(maxsize=256)
def _quadrature(points: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    return np.polynomial.legendre.leggauss(points)
