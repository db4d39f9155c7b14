"""The whole space of a record, judged block by block.

Private: everything here. The contexts of a record are walked in blocks that share their outer
levels: a block sees only the rows inside its outer levels, and the moments of all its contexts come
from one zeta transform. Memory is that of one block.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from math import prod
from typing import NamedTuple

from pcor.public.space import Indices, Space
from pcor.search.validity import Validity
from pcor.support.arrays import NDArray, np

# The largest space that is enumerated when nobody says otherwise; public. 2^24 contexts are half a
# minute of LOF on two cores.
ENUMERATION_LIMIT = 1 << 24

# Contexts that share their outer levels: 2^14 of them keep their moments in the processor's cache.
LARGEST_BLOCK = 1 << 14


def inner_chains(space: Space) -> int:
    """Return how many chains vary inside a block: the first ones."""
    sizes = accumulate(space.radices, int.__mul__)
    return max(1, sum(size <= LARGEST_BLOCK for size in sizes))


def block_size(space: Space) -> int:
    """Return how many contexts a block of the space has."""
    return prod(space.radices[: inner_chains(space)])


class Block(NamedTuple):
    """Some contexts by their indices: which are valid, and how many rows each covers."""

    indices: Indices
    valid: NDArray[np.bool_]
    populations: NDArray[np.int64]


def blocks(validity: Validity) -> Iterator[Block]:
    """Yield the verdicts and populations of a record's whole space, block by block."""
    space = validity.record.space
    members = space.members
    if members is None:
        for first in range(0, space.size, block_size(space)):
            yield block(validity, space, first)
        return
    for first in range(0, max(1, len(members)), LARGEST_BLOCK):
        indices = members[first : first + LARGEST_BLOCK]
        words = space.words_of(indices)
        populations = validity.table.cells.populations(words)
        yield Block(indices, validity.judge(validity.cells, words), populations)


def listed_size(space: Space) -> int:
    """Return how many contexts are judged to find all that are valid."""
    members = space.members
    return space.size if members is None else len(members)


def block(validity: Validity, space: Space, first: int) -> Block:
    """Judge the contexts of the block that starts at an index."""
    from pcor._kernels.lattice import block_totals

    size = block_size(space)
    inner = space.words(0, size)
    shared = space.words(first, first + 1)[0]
    inside = validity.cells.inside(shared | inner[-1])
    required = space.indices_of(inside.cell_required) % np.uint64(size)
    weights = validity.cell_moments[:, inside.cell_numbers]
    moments = np.zeros((len(weights), size))
    radices = np.array(space.radices[: inner_chains(space)], dtype=np.int64)
    block_totals(required, radices, weights, moments)
    valid = validity.judge_members(inside, inner | shared, moments)
    indices = np.arange(first, first + size, dtype=np.uint64)
    return Block(indices, valid, moments[0].astype(np.int64))
