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
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pcor.choosing import Accepts
from pcor.context import Context
from pcor.errors import NoValidContext, TooLarge
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
    """Return the largest absolute log ratio of chances; infinite where only one is possible."""
    contexts = {c for c in (*here, *there) if here.get(c, 0) or there.get(c, 0)}
    if any(not (here.get(c, 0) and there.get(c, 0)) for c in contexts):
        return math.inf
    return max((abs(math.log(here[c] / there[c])) for c in contexts), default=0.0)


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
        accepted = [int(i) for i in np.flatnonzero(accepts(range(size)))]
        branches = list(_sampled(accepted, size, wanted, cap))
        drawn, chance = branches[self._path.decide(len(branches))]
        self.chance *= chance
        return drawn

    def select(self, scores: Sequence[int], *, eta: Fraction, mechanism: str) -> int:
        chances = selection_chances(scores, eta=eta, mechanism=mechanism)
        branch = self._path.decide(len(scores))
        self.chance *= float(chances[branch])
        return branch


def _sampled(
    accepted: Sequence[int], size: int, wanted: int, cap: int
) -> Iterator[tuple[list[int], float]]:
    """Yield every multiset that ``Chooser.sample`` can return, with its chance."""
    for kept, chance in _kept_counts(len(accepted), size, wanted, cap):
        for drawn in combinations_with_replacement(accepted, kept):
            orders = math.factorial(kept)
            for copies in Counter(drawn).values():
                orders //= math.factorial(copies)
            yield list(drawn), chance * orders / len(accepted) ** kept if kept else chance


def _kept_counts(accepted: int, size: int, wanted: int, cap: int) -> Iterator[tuple[int, float]]:
    """Yield how many are kept, with its chance: binomial, cut off at ``wanted``."""
    if size <= cap:
        yield (wanted if accepted else 0), 1.0
        return
    p = accepted / size
    short = [math.comb(cap, k) * p**k * (1 - p) ** (cap - k) for k in range(min(wanted, cap + 1))]
    yield from enumerate(short)
    if wanted <= cap and accepted:
        yield wanted, 1.0 - sum(short)


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
    nodes, weights = np.polynomial.legendre.leggauss(len(scores) // 2 + 1)
    x = (nodes[:, np.newaxis] + 1) / 2
    failures = 1 - x * q
    others = np.array([np.delete(failures, i, axis=1).prod(axis=1) for i in range(len(scores))])
    flipped: NDArray[np.float64] = q * (others @ (weights / 2))
    return flipped
