"""The valid contexts of a record by falling utility, where whole subtrees can be settled.

Private: everything. As ``BestFirst``, whose order this keeps to the last place. The first few
contexts come from its heap. If that does not decide a draw, boxes of contexts come from a heap
(``_kernels.subtree_heap``): invalid ones vanish whole, so that a record whose widest contexts are
not valid does not wait for each of them. If that takes too long all verdicts are computed
(``Subtrees.valid``), and only the valid contexts are sorted.

Contexts of equal utility are ranked when all of them are known. Their order is that in which
``BestFirst`` meets them; it is looked up only for the context that is drawn.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING

from pcor.mechanism.ordered_selection import Run
from pcor.public.schema import LARGEST_LIST
from pcor.search import best_first
from pcor.search.best_first import BestFirst, Indices, bounds, heaviest_first, stretches
from pcor.search.heaviest_valid import HeaviestValid
from pcor.search.subtrees import Subtrees, bound_rule, subtrees
from pcor.search.validity import Validity
from pcor.support.arrays import NDArray, np

if TYPE_CHECKING:
    from pcor.rows.cells import Cells


# After this many contexts boxes are looked at, and of these so many at first.
_WALK_AFTER = 384
_FIRST_LOOKS = 256

# After so many looks, or contexts found, all verdicts are computed on all cores. A walk to the end
# looks at no more boxes than that does, but on one core and with a heap. While most looks find
# something, the next contexts cost less than all verdicts would, and many more looks are worth it.
_MOST_LOOKS = 1 << 18
_MOST_FOUND = 1 << 14
_LOOKS_IN_VAIN = 4  # for one context found
_MOST_LOOKS_AT_ALL = 1 << 21


def valid_first(
    validity: Validity, weights: NDArray[np.int64], *, memory: int, brevity: int = 0
) -> BestFirst:
    """Return the valid contexts of a record, best first, by the fastest way there is.

    ``memory`` is how many MiB boxes of contexts may take; it changes no answer.
    """
    space = validity.record.space
    if brevity or space.schema.limited or bound_rule(validity, space) is None:
        return BestFirst(validity, weights, brevity)
    return SubtreesFirst(validity, weights, memory)


class SubtreesFirst(BestFirst):
    """The valid contexts of a record, best first; ``ordered_selection.Candidates``.

    For a detector whose subtrees can be settled, in spaces without limits on whole contexts.
    """

    def __init__(self, validity: Validity, weights: NDArray[np.int64], memory: int) -> None:
        super().__init__(validity, weights)
        self._memory = memory << 20
        self._heaviest: HeaviestValid | None = None
        self._looks, self._looked, self._found = _FIRST_LOOKS, 0, 0
        self._first_ranked = _no_indices()  # before boxes were looked at
        self._visited: list[Indices] = []  # since then, only to learn the order of equal ones

    @cached_property
    def _walk(self) -> Subtrees:
        walk = subtrees(self._validity, self._space)
        if walk is None:
            raise RuntimeError("only a detector with bounds has subtrees")
        return walk

    @property
    def finished(self) -> bool:
        """Whether every valid context is ranked."""
        if self._heaviest is None or self._sorted is not None:
            return super().finished
        return self._heaviest.finished and len(self._waiting) == 0

    def remaining(self) -> Sequence[Run]:
        """Return bounds on the valid contexts that are not ranked."""
        if self._heaviest is None or self._sorted is not None:
            return super().remaining()
        return [*stretches(self._scores), *bounds(*self._heaviest.sizes())]

    def advance(self) -> None:
        """Find some more contexts, and rank those of which all of equal utility are known."""
        if self._heaviest is None:
            if self._met < min(_WALK_AFTER, best_first._SORT_AFTER):
                super().advance()
                return
            self._first_ranked = np.concatenate([_no_indices(), *self._indices])
            self._heaviest = HeaviestValid(self._walk, self._cells, self._weights, self._memory)
        if self._looked_long and self._sorted is None and self._space.size <= LARGEST_LIST:
            self._sort_valid()
        if self._sorted is None:
            self._find(self._heaviest)
        else:
            self._take_sorted(self._sorted)
        self._step = min(2 * self._step, best_first.LARGEST_STEP)

    @property
    def _looked_long(self) -> bool:
        """Whether all verdicts are likely to cost less than to go on looking."""
        many = self._looked > _MOST_LOOKS or self._found > _MOST_FOUND
        in_vain = self._looked > _LOOKS_IN_VAIN * self._found
        return (many and in_vain) or self._looked > _MOST_LOOKS_AT_ALL

    def _find(self, heaviest: HeaviestValid) -> None:
        """Find the next valid contexts by looking at boxes."""
        indices, weights, left = heaviest.find(self._step, self._looks)
        self._looked += self._looks - left
        self._found += len(indices)
        self._looks = max(_FIRST_LOOKS, self._looked // 4)
        new = ~np.isin(indices, self._first_ranked)
        new[new] = self._large_enough(indices[new])
        indices = np.concatenate([self._waiting, indices[new]])
        weights = np.concatenate([self._scores, weights[new]])
        ready = len(indices)
        if not heaviest.finished:
            ready = int(np.count_nonzero(weights > heaviest.ceiling))
        self._append(indices[:ready], weights[:ready])
        self._waiting, self._scores = indices[ready:], weights[ready:]

    def _large_enough(self, indices: Indices) -> NDArray[np.bool_]:
        """Return which contexts cover enough rows; the rows near V show some minima only."""
        if not self._walk.counts_population:
            return np.ones(len(indices), dtype=bool)
        words = self._space.words_of(indices.astype(np.uint64))
        return self._cells.populations(words) >= self._validity.detector.min_population

    def _sort_valid(self) -> None:
        """Put all valid contexts that are not ranked in order."""
        utilities = self._descent.totals(self._weights)
        done = ~self._walk.valid(0, self._space.size)
        if self._walk.counts_population:
            populations = self._descent.totals(self._cells.cell_counts)
            done |= populations < self._validity.detector.min_population
        done[np.concatenate([_no_indices(), *self._indices])] = True
        self._sorted = heaviest_first(utilities, done)
        self._falling = utilities[self._sorted]
        self._waiting, self._scores = _no_indices(), _no_indices()

    def _take_sorted(self, left: Indices) -> None:
        """Rank the next contexts, all of equal utility together."""
        if len(left) == 0:
            return
        last = self._falling[min(self._step, len(left)) - 1]
        count = int(np.searchsorted(-self._falling, -last, side="right"))
        self._append(left[:count], self._falling[:count])
        self._sorted, self._falling = left[count:], self._falling[count:]

    # -- the order of contexts of equal utility ---------------------------------------------------

    def mask(self, place: int) -> int:
        """Return the context at a place in the order."""
        ends = list(accumulate(run.count for run in self._runs))
        run = bisect_right(ends, place)
        first = ends[run] - self._runs[run].count
        return self._space.mask(
            int(self._in_order(self._runs[run : run + 1], first)[place - first])
        )

    def masks(self) -> list[int]:
        """Return all contexts ranked so far, in order."""
        ordered = self._in_order(self._runs, 0)
        return [self._space.mask(int(index)) for index in ordered]

    def _in_order(self, runs: Sequence[Run], first: int) -> Indices:
        """Return the contexts of some runs, of which the first begins at a place, as they stand.

        Those of equal utility stand as ``BestFirst`` orders them: by when its heap meets them;
        those that it would have sorted come after, by index.
        """
        counts = [one.count for one in runs]
        members = np.concatenate([_no_indices(), *self._indices])[first : first + sum(counts)]
        tied = [one.utility for one in runs if one.count > 1]
        if not tied or self._heaviest is None:
            return members
        self._visit_down_to(min(tied))
        visited = np.concatenate([self._first_ranked, *self._visited])
        if len(visited) == 0:
            visited = np.array([-1])  # which is no context
        by_index = np.argsort(visited)
        place = by_index[np.searchsorted(visited, members, sorter=by_index) % len(visited)]
        met = visited[place] == members
        run = np.repeat(np.arange(len(runs)), counts)
        order = np.lexsort((np.where(met, place, members), ~met, run))
        return members[order]

    def _visit_down_to(self, utility: int) -> None:
        """Let the heap of contexts meet all that it would that have at least a utility."""
        descent = self._descent
        while not descent.finished and descent.ceiling >= utility:
            count = min(best_first.LARGEST_STEP, _heap_visits() - self._met)
            if count == 0:
                return
            indices, _ = descent.visit(min(count, 1024))
            self._visited.append(indices)
            self._met += len(indices)

    @property
    def _cells(self) -> Cells:
        return self._validity.table.cells


def _heap_visits() -> int:
    """Return how many contexts ``BestFirst`` meets before it sorts the others."""
    met, step = 0, best_first.FIRST_STEP
    while met < best_first._SORT_AFTER:
        met, step = met + step, min(2 * step, best_first.LARGEST_STEP)
    return met


def _no_indices() -> Indices:
    return np.zeros(0, dtype=np.int64)
