"""Tables that say what contexts weigh (``_kernels.total_table``), of a size that is bounded.

Private: the weights. Which steps are inner follows from what cells need.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pcor.public.space import Indices, Space
from pcor.support.arrays import NDArray, np

if TYPE_CHECKING:
    from pcor._kernels.total_table import TotalTable

# Entries of a table, of 8 bytes each; and so few groups that fewer would not be faster.
_LARGEST_TABLE = 1 << 22
_FEW_GROUPS = 64


def inner_steps(space: Space, required: Indices) -> int:
    """Return which steps of a space are looked up, as bits: those of some attributes.

    Where they are few a lookup saves most: an attribute of s steps doubles the table s times, and
    leaves a group of cells where there were s + 1.
    """
    of_attribute: dict[int, int] = {}
    first = 0
    for one in space.chains:
        bits = ((1 << len(one.steps)) - 1) << first
        of_attribute[one.attribute] = of_attribute.get(one.attribute, 0) | bits
        first += len(one.steps)
    inner = 0
    for bits in sorted(of_attribute.values(), key=int.bit_count):
        more = inner | bits
        groups = len(np.unique(required & np.uint64(~inner & (1 << 64) - 1)))
        if groups <= _FEW_GROUPS or groups << more.bit_count() > _LARGEST_TABLE:
            break  # the groups of the larger set are no more, and are seldom far fewer
        inner = more
    return inner


def total_table(space: Space, required: Indices, weights: NDArray[np.int64]) -> TotalTable:
    """Return the table of some cells, given the steps that each needs and its weight."""
    from pcor._kernels import total_table as kernels

    inner = inner_steps(space, required)
    outer, groups = np.unique(required & np.uint64(~inner & (1 << 64) - 1), return_inverse=True)
    bits = [1 << place for place in range(inner.bit_length()) if inner >> place & 1]
    table: TotalTable = kernels.total_table(
        np.array(bits, dtype=np.uint64), outer, required, groups.ravel(), weights
    )
    return table
