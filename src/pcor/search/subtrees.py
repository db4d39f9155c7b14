"""A record's contexts by subtrees, where LOF judges: whole boxes of them at once.

Private: everything. ``_kernels.subtrees`` walks over the steps of a space and settles boxes of
contexts by bounds (docs/proofs/subtrees.md); what is left it judges as the detector does. The
verdicts are the same to the last context.
"""

from __future__ import annotations

from itertools import product
from math import prod
from typing import TYPE_CHECKING, TypeAlias

from pcor.detectors.base import Detector, FactorRule
from pcor.public.schema import MOST_STEPS
from pcor.public.space import Indices, Space
from pcor.search.boxes import Boxes, indices_of, steps_of
from pcor.search.validity import Validity
from pcor.support.arrays import NDArray, np
from pcor.support.threads import one_by_one

if TYPE_CHECKING:
    from pcor._kernels.subtree_walk import SideRows

# Bounds allow for the rounding of sums of so many terms (``_kernels.lof_ratios``).
MOST_NEIGHBOURS = 100

Box: TypeAlias = "tuple[np.uint64, np.uint64]"

# A walk is shared out in at least so many parts, a few for each core.
_PARTS = 32


class Subtrees:
    """The rows near a record and the steps of a space, as walks read them.

    Attributes:
        space: numbers the contexts.
        rule: k, the threshold, and the smallest population that the rows near V can tell.
        rows: those near V.
        steps: of the space, those of a chain from the lowest up.
        counts_population: whether the minimum is larger, so that the caller has to count.
    """

    def __init__(self, validity: Validity, space: Space, rule: FactorRule) -> None:
        self.space = space
        self.counts_population = rule.smallest > 2 * rule.k + 1
        self.rule = (rule.k, rule.threshold, min(rule.smallest, 2 * rule.k + 1))
        self.rows = self._rows(validity)
        self.steps = steps_of(space)

    def _rows(self, validity: Validity) -> SideRows:
        cells, v = validity.cells, validity.record.value
        required = self.space.step_bits(self.space.indices_of(cells.required))
        counts = counts_of_others(v, cells.values, required, cells.counts)
        # More than 2k alike count no more than 2k.
        rows = np.repeat(np.arange(len(counts)), np.minimum(counts, 2 * self.rule[0]))
        return side_rows(v, cells.values[rows], required[rows])

    def valid(self, first: int, size: int) -> NDArray[np.bool_]:
        """Return the verdicts on the contexts that share their outer levels with ``first``.

        Args:
            first: the index of the first of them.
            size: how many there are, the product of the inner chains' levels.
        """
        valid = np.zeros(size, dtype=bool)
        parts = parts_of(self.space, self.rows, self.rule[0], first, size)

        def work(place: int) -> None:
            self.boxes(parts[place]).mark(first, valid)

        one_by_one(len(parts), work)
        return valid

    def boxes(self, box: Box) -> Boxes:
        """Return the valid contexts of a box."""
        from pcor._kernels.subtrees import valid_boxes

        bases, opens = valid_boxes(self.rows, self.steps, self.rule, box)
        return Boxes(self.space, self.indices_of(bases), opens)

    def indices_of(self, bits: Indices) -> Indices:
        """Return the indices of contexts, given as bits."""
        return indices_of(bits, self.space)


def counts_of_others(
    v: float, values: NDArray[np.float64], required: Indices, counts: NDArray[np.int32]
) -> NDArray[np.int64]:
    """Return how many rows other than V there are of each cell and metric, by rising metric.

    ``required`` tells what a context needs to cover the cell: nothing for V's own.
    """
    others, at = counts.astype(np.int64), int(np.searchsorted(values, v))
    others[at + int(np.argmax((required[at:] == 0) & (values[at:] == v)))] -= 1
    return others


def side_rows(v: float, values: NDArray[np.float64], required: Indices) -> SideRows:
    """Return the rows other than V, by rising metric, as walks read them: outward on each side."""
    from pcor._kernels.subtree_walk import SideRows

    at = int(np.searchsorted(values, v))
    outward = np.arange(at)[::-1], np.arange(at, len(values))
    below, above = ((values[side], required[side]) for side in outward)
    return SideRows(v, *below, *above)


def settles_boxes(detector: Detector, brevity: int) -> bool:
    """Tell whether boxes of contexts are settled at once when contexts are drawn. Public."""
    rule = detector.factor_rule
    return rule is not None and rule.k <= MOST_NEIGHBOURS and not brevity


def bound_rule(validity: Validity, space: Space) -> FactorRule | None:
    """Return the detector's rule, if it is a factor that a walk over the space can bound."""
    rule = validity.detector.factor_rule if validity.asks_detector else None
    if rule is None or rule.k > MOST_NEIGHBOURS or len(space.steps) > MOST_STEPS:
        return None
    return rule


def subtrees(validity: Validity, space: Space) -> Subtrees | None:
    """Return the subtrees of a space, if the detector has bounds for them."""
    rule = bound_rule(validity, space)
    return None if rule is None else Subtrees(validity, space, rule)


def parts_of(space: Space, rows: SideRows, k: int, first: int, size: int) -> list[Box]:
    """Cut contexts into boxes that share the levels of a few chains, to be shared out.

    Args:
        space: numbers the contexts.
        rows: those near V.
        k: how many neighbours; chains that most of the 2k rows on each side need are cut.
        first: the index of the first context.
        size: how many there are, the product of the inner chains' levels.
    """
    (outer,) = space.step_bits(np.array([first], dtype=np.uint64)).tolist()
    inner = [
        levels
        for levels, stride in zip(space.level_bits, space.strides, strict=True)
        if stride < size
    ]
    near = np.concatenate([rows.required_below[: 2 * k], rows.required_above[: 2 * k]])
    inner.sort(key=lambda levels: -int(np.count_nonzero(near & levels[-1])))
    shared = 0
    while shared < len(inner) and prod(map(len, inner[:shared])) < _PARTS:
        shared += 1
    rest = sum(int(levels[-1]) for levels in inner[shared:])
    return [
        (np.uint64(outer | sum(map(int, chosen))), np.uint64(rest))
        for chosen in product(*inner[:shared])
    ]
