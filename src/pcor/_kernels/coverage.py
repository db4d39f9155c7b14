"""Which cells and pairs does a context cover, and how many rows are that?"""

from __future__ import annotations

from typing import Any

import numpy as np

from pcor._kernels import inlined, kernel, maker

Array = Any

# The required bits of each pair, its metric, rising, and its rows. A plain tuple: a named one takes
# several microseconds to be recognised at each call.
PairColumns = tuple[Array, Array, Array]

# How many cells are summed together.
_TOGETHER = 512


@inlined
def covers(mask: Array, required: Array, place: int) -> bool:
    """Tell whether a context has all required bits of a cell."""
    # Word by word, without a temporary array: this is the innermost loop of nearly all kernels.
    for word in range(required.shape[1]):  # noqa: SIM110 (compiled)
        if required[place, word] & ~mask[word]:
            return False
    return True


@inlined
def missing_bits(mask: Array, required: Array, place: int) -> int:
    """Return how many of its needed bits a cell misses in a context; 2 stands for more."""
    count = 0
    for word in range(required.shape[1]):
        left = required[place, word] & ~mask[word]
        while left:
            # Clears the lowest set bit. Counting stops at 2: callers only ask for none, one or
            # more.
            left &= left - np.uint64(1)
            count += 1
            if count == 2:
                return 2
    return count


@maker
def totals(masks: Array, required: Array, weights: Array, out: Array) -> None:
    """Sum the weights of the covered cells, for each context.

    Twin: ``tests.helpers.naive.total``. With counts as weights this is the population.
    """
    out[:] = 0
    columns = np.empty((required.shape[1], _TOGETHER), np.uint64)
    missing = np.empty(_TOGETHER, np.uint64)
    for first in range(0, len(required), _TOGETHER):
        # Some cells at a time, word by word: they stay in the nearest cache while all contexts
        # pass, and what a context lacks of them is found without a branch.
        size = min(_TOGETHER, len(required) - first)
        for cell in range(size):
            for word in range(len(columns)):
                columns[word, cell] = required[first + cell, word]
        for row in range(len(masks)):
            missing[:] = 0
            for word in range(len(columns)):
                outside = ~masks[row, word]
                for cell in range(size):
                    missing[cell] |= columns[word, cell] & outside
            total = 0
            for cell in range(size):
                total += weights[first + cell] if missing[cell] == 0 else 0
            out[row] += total


@maker
def people_totals(
    masks: Array, required: Array, starts: Array, cells: Array, counts: Array, out: Array
) -> None:
    """Count the people with a row in a covered cell, for each context.

    Twin: ``tests.helpers.naive.people``. People whose rows are in the same cells are counted
    together: those of group g have the cells from ``starts[g]`` up to ``starts[g + 1]``.
    """
    covered = np.empty(len(required), dtype=np.bool_)
    for row in range(len(masks)):
        for cell in range(len(required)):
            covered[cell] = covers(masks[row], required, cell)
        total = 0
        for group in range(len(counts)):
            for place in range(starts[group], starts[group + 1]):
                if covered[cells[place]]:
                    total += counts[group]
                    break
        out[row] = total


@kernel
def place_sums(places: Array, adds: Array, out: Array) -> None:
    """Sum what the places of each row add, as one number for each row."""
    for row in range(len(places)):
        total = out[row]
        for place in places[row]:
            total += adds[place]
        out[row] = total


@kernel
def cell_totals(masks: Array, required: Array, weights: Array, out: Array) -> None:
    """Sum several weights of the covered cells, for each context: shape (kinds, contexts)."""
    for row in range(len(masks)):
        for kind in range(len(weights)):
            out[kind, row] = 0.0
        for cell in range(len(required)):
            if covers(masks[row], required, cell):
                # The test is the expensive part, so it is made once for all kinds.
                for kind in range(len(weights)):
                    out[kind, row] += weights[kind, cell]


@maker
def nearest_places(cells: Array, counts: Array, at: int, wanted: int, size: int) -> Array:
    """Return the pairs that hold the nearest rows of each cell on each side of a place.

    Walks outward until every cell has ``wanted`` rows on that side; pairs from ``at`` on belong to
    the upper side.
    """
    # Every kept pair has at least one row, so a cell keeps at most ``wanted`` pairs on a side.
    kept = np.empty(min(2 * wanted * size, len(cells)), np.int64)
    count = below = 0
    for step in (-1, 1):
        below = count  # once the lower side is done
        have = np.zeros(size, np.int64)
        open_cells = size
        pair = at if step == 1 else at - 1
        # ``open_cells`` ends the walk as soon as no cell needs more, usually long before the end.
        while 0 <= pair < len(cells) and open_cells > 0:
            cell = cells[pair]
            if have[cell] < wanted:
                kept[count] = pair
                count += 1
                # A pair is kept whole, also where fewer of its rows would do.
                have[cell] += counts[pair]
                if have[cell] >= wanted:
                    open_cells -= 1
            pair += step
    # The lower side was walked downward; reversed, all places rise.
    return np.concatenate((kept[:below][::-1], kept[below:count]))


@maker
def neighbour_totals(
    mask: Array, required: Array, places: Array, weights: Array, width: int
) -> tuple[Array, Array]:
    """Return the summed weights of what a context covers, and what each one-bit flip would change.

    One pass: a cell that misses nothing counts for every neighbour but those that drop one of its
    values, one that misses a single value for the neighbour that adds it.

    Args:
        mask: the context.
        required: the required bits of each cell.
        places: the positions of those bits, one column per attribute.
        weights: the weights of each cell, one row per kind.
        width: how many positions there are.
    """
    changes = np.zeros((len(weights), width), weights.dtype)
    whole = np.zeros(len(weights), weights.dtype)
    for cell in range(len(required)):
        missing = missing_bits(mask, required, cell)
        # No neighbour that differs in one bit covers it.
        if missing > 1:
            continue
        for kind in range(len(weights)):
            weight = weights[kind, cell]
            if missing == 0:
                whole[kind] += weight
            for column in range(places.shape[1]):
                place = places[cell, column]
                # Dropping any of its values uncovers the cell. (Adding a value never does.)
                if missing == 0:
                    changes[kind, place] -= weight
                # The one missing value: its neighbour covers the cell, too.
                elif not mask[place // 64] >> np.uint64(place % 64) & np.uint64(1):
                    changes[kind, place] += weight
    return whole, changes


@maker
def covered_places(mask: Array, required: Array) -> Array:
    """Return the places that a context covers."""
    kept = np.empty(len(required), np.int64)
    count = 0
    for place in range(len(required)):
        # Written always, kept only if the count moves on: no branch to mispredict.
        kept[count] = place
        count += covers(mask, required, place)
    # A copy, so that the buffer for all places is not kept alive by a short result.
    return kept[:count].copy()


@maker
def nearly_covered_places(mask: Array, required: Array) -> Array:
    """Return the places that miss at most one bit: all that any one-bit neighbour can cover."""
    kept = np.empty(len(required), np.int64)
    count = 0
    for place in range(len(required)):
        kept[count] = place
        count += missing_bits(mask, required, place) < 2
    return kept[:count].copy()
