"""LOF of every record in every context.

Source: Breunig et al. 2000, as ``pcor.detectors.lof`` states it (exactly k neighbours, lower values
first); its ``LOF.verdicts`` is the twin, equal to the last bit because both add the same terms in
the same order.

Here the loops are turned inside out, as the twin's are: for each distance in places, one run over
all records in rising order. Such a run has no branches and reads its numbers one after the other,
so the compiler handles several records with one instruction. Beyond both ends stand infinite
values, which are nobody's neighbours.

The second sum is spared to nearly everybody: a factor is at most the record's mean reachability
distance over the smallest of its neighbours'.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pcor._kernels import kernel, maker
from pcor._kernels.every_context import begin, step, with_room
from pcor._kernels.lof import PILE

Array = Any

# As many records at a time as keep their numbers in the processor's nearest cache.
STRIP = 512

# Relative; rounding moves a factor by less than 1e-13.
MARGIN = 1e-9

# Places are taken four at a time, so there are up to three more than the k on each side.
PADDING = 4


@maker
def lof_in_contexts(
    bits: Array,
    changed: Array,
    codes: Array,
    values: Array,
    rule: tuple[int, float, int],
    populations: Array,
    ends: Array,
) -> Array:
    """Judge as many contexts as there is room for; return the places of all outliers.

    Args:
        bits: of each context, as ``every_context.step`` takes them.
        changed: the slowest attribute in which each differs from the one before it.
        codes: as ``every_context.begin`` takes them, the rows by rising metric.
        values: the metric of each row, rising.
        rule: k, the threshold, and the smallest population.
        populations: filled with the rows of each context.
        ends: filled with the number of outliers up to and with each context.
    """
    k, threshold, smallest = rule
    kept, sizes = begin(codes)
    # One workspace for all contexts: allocating for each would cost more than judging it.
    work = np.empty((5, len(values) + 2 * (k + PADDING)))
    # The k-distances of the infinite values beyond the ends: never counted, but they are read.
    work[1] = 0.0
    places = np.empty((2, len(values)), np.int32)
    found, used = np.empty(1024, np.int32), 0
    for number in range(len(populations)):
        own = step(bits[number], changed[number], codes, kept, sizes)
        populations[number] = len(own)
        # With no more rows than k, nobody has k neighbours.
        if len(own) > k and len(own) >= smallest:
            found = with_room(found, used, len(own))
            used = _judge(own, values, k, threshold, work, places, found, used)
        ends[number] = used
    return found[:used].copy()


@kernel
def _judge(
    own: Array,
    values: Array,
    k: int,
    threshold: float,
    work: Array,
    places: Array,
    found: Array,
    used: int,
) -> int:
    """Append the outliers of one context; return how many there are now.

    ``work`` has room for the values between infinite ones, their k-distances, the means, where the
    windows start (and later the minima onward), and the minima so far.
    """
    firsts, starts = places
    n = _gather(own, values, k, work[0], firsts)
    x, mean, onward, so_far = work[0, k + PADDING :][:n], work[2, :n], work[3], work[4]
    _find_windows(work[0], n, k, starts, work[2])
    for p in range(n):
        start = starts[p]
        work[1, k + PADDING + p] = max(x[p] - x[start], x[start + k] - x[p])
        # As a float, relative to the record: the sums below compare it without a conversion.
        work[3, p] = start - p
    _mean_reach(work[0], work[1], work[3], k, mean)
    _block_minima(mean, k + 1, onward, so_far)
    for p in range(n):
        # The window of k+1 places touches at most two blocks, so two minima give its own.
        least = min(onward[starts[p]], so_far[starts[p] + k])
        # Hardly anybody passes this bound. Equal rows have one verdict: only the first is computed.
        if mean[p] > threshold * (1 - MARGIN) * least and (p == 0 or x[p] != x[p - 1]):
            around = 0.0
            for o in range(starts[p], starts[p] + k + 1):
                if o != p:
                    around += 1.0 / mean[o]
            if around / k / (1.0 / mean[p]) > threshold:
                place = firsts[p]
                while place < len(own) and values[own[place]] == x[p]:
                    found[used] = own[place]
                    used += 1
                    place += 1
    return used


@kernel
def _gather(own: Array, values: Array, k: int, padded: Array, firsts: Array) -> int:
    """Fill in the metric of the covered rows and where each is among them; return how many.

    More than k+1 equal ones change nothing and are left out.
    """
    x, n = padded[k + PADDING :], len(own)
    for place in range(n):
        x[place] = values[own[place]]
        firsts[place] = place
    later, repeated = x[k + 1 : n], 0
    for place in range(len(later)):
        repeated += later[place] == x[place]
    # Only then is this slower loop needed; the one above, which finds out, has no branches.
    if repeated:
        n = 0
        for place in range(len(own)):
            x[n], firsts[n] = x[place], place
            # Overwrites in place: n never gets ahead of the place that is read.
            n += not (n > k and x[n - k - 1] == x[n])
    padded[: k + PADDING] = -np.inf
    x[n : n + k + PADDING] = np.inf
    return n


@kernel
def _find_windows(padded: Array, n: int, k: int, starts: Array, moved: Array) -> None:
    """Fill in where the k+1 nearest of each record start.

    They are a window, k places below it at the lowest; the window moves up while the next above is
    nearer than its lowest. The farther it moved the less that holds, so it moves by as many places
    as there are at which it holds.
    """
    for begin_at in range(0, n, STRIP):
        size = min(STRIP, n - begin_at)
        here, count = padded[begin_at + k + PADDING :], moved[:size]
        count[:] = 0.0
        left, right = padded[begin_at + PADDING :], padded[begin_at + k + PADDING + 1 :]
        # The order of counting does not matter, so whole fours come first and the rest after them.
        for shift in range(0, k - k % 4, 4):
            _count_four(here, left[shift:], right[shift:], count)
        for shift in range(k - k % 4, k):
            _count_one(here, left[shift:], right[shift:], count)
        strip = starts[begin_at:]
        for i in range(size):
            strip[i] = begin_at + i - k + np.int32(count[i])


@kernel
def _count_four(here: Array, left: Array, right: Array, count: Array) -> None:
    """Count four moves at once, which saves three of four visits to ``here`` and ``count``."""
    left1, left2, left3 = left[1:], left[2:], left[3:]
    right1, right2, right3 = right[1:], right[2:], right[3:]
    for i in range(len(count)):
        x = here[i]
        count[i] += (
            np.float64(right[i] - x < x - left[i])
            + np.float64(right1[i] - x < x - left1[i])
            + np.float64(right2[i] - x < x - left2[i])
            + np.float64(right3[i] - x < x - left3[i])
        )


@kernel
def _count_one(here: Array, left: Array, right: Array, count: Array) -> None:
    for i in range(len(count)):
        count[i] += np.float64(right[i] - here[i] < here[i] - left[i])


@kernel
def _mean_reach(padded: Array, distances: Array, lowest: Array, k: int, mean: Array) -> None:
    """Fill in the mean reachability distance of each record, with the pile's 1e-10.

    From the lowest neighbour to the highest, as the twin adds them.

    Args:
        padded: the values, between infinite ones.
        distances: their k-distances, likewise.
        lowest: how many places below a record its window starts, as a negative number.
        k: how many neighbours there are.
        mean: to be filled.
    """
    for begin_at in range(0, len(mean), STRIP):
        size = min(STRIP, len(mean) - begin_at)
        at = begin_at + k + PADDING
        here, first, total = padded[at:], lowest[begin_at:], mean[begin_at:][:size]
        total[:] = 0.0
        # Fours that end at the record: the first may begin below its window, where ``first`` rules
        # the places out.
        for shift in range(-k - (-k) % 4, 0, 4):
            other = at + shift
            _add_lower(here, padded[other:], distances[other:], first, float(shift), total)
        # Fours that begin above the record: places beyond the window are ruled out likewise.
        for shift in range(1, k + 1, 4):
            other = at + shift
            _add_upper(here, padded[other:], distances[other:], first, float(shift - k), total)
        for i in range(size):
            total[i] = total[i] / k + PILE


@kernel
def _add_lower(
    here: Array, others: Array, distances: Array, first: Array, shift: float, total: Array
) -> None:
    """Add the reachability distances of those ``shift`` places away and three more above."""
    others1, others2, others3 = others[1:], others[2:], others[3:]
    distances1, distances2, distances3 = distances[1:], distances[2:], distances[3:]
    for i in range(len(total)):
        x, reach = here[i], total[i]
        reach += _reach(x - others[i], distances[i], first[i] <= shift)
        reach += _reach(x - others1[i], distances1[i], first[i] <= shift + 1)
        reach += _reach(x - others2[i], distances2[i], first[i] <= shift + 2)
        reach += _reach(x - others3[i], distances3[i], first[i] <= shift + 3)
        total[i] = reach


@kernel
def _add_upper(
    here: Array, others: Array, distances: Array, first: Array, shift: float, total: Array
) -> None:
    """Do the same above the record, where a window that starts high enough has them."""
    others1, others2, others3 = others[1:], others[2:], others[3:]
    distances1, distances2, distances3 = distances[1:], distances[2:], distances[3:]
    for i in range(len(total)):
        x, reach = here[i], total[i]
        reach += _reach(others[i] - x, distances[i], first[i] >= shift)
        reach += _reach(others1[i] - x, distances1[i], first[i] >= shift + 1)
        reach += _reach(others2[i] - x, distances2[i], first[i] >= shift + 2)
        reach += _reach(others3[i] - x, distances3[i], first[i] >= shift + 3)
        total[i] = reach


@kernel
def _reach(apart: float, distance: float, inside: bool) -> float:
    """Return the reachability distance of a neighbour, nothing for anybody else."""
    # Both branches compile to selections; adding 0.0 changes no sum, so the order is the twin's.
    farther = apart if apart > distance else distance
    return farther if inside else 0.0


@kernel
def _block_minima(mean: Array, width: int, onward: Array, so_far: Array) -> None:
    """Fill in minima from each place to the end of its block, and from the block's start to it.

    The smallest of any ``width`` in a row is then the smaller of two (van Herk 1992).
    """
    n = len(mean)
    for begin_at in range(0, n, width):
        end = min(begin_at + width, n)
        least = mean[begin_at]
        for place in range(begin_at, end):
            least = min(least, mean[place])
            so_far[place] = least
        least = mean[end - 1]
        for place in range(end - 1, begin_at - 1, -1):
            least = min(least, mean[place])
            onward[place] = least
