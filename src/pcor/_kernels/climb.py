"""Climbs to wide valid contexts: proposals, their guessed widths, and the step that follows.

Public: everything here but what ``step_up`` is told of validity. A context is a row of its steps
(``pcor.public.space``), zeros and ones; a guess gives every value a number of rows
(``pcor.search.guess``). Random numbers are SplitMix64's (Steele, Lea and Flood 2014) from a public
seed: neither secret nor good, the same on every machine.

Twins: ``tests.helpers.climb``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pcor._kernels import inlined, kernel, maker
from pcor._kernels.copies import copy_into

Array = Any

# Widths are products of this many attributes at a time: of at most 2^22 rows each.
_TOGETHER = 32

# Of so many tops each climber begins at the widest.
_RIVALS = 16

# How many slots a step has, on average at most: each has one, and those that pull have more.
_SLOTS = 8

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_ONE = np.uint64(1)


class ClimbSteps(NamedTuple):
    """The steps of a space, as climbers take them.

    Attributes:
        attribute: of each step.
        chains: where each chain of several begins and ends.
        starts: where the values of each step begin among the positions.
        positions: the values' bits.
        fixed: the record's own values, as words.
    """

    attribute: Array
    chains: Array
    starts: Array
    positions: Array
    fixed: Array


class Guesses(NamedTuple):
    """What climbers go by: for each guess the rows and the pull of each step, and own values' rows.

    A climber rather adds steps of a strong pull, and rather drops those of a weak one.
    """

    rows: Array
    pull: Array
    own: Array


class Climbers(NamedTuple):
    """Who climbs.

    Attributes:
        at: where each is.
        guess: which it goes by.
        height: the guessed width there.
        stuck: rounds without a step.
        arrived: whether it made any.
    """

    at: Array
    guess: Array
    height: Array
    stuck: Array
    arrived: Array


class Proposals(NamedTuple):
    """Of each proposal its steps, its words, its guessed width, and whose it is."""

    rows: Array
    words: Array
    widths: Array
    climbers: Array


@inlined
def uniform(state: Array) -> float:
    """Return the next number from 0 to 1, 1 not included."""
    state[0] += _GOLDEN
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return float((z ^ (z >> np.uint64(31))) >> np.uint64(11)) * 2.0**-53


@maker
def width(row: Array, steps: ClimbSteps, rows: Array, own: Array) -> float:
    """Return the logarithm of the rows of a context by a guess: attributes multiply, values add."""
    sums = own.copy()
    _add_rows(row, steps.attribute, rows, sums)
    return float(_width_of(sums))


@kernel
def _width_of(sums: Array) -> float:
    """Return the logarithm of the product of what the attributes have."""
    total, product = 0.0, 1.0
    for number in range(len(sums)):
        product *= sums[number]
        if number % _TOGETHER == _TOGETHER - 1:
            total += np.log(product)
            product = 1.0
    return total + float(np.log(product))


@kernel
def into_family(row: Array, chains: Array) -> None:
    """Make a context one of the family: of each chain as many steps as it has, from its start."""
    for chain in range(len(chains)):
        first, end = chains[chain]
        count = 0
        for place in range(first, end):
            count += row[place]
        for place in range(first, end):
            row[place] = place - first < count


@maker
def begin_anew(
    climbers: Climbers,
    steps: ClimbSteps,
    guesses: Guesses,
    tops: tuple[Array, Array],
    patience: int,
    state: Array,
) -> None:
    """Let climbers that were stuck for so many rounds begin anew; where they got to is a top.

    Args:
        climbers: who climbs.
        steps: what they climb.
        guesses: by what they go.
        tops: the latest tops, and how many there were and are.
        patience: how many rounds without a step are too many.
        state: of the random numbers.
    """
    at, _, _, stuck, arrived = climbers
    rows, counts = tops
    for climber in range(len(at)):
        if stuck[climber] >= patience and arrived[climber]:
            place = counts[0] % len(rows)
            rows[place] = at[climber]
            counts[0] += 1
            counts[1] = max(counts[1], place + 1)
    for climber in range(len(at)):
        if stuck[climber] >= patience:
            _begin(climber, climbers, steps, guesses, rows[: counts[1]], state)


@maker
def _begin(
    climber: int, climbers: Climbers, steps: ClimbSteps, guesses: Guesses, tops: Array, state: Array
) -> None:
    """Let a climber begin at the widest of a few tops, by a guess of its own, less some steps.

    What is left may not be valid; the first step is then to a wider context that is.
    """
    at, guess, height, stuck, arrived = climbers
    guess[climber] = int(uniform(state) * len(guesses.rows))
    rows, own = guesses.rows[guess[climber]], guesses.own[guess[climber]]
    best, widest = 0, -np.inf
    for _ in range(_RIVALS):
        rival = int(uniform(state) * len(tops))
        wide = width(tops[rival], steps, rows, own)
        if wide > widest:
            best, widest = rival, wide
    row, present = at[climber], 0
    for place in range(len(row)):
        row[place] = tops[best, place]
        present += row[place]
    # From one step to all of them, few more often than many.
    share = (present + 1.0) ** uniform(state) / max(present, 1)
    for place in range(len(row)):
        if row[place] and uniform(state) < share:
            row[place] = 0
    into_family(row, steps.chains)
    height[climber] = width(row, steps, rows, own)
    stuck[climber], arrived[climber] = 0, False


@maker
def propose(
    climbers: Climbers,
    steps: ClimbSteps,
    guesses: Guesses,
    dedupe: tuple[Array, Array],
    state: Array,
    out: Proposals,
) -> int:
    """Propose as many contexts from each climber as there are climbers; return how many remain.

    Steps are added, half the time some are dropped: from one to all that are missing, few more
    often than many; heavy ones are rather added and light ones rather dropped, by their pull. Those
    are kept that are wider by the climber's guess and were not tried before. Two contexts may share
    a place of the table; the second is then lost, which is harmless.
    """
    at, guess, height, _, _ = climbers
    tried, factors = dedupe
    attribute, chains = steps.attribute, steps.chains
    size, kept = at.shape[1], 0
    coming, going = np.empty(_SLOTS * size, np.int64), np.empty(_SLOTS * size, np.int64)
    logs = np.log(np.arange(1.0, size + 2.0))
    turned = np.empty(2 * size, np.int64)  # adds and drops of one proposal, some more than once
    at_words = np.empty(out.words.shape[1], np.uint64)
    for climber in range(len(at)):
        row, pull = at[climber], guesses.pull[guess[climber]]
        rows, own = guesses.rows[guess[climber]], guesses.own[guess[climber]]
        present = int(np.int64(row.sum()))  # of bytes: the sum is unsigned
        missing = size - present
        to_come = _slots(row, 0, pull, coming)
        to_go = _slots(row, 1, pull, going)
        at_sums, at_key = own.copy(), _key(row, factors)
        _add_rows(row, attribute, rows, at_sums)
        _words(row, steps, at_words)
        sums = at_sums.copy()
        for _ in range(len(at)):
            new = out.rows[kept]
            copy_into(new, row)
            copy_into(sums, at_sums)
            key, turns = at_key, 0
            adds = int(np.exp(uniform(state) * logs[missing]))
            for _ in range(adds if missing > 0 else 0):
                step = coming[int(uniform(state) * to_come)]
                if not new[step]:
                    new[step] = 1
                    sums[attribute[step]] += rows[step]
                    key += factors[step]
                    turned[turns] = step
                    turns += 1
            if uniform(state) < 0.5:
                drops = int(np.exp(uniform(state) * logs[min(present, adds)]))
                for _ in range(drops if present > 0 else 0):
                    step = going[int(uniform(state) * to_go)]
                    if new[step]:
                        new[step] = 0
                        sums[attribute[step]] -= rows[step]
                        key -= factors[step]
                        turned[turns] = step
                        turns += 1
            if len(chains):
                into_family(new, chains)
                key = _key(new, factors)
                copy_into(sums, own)
                _add_rows(new, attribute, rows, sums)
            wide = _width_of(sums)
            if wide > height[climber] + 1e-9 and _is_new(key, tried):
                words = out.words[kept]
                if len(chains):
                    _words(new, steps, words)
                else:
                    copy_into(words, at_words)
                    _turn(turned[:turns], steps, words)
                out.widths[kept], out.climbers[kept] = wide, climber
                kept += 1
    return kept


@kernel
def _add_rows(row: Array, attribute: Array, rows: Array, sums: Array) -> None:
    """Add the rows of a context's steps to those of the own values: whole numbers, so exactly."""
    for place in range(len(row)):
        if row[place]:
            sums[attribute[place]] += rows[place]


@kernel
def _key(row: Array, factors: Array) -> Any:
    """Return a number that tells a context apart."""
    key = np.uint64(0)
    for place in range(len(row)):
        key += factors[place] * np.uint64(row[place])
    return key


@kernel
def _slots(row: Array, kind: int, pull: Array, slots: Array) -> int:
    """Fill slots with the steps that are missing (0) or present (1); return how many slots.

    Each step has one, and more by its pull: a slot drawn at random is a step drawn by its pull.
    """
    total, size = 0.0, 0
    for place in range(len(row)):
        if row[place] == kind:
            total += 1.0 / pull[place] if kind else pull[place]
    for place in range(len(row)):
        if row[place] == kind:
            some = 1.0 / pull[place] if kind else pull[place]
            for _ in range(1 + int(some / total * (_SLOTS - 1) * len(row))):
                slots[size] = place
                size += 1
    return size


@kernel
def _is_new(key: int, tried: Array) -> bool:
    """Tell whether a context was not tried before, and note it; the table is a power of 2 long."""
    bit = (key >> np.uint64(16)) & np.uint64(64 * len(tried) - 1)
    word, mask = bit >> np.uint64(6), _ONE << (bit & np.uint64(63))
    new = tried[word] & mask == 0
    tried[word] |= mask
    return bool(new)


@kernel
def _words(row: Array, steps: ClimbSteps, out: Array) -> None:
    """Write a context as 64-bit words."""
    starts, positions = steps.starts, steps.positions
    for word in range(len(out)):
        out[word] = steps.fixed[word]
    for place in range(len(row)):
        if row[place]:
            for number in range(starts[place], starts[place + 1]):
                position = positions[number]
                out[position >> 6] |= _ONE << np.uint64(position & 63)


@kernel
def _turn(turned: Array, steps: ClimbSteps, words: Array) -> None:
    """Turn the values of some steps in a context's words, one after the other."""
    starts, positions = steps.starts, steps.positions
    for step in turned:
        for number in range(starts[step], starts[step + 1]):
            position = positions[number]
            words[position >> 6] ^= _ONE << np.uint64(position & 63)


@kernel
def step_up(climbers: Climbers, proposals: Proposals, valid: Array) -> None:
    """Let every climber step to its widest valid proposal; the first of equals."""
    at, _, height, stuck, arrived = climbers
    for climber in range(len(at)):
        stuck[climber] += 1
    for number in range(len(valid)):
        climber = proposals.climbers[number]
        if valid[number] and proposals.widths[number] > height[climber]:
            height[climber] = proposals.widths[number]
            stuck[climber], arrived[climber] = 0, True
            for place in range(at.shape[1]):
                at[climber, place] = proposals.rows[number, place]


@maker
def usual_widths(masks: Array, attribute: Array, rows: Array, out: Array) -> None:
    """Return the widths of contexts as words by one guess of the rows of each value."""
    sums = np.empty(attribute[-1] + 1)
    for number in range(len(masks)):
        sums[:] = 0.0
        for place in range(len(rows)):
            if masks[number, place >> 6] >> np.uint64(place & 63) & _ONE:
                sums[attribute[place]] += rows[place]
        out[number] = _width_of(sums)
