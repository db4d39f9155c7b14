"""The whole space of a record, judged block by block.

Private: everything here. The 2^(t-m) contexts of a record are walked in blocks that share their
outer bits: a block sees only the rows inside its outer bits, and the moments of all its contexts
come from one zeta transform. Memory is that of one block.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pcor.public.context import Space
from pcor.search.validity import Validity

# The largest space that is enumerated when nobody says otherwise; public. 2^24 contexts are half a
# minute of LOF on two cores.
ENUMERATION_LIMIT = 1 << 24

# Contexts that share their outer bits: 2^14 of them keep their moments in the processor's cache.
BLOCK_BITS = 14


class Block(NamedTuple):
    """The contexts of index ``first`` on: which are valid, and how many rows each covers."""

    first: int
    valid: NDArray[np.bool_]
    populations: NDArray[np.int64]


def blocks(validity: Validity) -> Iterator[Block]:
    """Yield the verdicts and populations of a record's whole space, block by block."""
    space = validity.record.space
    for first in range(0, space.size, 1 << BLOCK_BITS):
        yield block(validity, space, first)


def block(validity: Validity, space: Space, first: int) -> Block:
    """Judge the 2^14 contexts (or the whole of a smaller space) from one that starts a block."""
    from pcor._kernels.lattice import block_totals

    bits = min(len(space.free), BLOCK_BITS)
    inner = space.words(0, 1 << bits)
    shared = space.words(first, first + 1)[0]
    inside = validity.cells.inside(shared | inner[-1])
    required = space.indices_of(inside.cell_required) & np.uint64((1 << bits) - 1)
    weights = validity.cell_moments[:, inside.cell_numbers]
    moments = np.zeros((len(weights), 1 << bits))
    block_totals(required, weights, moments)
    valid = validity.judge(inside, inner | shared, moments)
    return Block(first, valid, moments[0].astype(np.int64))
