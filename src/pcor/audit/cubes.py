"""Sets of contexts, written as cubes and listed only when somebody asks.

Private: which contexts are in a set. A cube is a base and some open bits: every filling of those
bits is a context of the set. The sets of the exposure audit can have millions of contexts and few
cubes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.uint64]


@dataclass(frozen=True, eq=False, repr=False)
class Cubes:
    """A set of contexts: every base with every filling of its open bits.

    Attributes:
        bases: indices in the record's ``Space``, without the open bits.
        opens: the open bits of each base. No two cubes of a set share a context.
    """

    bases: Indices
    opens: Indices

    @classmethod
    def of(cls, indices: Indices) -> Cubes:
        """Return a set of single contexts."""
        return cls(indices, np.zeros(len(indices), dtype=np.uint64))

    def __len__(self) -> int:
        """Return how many contexts there are, without listing them."""
        from pcor._kernels.cubes import cube_sizes

        return int(cube_sizes(self.opens).sum())

    def indices(self) -> Indices:
        """Return the contexts as rising indices."""
        from pcor._kernels.cubes import cube_members

        members = np.empty(len(self), dtype=np.uint64)
        cube_members(self.bases, self.opens, members)
        members.sort()
        return members

    def with_bits(self, required: int) -> Cubes:
        """Return the contexts of this set that have all of the required bits."""
        bits = np.uint64(required)
        possible = (self.bases | self.opens) & bits == bits
        return Cubes(self.bases[possible] | bits, self.opens[possible] & ~bits)

    def chosen(self, cubes: NDArray[np.int64] | NDArray[np.bool_]) -> Cubes:
        """Return some of the cubes."""
        return Cubes(self.bases[cubes], self.opens[cubes])
