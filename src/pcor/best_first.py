"""All contexts of a record by falling utility, found as they are needed.

Private: everything. For a utility that is a sum of cell weights (population, overlap) removing a
value never raises the score, so contexts can be met best first without listing them all
(``_kernels.best_first``). ``ordered.draw_first`` draws from them before the end is reached. If that
end is near anyway, the rest is enumerated in blocks, which is cheaper than one by one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pcor.enumeration import blocks
from pcor.ordered import Run
from pcor.validity import Validity

_FIRST_STEP = 128
_LARGEST_STEP = 1 << 15

# Once one context in this many was visited, enumerating all is faster than going on.
_ENOUGH = 32

# Bounds on what was not met are rounded up to this many different utilities.
_BOUNDS = 256


class BestFirst:
    """The valid contexts of a record, best first; ``ordered.Candidates``."""

    def __init__(self, validity: Validity, weights: NDArray[np.int64]) -> None:
        space = validity.record.space
        self._validity = validity
        self._weights = weights
        self._needs = space.indices_of(validity.table.view.cell_needs).astype(np.int64)
        self._free = len(space.free)
        everything = int(weights.sum())
        self._heap = np.array([[everything, (1 << self._free) - 1, 0]], dtype=np.int64)
        self._size = 1  # entries of the heap in use
        self._visited = 0
        self._step = _FIRST_STEP
        self._runs: list[Run] = []
        self._indices: list[NDArray[np.int64]] = []

    @property
    def finished(self) -> bool:
        """Whether every context was visited."""
        return self._size == 0

    def met(self) -> list[Run]:
        """Return the valid contexts met so far, by falling utility."""
        return self._runs

    def remaining(self) -> list[Run]:
        """Return bounds on the contexts not visited yet, valid or not.

        An open end stands for itself and for all contexts below it: those without any of the
        values that may still be removed.
        """
        ends = self._heap[: self._size]
        if len(ends) == 0:
            return []
        width = max(1, int(np.ptp(ends[:, 0])) // _BOUNDS)
        bucket = -(-ends[:, 0] // width)  # rounded up: still an upper bound
        ceilings, place = np.unique(bucket, return_inverse=True)
        below = np.bincount(place, np.ldexp(1.0, (self._free - ends[:, 2]).astype(np.int32)))
        return [
            Run(int(utility) * width, int(count))
            for utility, count in zip(ceilings, below, strict=True)
        ]

    def advance(self) -> None:
        """Visit some more contexts and keep the valid ones."""
        if _ENOUGH * self._visited > 1 << self._free:
            self._finish()
            return
        from pcor._kernels.best_first import visit

        found = np.empty((self._step, 2), dtype=np.int64)
        room = self._size + self._step * max(self._free, 1)
        if room > len(self._heap):
            self._heap = np.resize(self._heap, (2 * room, 3))
        visited, self._size = visit(
            self._needs, self._weights, self._free, self._heap, self._size, found
        )
        self._visited += visited
        self._keep(found[:visited])
        self._step = min(2 * self._step, _LARGEST_STEP)

    def mask(self, place: int) -> int:
        """Return the context at a place in the order."""
        return self._validity.record.space.mask(int(np.concatenate(self._indices)[place]))

    def masks(self) -> list[int]:
        """Return all contexts met so far, in order."""
        return [self._validity.record.space.mask(int(i)) for i in np.concatenate(self._indices)]

    def _keep(self, found: NDArray[np.int64]) -> None:
        """Judge contexts given as (utility, index), in order, and remember the valid ones."""
        words = self._validity.record.space.words_of(found[:, 1].astype(np.uint64))
        self._append(found[self._validity.of_words(words)])

    def _append(self, valid: NDArray[np.int64]) -> None:
        self._indices.append(valid[:, 1])
        utilities, counts = np.unique(-valid[:, 0], return_counts=True)
        for utility, count in zip((-utilities).tolist(), counts.tolist(), strict=True):
            if self._runs and self._runs[-1].utility == utility:
                self._runs[-1] = Run(utility, self._runs[-1].count + count)
            else:
                self._runs.append(Run(utility, count))

    def _finish(self) -> None:
        """Enumerate the whole space and append, in order, what was not visited.

        What was met keeps its place, so the same uniform number still points to the same context.
        """
        space, view = self._validity.record.space, self._validity.table.view
        met = np.concatenate(self._indices) if self._indices else np.zeros(0, dtype=np.int64)
        rest = []
        for block in blocks(self._validity):
            indices = block.first + np.flatnonzero(block.valid)
            indices = indices[~np.isin(indices, met)]
            totals = view.totals(space.words_of(indices.astype(np.uint64)), self._weights)
            rest.append(np.column_stack([totals, indices]))
        found = np.concatenate(rest)
        self._append(found[np.argsort(-found[:, 0], kind="stable")])
        self._size = 0
