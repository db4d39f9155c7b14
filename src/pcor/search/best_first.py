"""All contexts of a record by falling utility, found as they are needed.

Private: everything. For a utility that is a sum of cell weights (population, overlap, or one of the
user's own that declares them) removing a value never raises the score, so contexts can be met best
first without listing them all (``_kernels.best_first``). ``ordered_selection.draw_first`` draws
from them before the end is reached; most draws are decided after a few. If one is not, the
utilities of the whole space are one zeta transform, and from there on the contexts are taken from
its sorted order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

from pcor.mechanism.ordered_selection import Run
from pcor.public.context import unpack
from pcor.public.schema import LARGEST_LIST, MOST_STEPS
from pcor.public.space import Space, clauses_and_items
from pcor.search.blocks import block, block_size
from pcor.search.step_rows import StepRows
from pcor.search.validity import Validity
from pcor.support.arrays import NDArray, np

if TYPE_CHECKING:
    from pcor.rows.cells import Cells
    from pcor.rows.table import Record

Indices: TypeAlias = "NDArray[np.int64]"


FIRST_STEP = 128
LARGEST_STEP = 1 << 16

# After this many contexts the whole space is sorted, if it is not too large for that.
_SORT_AFTER = 1 << 13

# Once one context in this many of a block was asked for, the whole block is judged at once: each
# context then costs half as much, and most of a block is seldom far from the few first asked for.
_WHOLE_BLOCK_AFTER = 24

# Where limits leave one context in this many, or fewer, those are judged one by one.
_FEW_OF = 4

# Bounds on contexts not ranked yet are rounded up to this many different utilities.
_BOUNDS = 256


class Descent:
    """The contexts of a space by falling total weight, from a heap. Private.

    Attributes:
        space: numbers the contexts; its order of chains is by rising weight.
        required: what each cell needs, as the index of the first context that covers it.
    """

    def __init__(self, record: Record, cells: Cells, weights: NDArray[np.int64]) -> None:
        self.space = _lightest_first(record.space, cells, weights)
        self.required = _first_to_cover(self.space, cells)
        self._cells, self._weights = cells, weights
        self._radices = np.array(self.space.radices, dtype=np.int64)
        self._steps = len(self.space.steps)
        self.steps_fit = self._steps <= MOST_STEPS
        self._begun = False

    def _begin(self) -> None:
        """Number the steps in the order in which they may be removed, the last of a chain first.

        Once, and not before the first context is visited: where all are listed none is.
        """
        if self._begun:
            return
        self._begun = True
        space, fields = self.space, []
        number: dict[int, int] = {}
        attributes: dict[int, int] = {}
        for one in space.chains:
            first, length = len(number), len(one.steps)
            number.update(zip(reversed(one.steps), range(first, first + length), strict=True))
            # Level l: the first l steps, which have the highest places.
            levels = [((1 << n) - 1) << (first + length - n) for n in range(length + 1)]
            fields.append(np.array(levels, dtype=np.int64))
            attributes[one.attribute] = attributes.get(one.attribute, 0) | levels[-1]
        self._fields = fields
        self._heads = np.array([n == 0 for one in space.chains for n in range(len(one.steps))])
        self._of_attribute = np.array(
            [attributes[one.attribute] for one in space.chains for _ in one.steps], dtype=np.int64
        )
        limit = space.schema.max_clauses
        self._most = self._steps if limit is None else limit
        place = np.full(space.schema.width, self._steps)
        for step, at in number.items():
            place[unpack([step], space.schema.width)[0]] = at
        self._places = place[self._cells.cell_places]
        self._required = self._bits_of(self.required)
        everything = int(self._weights.sum())
        self._heap = np.array([[everything, (1 << self._steps) - 1, 0]], dtype=np.int64)
        self._size = 1  # entries of the heap in use

    def _bits_of(self, indices: Indices) -> Indices:
        """Return contexts as bits, given their indices."""
        if self.space.binary:
            return indices
        bits = np.zeros(len(indices), dtype=np.int64)
        for levels in self._fields:
            indices, level = np.divmod(indices, len(levels))
            bits |= levels[level]
        return bits

    def _indices_of(self, bits: Indices) -> Indices:
        """Return the indices of contexts, given as bits."""
        if self.space.binary:
            return bits
        indices = np.zeros(len(bits), dtype=np.int64)
        for stride, levels in zip(self.space.strides, self._fields, strict=True):
            indices += stride * np.searchsorted(levels, bits & levels[-1])
        return indices

    @property
    def finished(self) -> bool:
        """Whether every context was visited."""
        return self._begun and self._size == 0

    @property
    def ceiling(self) -> int:
        """The most that a context not yet visited can weigh."""
        self._begin()
        return int(self._heap[0, 0])

    def visit(self, count: int) -> tuple[Indices, NDArray[np.int64]]:
        """Return the next contexts and their weights."""
        from pcor._kernels.best_first import visit

        self._begin()
        found = np.empty((count, 2), dtype=np.int64)
        room = self._size + count * max(self._steps, 1)
        if room > len(self._heap):
            self._heap = np.resize(self._heap, (2 * room, 3))
        visited, self._size = visit(
            *(self._required, self._places, self._weights),
            *(self._heads, self._of_attribute, self._most),
            *(self._heap, self._size, found),
        )
        return self._indices_of(found[:visited, 1]), found[:visited, 0]

    def unvisited(self) -> list[Run]:
        """Return bounds on the contexts not visited yet.

        An open end of the heap stands for itself and for all contexts below it: those without
        some of the steps that may still be removed. Limits on whole contexts leave fewer.
        """
        self._begin()
        ends = self._heap[: self._size]
        return bounds(ends[:, 0], self._below[ends[:, 2]])

    @cached_property
    def _below(self) -> NDArray[np.int64]:
        """How many contexts can be reached by removing steps from a place on."""
        reached = [1]
        for one in reversed(self.space.chains):
            after = reached[0]
            # With n steps of the chain still to be removed it has n + 1 levels left.
            reached = [(n + 1) * after for n in range(len(one.steps), 0, -1)] + reached
        return np.array(reached, dtype=np.int64)

    def totals(self, weights: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the summed weights of the covered cells for every context of the space."""
        from pcor._kernels.lattice import all_totals

        totals: NDArray[np.int64] = all_totals(self.required, weights, self._radices)
        return totals


class RankedCandidates:
    """The candidates ranked so far, by falling utility. Private."""

    def __init__(self, space: Space) -> None:
        self._space = space
        self._runs: list[Run] = []
        self._indices: list[Indices] = []

    def ranked(self) -> Sequence[Run]:
        """Return the candidates ranked so far, by falling utility."""
        return self._runs

    def _append(self, indices: Indices, utilities: NDArray[np.int64]) -> None:
        """Append candidates, none better than those already there."""
        self._indices.append(indices)
        values, counts = np.unique(-utilities, return_counts=True)
        for utility, count in zip((-values).tolist(), counts.tolist(), strict=True):
            if self._runs and self._runs[-1].utility == utility:
                self._runs[-1] = Run(utility, self._runs[-1].count + count)
            else:
                self._runs.append(Run(utility, count))

    def mask(self, place: int) -> int:
        """Return the context at a place in the order."""
        return self._space.mask(int(np.concatenate(self._indices)[place]))

    def masks(self) -> list[int]:
        """Return all contexts ranked so far, in order."""
        return [self._space.mask(int(i)) for i in np.concatenate(self._indices)]


def stretches(falling: NDArray[np.int64]) -> list[Run]:
    """Bound falling utilities by stretches of doubling length, each by its best."""
    edges = [0, *(1 << power for power in range(len(falling).bit_length())), len(falling)]
    return [Run(int(falling[low]), high - low) for low, high in pairwise(edges) if low < high]


def bounds(most: NDArray[np.int64], sizes: NDArray[np.int64]) -> list[Run]:
    """Bound sets of contexts, given the most that one of each can weigh, and how many there are."""
    if len(most) == 0:
        return []
    width = max(1, int(np.ptp(most)) // _BOUNDS)
    ceilings, place = np.unique(-(-most // width), return_inverse=True)
    counts = np.zeros(len(ceilings), dtype=np.int64)  # float64 would round beyond 2^53
    np.add.at(counts, place, sizes)
    return [
        Run(int(weight) * width, int(count)) for weight, count in zip(ceilings, counts, strict=True)
    ]


class BestFirst(RankedCandidates):
    """The valid contexts of a record, best first; ``ordered_selection.Candidates``.

    Contexts are met by falling weight, which is their score, or with ``brevity`` bounds it from
    above: then each waits until nothing that was not met can be better.

    Args:
        validity: the verdicts on the record.
        weights: what each cell adds to the utility of a context that covers it.
        brevity: what each named item of a context's words takes off its score.
    """

    def __init__(self, validity: Validity, weights: NDArray[np.int64], brevity: int = 0) -> None:
        self._validity = validity
        self._weights, self._brevity = weights, brevity
        self._descent = Descent(validity.record, validity.table.cells, weights)
        super().__init__(self._descent.space)
        self._done: list[Indices] = []  # ranked or not valid
        # Those that are valid and not ranked yet.
        self._waiting: Indices = np.zeros(0, dtype=np.int64)
        self._scores = self._waiting
        self._met = 0
        self._sorted: Indices | None = None  # the contexts left, best first
        self._falling = np.zeros(0, dtype=np.int64)  # their utilities
        self._asked = np.zeros(0, dtype=np.int64)  # how many contexts, of each block
        self._whole = np.zeros(0, dtype=bool)  # which blocks were judged as a whole
        self._valid = np.zeros(0, dtype=bool)  # and their verdicts, by context
        self._step = FIRST_STEP
        if self._space.schema.limited or not self._descent.steps_fit:
            self._sort()  # the descent would meet many that are not in the family, or cannot begin

    @property
    def finished(self) -> bool:
        """Whether every context was met and ranked."""
        if self._sorted is not None:
            return len(self._sorted) == 0
        return self._descent.finished and len(self._waiting) == 0

    def remaining(self) -> Sequence[Run]:
        """Return bounds on the contexts that are not ranked: those that wait, and those not met."""
        if self._sorted is not None:
            return stretches(self._falling)
        return [*stretches(self._scores), *self._descent.unvisited()]

    def advance(self) -> None:
        """Meet some more contexts and rank the valid ones."""
        if self._sorted is None and self._met >= _SORT_AFTER:
            self._sort()
        if self._sorted is not None:
            indices, self._sorted = self._sorted[: self._step], self._sorted[self._step :]
            falling, self._falling = self._falling[: self._step], self._falling[self._step :]
            valid = self._verdicts_on(indices)
            self._append(indices[valid], falling[valid])
        else:
            self._descend()
        self._step = min(2 * self._step, LARGEST_STEP)

    def _descend(self) -> None:
        """Meet the next contexts, and rank those that nothing not met can beat."""
        indices, scores = self._descent.visit(self._step)
        self._met += len(indices)
        valid = self._verdicts_on(indices)
        self._done.append(indices[~valid])
        indices, scores = indices[valid], scores[valid]
        if self._brevity:
            words = self._space.words_of(indices.astype(np.uint64))
            scores = scores - self._brevity * clauses_and_items(self._space.schema, words)[1]
            indices = np.concatenate([self._waiting, indices])
            scores = np.concatenate([self._scores, scores])
            order = np.argsort(-scores, kind="stable")
            indices, scores = indices[order], scores[order]
        ready = len(indices)
        if not self._descent.finished:
            ready = int(np.count_nonzero(scores >= self._descent.ceiling))
        self._append(indices[:ready], scores[:ready])
        self._done.append(indices[:ready])
        self._waiting, self._scores = indices[ready:], scores[ready:]

    def _verdicts_on(self, indices: Indices) -> NDArray[np.bool_]:
        """Judge contexts, one by one or with the whole block where many of it are asked for."""
        if len(self._asked) == 0 or not self._validity.detector.has_kernel:
            return self._verdicts_one_by_one(indices)  # each is a refit: no context too many
        size = self._block
        number = indices // size
        wanted = np.bincount(number, minlength=len(self._asked))
        self._asked += wanted
        dense = (wanted > 0) & (self._asked * _WHOLE_BLOCK_AFTER > size)
        for place in np.flatnonzero(dense & ~self._whole):
            first = int(place) * size
            judged = block(self._validity, self._space, first).valid
            self._valid[first : first + len(judged)] = judged
        self._whole |= dense
        verdicts = self._valid[indices]
        rest = ~self._whole[number]
        verdicts[rest] = self._verdicts_one_by_one(indices[rest])
        return verdicts

    def _verdicts_one_by_one(self, indices: Indices) -> NDArray[np.bool_]:
        if self._few_members and self._by_steps.helps:
            return self._by_steps.judge(indices.astype(np.uint64))
        words = self._space.words_of(indices.astype(np.uint64))
        if self._few_members:  # and these are some of them
            return self._validity.judge(self._validity.cells, words)
        return self._validity.of_words(words)

    @cached_property
    def _by_steps(self) -> StepRows:
        return StepRows(self._validity, self._space)

    def _sort(self) -> None:
        """Put all that is not ranked in order, if the space is not too large for that.

        What is ranked keeps its place, so the same uniform number still points to the same context.
        """
        if self._few_members:
            self._sort_members()
        if self._sorted is not None or self._space.size > LARGEST_LIST:
            return
        utilities = self._descent.totals(self._weights)
        done = np.zeros(len(utilities), dtype=bool)
        if self._brevity:
            utilities -= self._brevity * self._space.every_clauses_and_items()[1]
        if self._space.schema.limited:
            done = ~self._space.every_admitted()
        for indices in self._done:
            done[indices] = True
        self._sorted = heaviest_first(utilities, done)
        self._falling = utilities[self._sorted]
        self._valid = np.zeros(len(done), dtype=bool)
        self._block = block_size(self._space)
        self._asked = np.zeros(len(done) // self._block, dtype=np.int64)
        self._whole = np.zeros(len(self._asked), dtype=bool)

    @cached_property
    def _few_members(self) -> bool:
        """Whether limits leave so few of the contexts that the others are best not looked at."""
        if not self._descent.steps_fit:
            return self._space.size > LARGEST_LIST
        members = self._space.members if self._space.size <= LARGEST_LIST else None
        return members is not None and _FEW_OF * len(members) <= self._space.size

    def _sort_members(self) -> None:
        """Put the contexts that the limits leave in order, of a space with too many others."""
        members = listed_members(self._space)
        if self._space.size <= LARGEST_LIST:
            utilities = self._descent.totals(self._weights)[members]
        else:
            words = self._space.words_of(members.astype(np.uint64))
            utilities = self._validity.table.cells.totals(words, self._weights)
        if self._brevity:
            words = self._space.words_of(members.astype(np.uint64))
            utilities -= self._brevity * clauses_and_items(self._space.schema, words)[1]
        order = np.argsort(-utilities, kind="stable")
        self._sorted, self._falling = members[order], utilities[order]


def listed_members(space: Space) -> Indices:
    """Return the contexts of a space that the limits leave."""
    if space.members is None:
        raise RuntimeError("a plan admits only spaces that can be walked or listed")
    return space.members.astype(np.int64)


def heaviest_first(totals: NDArray[np.int64], visited: NDArray[np.bool_]) -> Indices:
    """Return the contexts that were not visited by falling total, equal ones in their order."""
    from pcor._kernels import lattice

    # Counting needs a counter for each total up to the largest, which is the number of rows.
    if int(totals.min()) >= 0 and int(totals.max()) < len(totals):
        counted: Indices = lattice.heaviest_first(totals, visited)
        return counted
    left = np.flatnonzero(~visited)
    return left[np.argsort(-totals[left], kind="stable")]


def _first_to_cover(space: Space, cells: Cells) -> Indices:
    """Return the index of the smallest numbered context that covers each cell."""
    from pcor._kernels.coverage import place_sums

    indices = np.zeros(len(cells.cell_places), dtype=np.uint64)
    place_sums(cells.cell_places, space.index_of_value, indices)
    return indices.astype(np.int64)


def _lightest_first(space: Space, cells: Cells, weights: NDArray[np.int64]) -> Space:
    """Number the chains by rising weight.

    Contexts that lack only light values come early, and numbered this way they share their outer
    levels: few blocks hold them, and blocks that lack a heavy value wait until they are needed.
    """
    weight = cells.value_totals(weights, space.schema.width)
    chains = [
        float(weight[unpack([sum(one.steps)], space.schema.width)[0]].sum()) for one in space.chains
    ]
    return replace(space, order=tuple(sorted(range(len(chains)), key=chains.__getitem__)))
