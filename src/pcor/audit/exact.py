"""The exact output distribution of a release, by replaying every random decision.

Private: the distribution; for the owner only. The code that releases is the code that is audited:
``release.draw`` runs once per path through the tree of decisions, with a chooser that takes each
branch in turn and multiplies up its chance. Small spaces only.
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
from scipy import stats

from pcor.choosing import Accepts
from pcor.context import Context
from pcor.errors import NoValidContext, TooLarge
from pcor.ordered import Candidates
from pcor.planning import plan
from pcor.release import check_start, draw
from pcor.table import Table
from pcor.validity import Validity

# More paths than this are not replayed; searches are then audited by sampling.
PATH_LIMIT = 1_000_000


def exact_distribution(
    table: Table, record: int | str, epsilon: object, *, limit: int = PATH_LIMIT, **options: Any
) -> dict[Context, float]:
    """Return the chance of every context that a release could give. For the owner only.

    Where a capped search can come back with nothing, the chances fall short of 1 by that much.

    Args:
        table: the rows.
        record: the record's key.
        epsilon: the total cost.
        limit: the most paths of decisions to replay.
        **options: the options of ``pcor.release``: detector, search, utility, samples, start,
            accounting, selection.
    """
    settled = plan(table.schema, epsilon, **options)
    queried = table.record(record)
    check_start(settled.search, queried)
    validity = Validity(table, queried, settled.detector)
    chances: dict[int, float] = {}
    none: NoValidContext | None = None
    for number, (path, chooser) in enumerate(_paths()):
        if number >= limit:
            raise TooLarge(
                f"the release has more than {limit:,} paths of decisions; take a smaller table, "
                "fewer samples, or raise limit="
            )
        try:
            mask = draw(settled, validity, chooser)
            chances[mask] = chances.get(mask, 0.0) + chooser.chance
        except NoValidContext as error:
            none = error
        path.finish()
    if none is not None and not chances:
        raise none
    return {Context.from_mask(table.schema, mask): p for mask, p in sorted(chances.items())}


def largest_log_ratio(here: Mapping[Context, float], there: Mapping[Context, float]) -> float:
    """Return the largest absolute log ratio of any answer's chance; "none found" is one of them.

    Infinite where an answer is possible on one side only.
    """
    pairs = [(here.get(c, 0.0), there.get(c, 0.0)) for c in {*here, *there}]
    pairs.append((_nothing(here), _nothing(there)))
    if any((one > 0) != (other > 0) for one, other in pairs):
        return math.inf
    return max((abs(math.log(one / other)) for one, other in pairs if one > 0), default=0.0)


def _nothing(chances: Mapping[Context, float]) -> float:
    """Return the chance that no context was found: what is missing from 1, rounding aside."""
    missing = 1.0 - math.fsum(chances.values())
    return missing if missing > 1e-9 else 0.0


class _Path:
    """The decisions taken so far; the last one that has a next branch advances."""

    def __init__(self) -> None:
        self.taken: list[int] = []
        self.widths: list[int] = []
        self.depth = 0

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


def _paths() -> Iterator[tuple[_Path, _ReplayingChooser]]:
    path = _Path()
    yield path, _ReplayingChooser(path)
    while path.taken:
        yield path, _ReplayingChooser(path)


class _ReplayingChooser:
    """Takes the branches that a path says and keeps their chance."""

    private = False

    def __init__(self, path: _Path) -> None:
        self.chance = 1.0
        self._path = path

    def uniform(self, count: int) -> int:
        self.chance /= count
        return self._path.decide(count)

    def sample(self, size: int, accepts: Accepts, *, wanted: int, cap: int) -> list[int]:
        """Branch over multisets of accepted indices instead of over every try."""
        accepted = tuple(int(i) for i in np.flatnonzero(accepts(range(size))))
        branches = _sampled(accepted, size, wanted, cap)
        drawn, chance = branches[self._path.decide(len(branches))]
        self.chance *= chance
        return list(drawn)

    def select_first(self, candidates: Candidates, *, eta: Fraction) -> int | None:
        while candidates.remaining():
            candidates.advance()
        scores = [run.utility for run in candidates.met() for _ in range(run.count)]
        return self.select(scores, eta=eta, mechanism="exponential") if scores else None

    def select(self, scores: Sequence[int], *, eta: Fraction, mechanism: str) -> int:
        chances = selection_chances(scores, eta=eta, mechanism=mechanism)
        branch = self._path.decide(len(scores))
        self.chance *= float(chances[branch])
        return branch


Sampled = list[tuple[tuple[int, ...], float]]


@lru_cache(maxsize=16)
def _sampled(accepted: tuple[int, ...], size: int, wanted: int, cap: int) -> Sampled:
    """Return every multiset that ``Chooser.sample`` can return, with its chance."""
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
    kept = stats.binom(cap, accepted / size)
    for short in range(min(wanted, cap + 1)):
        yield short, float(kept.pmf(short))
    if wanted <= cap:
        yield wanted, float(kept.sf(wanted - 1))


def selection_chances(
    scores: Sequence[int], *, eta: Fraction, mechanism: str
) -> NDArray[np.float64]:
    """Return the chance of each index under a selection mechanism.

    The exponential mechanism's are its definition. Permute-and-flip's: a random order is a
    uniform arrival time x for each candidate, and i is taken if it succeeds and nobody before it
    did, so its chance is the integral of q_i * prod(1 - x q_j, j != i) over [0, 1]
    (q = exp(eta (u - max))), a polynomial that Gauss-Legendre quadrature integrates exactly.
    """
    best = max(scores)
    q = np.array([math.exp(float(eta * (score - best))) for score in scores])
    if mechanism == "exponential":
        chances: NDArray[np.float64] = q / q.sum()
        return chances
    nodes, weights = _quadrature(len(scores) // 2 + 1)
    x = (nodes[:, np.newaxis] + 1) / 2
    failures = 1 - x * q
    others = np.array([np.delete(failures, i, axis=1).prod(axis=1) for i in range(len(scores))])
    flipped: NDArray[np.float64] = q * (others @ (weights / 2))
    return flipped


@lru_cache(maxsize=256)
def _quadrature(points: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    return np.polynomial.legendre.leggauss(points)
