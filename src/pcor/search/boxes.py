"""Sets of contexts as boxes, and the steps of a space as kernels that split it read them.

Private: which contexts are in a set. A box is a context and some steps that are open: with these
and without them, as the chains allow. COE and what a row changes in it have millions of contexts
and few boxes; they are listed only for who asks for each of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

from pcor.public.space import Indices, Space
from pcor.support.arrays import NDArray, np

if TYPE_CHECKING:
    from pcor._kernels.boxes import Steps


@lru_cache(maxsize=16)
def steps_of(space: Space) -> Steps:
    """Return the steps of a space, those of a chain from the lowest up."""
    from pcor._kernels.boxes import Steps

    lower, higher, strides = [], [], []
    for levels, stride in zip(space.level_bits, space.strides, strict=True):
        for below, own in pairwise(levels):
            lower.append(own)
            higher.append(levels[-1] & ~below)
            strides.append(stride)
    return Steps(
        np.array(lower, dtype=np.uint64),
        np.array(higher, dtype=np.uint64),
        np.array(strides, dtype=np.uint64),
    )


def indices_of(bits: Indices, space: Space) -> Indices:
    """Return the indices of contexts, given as bits: one for each step."""
    if space.binary:
        return bits
    indices = np.zeros(len(bits), dtype=np.uint64)
    for number, stride in enumerate(steps_of(space).strides):
        indices += (bits >> np.uint64(number) & np.uint64(1)) * np.uint64(stride)
    return indices


@dataclass(frozen=True, eq=False, repr=False)
class Boxes:
    """A set of contexts as disjoint boxes.

    Attributes:
        space: numbers the contexts.
        bases: the index of the smallest context of each box.
        opens: the steps that are open in each, as bits.
    """

    space: Space
    bases: Indices
    opens: Indices

    @classmethod
    def of(cls, space: Space, indices: Indices) -> Boxes:
        """Return a set of single contexts."""
        return cls(space, indices, np.zeros(len(indices), dtype=np.uint64))

    def __len__(self) -> int:
        """Return how many contexts there are, without listing them."""
        from pcor._kernels.boxes import box_sizes

        if not self.opens.any():  # also where the steps are more than a word has bits
            return len(self.bases)
        return int(box_sizes(self.opens, steps_of(self.space)).sum())

    def indices(self) -> Indices:
        """Return the contexts as rising indices."""
        from pcor._kernels.boxes import list_boxes

        if not self.opens.any():
            return np.sort(self.bases)
        members = np.empty(len(self), dtype=np.uint64)
        list_boxes(self.bases, self.opens, steps_of(self.space), members)
        members.sort()
        return members

    def mark(self, first: int, marks: NDArray[np.bool_]) -> None:
        """Mark each context at its index less ``first``."""
        from pcor._kernels.boxes import mark_boxes

        mark_boxes(self.bases, self.opens, steps_of(self.space), first, marks)

    def covering(self, required: int) -> Boxes:
        """Return the contexts of this set that have the steps of another, given by its index."""
        (bits,) = self.space.step_bits(np.array([required], dtype=np.uint64))
        bases = self.space.step_bits(self.bases)
        possible = (bases | self.opens) & bits == bits
        bases, opens = bases[possible] | bits, self.opens[possible] & ~bits
        return Boxes(self.space, indices_of(bases, self.space), opens)

    def chosen(self, boxes: NDArray[np.int64] | NDArray[np.bool_]) -> Boxes:
        """Return some of the boxes."""
        return Boxes(self.space, self.bases[boxes], self.opens[boxes])
