"""The whole space of a record, judged block by block.

Private: everything here. The contexts of a record are walked in blocks that share their outer
levels: a block sees only the rows inside its outer levels, and the moments of all its contexts come
from one zeta transform. Memory is that of one block. Where subtrees can be settled at once
(``subtrees``) the verdicts on many blocks come from one walk, and only populations are summed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import accumulate
from math import prod
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypeVar

from pcor.detectors.context_block import BlockJudge, ContextBlock
from pcor.errors import others_code
from pcor.public.space import Indices, Space
from pcor.search.subtrees import Subtrees, subtrees
from pcor.search.validity import Validity
from pcor.support.arrays import NDArray, np
from pcor.support.threads import one_by_one

if TYPE_CHECKING:
    from pcor.rows.cells import Cells

# The largest space that is enumerated when nobody says otherwise; public. 2^24 contexts are some
# seconds of LOF on two cores.
ENUMERATION_LIMIT = 1 << 24

# Contexts that share their outer levels: 2^14 of them keep their moments in the processor's cache.
LARGEST_BLOCK = 1 << 14

# Contexts that one walk over subtrees judges, at a byte each.
LARGEST_WALK = 1 << 22

# Blocks that are judged before the first of them is handed out: half a megabyte each.
_TOGETHER = 32

Verdicts: TypeAlias = "NDArray[np.bool_]"
Made = TypeVar("Made")


def inner_chains(space: Space, largest: int | None = None) -> int:
    """Return how many chains vary inside a block: the first ones."""
    most = LARGEST_BLOCK if largest is None else largest
    sizes = accumulate(space.radices, int.__mul__)
    return max(1, sum(size <= most for size in sizes))


def block_size(space: Space, largest: int | None = None) -> int:
    """Return how many contexts a block of the space has."""
    return prod(space.radices[: inner_chains(space, largest)])


class Block(NamedTuple):
    """Some contexts by their indices: which are valid, and how many rows those cover."""

    indices: Indices
    valid: NDArray[np.bool_]
    populations: NDArray[np.int64]


def blocks(validity: Validity) -> Iterator[Block]:
    """Yield the verdicts and populations of a record's whole space, block by block."""
    return of_blocks(validity, lambda block: block)


def of_blocks(validity: Validity, make: Callable[[Block], Made]) -> Iterator[Made]:
    """Yield what is made of each block, on the core that judged it."""
    space = validity.record.space
    members = space.members
    if members is None:
        walk = subtrees(validity, space) if space.size > block_size(space) else None
        if walk is not None:
            yield from walked_blocks(validity, walk, make)
            return
        firsts = range(0, space.size, block_size(space))
        validity.read()  # before threads do
        together = _TOGETHER if validity.detector.has_kernel else 1
        yield from _side_by_side(
            firsts, together, lambda first: make(block(validity, space, first))
        )
        return
    for first in range(0, max(1, len(members)), LARGEST_BLOCK):
        indices = members[first : first + LARGEST_BLOCK]
        words = space.words_of(indices)
        populations = validity.table.cells.populations(words)
        yield make(Block(indices, validity.judge(validity.cells, words), populations))


def listed_size(space: Space) -> int:
    """Return how many contexts are judged to find all that are valid."""
    members = space.members
    return space.size if members is None else len(members)


def walked_blocks(
    validity: Validity, walk: Subtrees, make: Callable[[Block], Made]
) -> Iterator[Made]:
    """Yield what is made of blocks with verdicts from walks over subtrees.

    Populations are 0 in blocks without a valid context.
    """
    space, cells = walk.space, validity.table.cells
    size, walked = block_size(space), block_size(space, LARGEST_WALK)
    for start in range(0, space.size, walked):
        verdicts = walk.valid(start, walked)

        def judged(first: int, start: int = start, verdicts: Verdicts = verdicts) -> Made:
            valid = verdicts[first - start : first - start + size]
            populations = np.zeros(size, dtype=np.int64)
            indices = np.arange(first, first + size, dtype=np.uint64)
            if valid.any():
                populations = _populations(cells, space, first)
                valid = valid & (populations >= validity.detector.min_population)
            if space.schema.limited:
                valid[valid] = space.admitted(space.words_of(indices[valid]))
            return make(Block(indices, valid, populations))

        yield from _side_by_side(range(start, start + walked, size), _TOGETHER, judged)


def _side_by_side(firsts: range, together: int, judge: Callable[[int], Made]) -> Iterator[Made]:
    """Yield what is made of some indices in order, so many at a time on all cores."""
    for start in range(0, len(firsts), together):
        some = firsts[start : start + together]
        done: dict[int, Made] = {}

        def work(place: int, some: range = some, done: dict[int, Made] = done) -> None:
            done[place] = judge(some[place])

        one_by_one(len(some), work)
        yield from (done[place] for place in range(len(some)))


def _populations(cells: Cells, space: Space, first: int) -> NDArray[np.int64]:
    """Return how many rows each context of a block covers."""
    from pcor._kernels.coverage import covered_places
    from pcor._kernels.lattice import all_totals

    size = block_size(space)
    inside = covered_places(space.words(first + size - 1, first + size)[0], cells.cell_required)
    required = space.indices_of(cells.cell_required[inside]) % np.uint64(size)
    radices = np.array(space.radices[: inner_chains(space)], dtype=np.int64)
    totals: NDArray[np.int64] = all_totals(
        required.astype(np.int64), cells.cell_counts[inside], radices
    )
    return totals


def block(validity: Validity, space: Space, first: int) -> Block:
    """Judge the contexts of the block that starts at an index."""
    size = block_size(space)
    radices = np.array(space.radices[: inner_chains(space)], dtype=np.int64)
    contexts = ContextBlock(space, first, size, radices, validity.table.cells)
    judge = validity.block_judge
    valid, populations = (
        _by_moments(validity, contexts) if judge is None else _at_once(judge, validity, contexts)
    )
    return Block(np.arange(first, first + size, dtype=np.uint64), valid, populations)


def _at_once(
    judge: BlockJudge, validity: Validity, contexts: ContextBlock
) -> tuple[Verdicts, NDArray[np.int64]]:
    """Settle most contexts at once, and ask for the others one by one."""
    with others_code(f"the detector {validity.detector.name!r}"):
        valid, unsure, populations = judge(contexts)
    if len(unsure):
        inside = validity.cells.inside(contexts.largest)
        valid[unsure] = validity.judge(inside, contexts.words[unsure])
    if contexts.space.schema.limited:
        valid[valid] = contexts.space.admitted(contexts.words[valid])
    return valid, populations


def _by_moments(validity: Validity, contexts: ContextBlock) -> tuple[Verdicts, NDArray[np.int64]]:
    """Ask for each context, with the moments of all from one transform."""
    moments = contexts.totals(validity.cell_moments)
    inside = validity.cells.inside(contexts.largest)
    valid = validity.judge_members(inside, contexts.words, moments)
    return valid, moments[0].astype(np.int64)
