"""The disclosure schedule: answers are shown at fixed moments, never when they are ready.

Private: how long a search took, because it depends on the rows. A question asked at time T has the
moments T + delay, T + 2 delay, T + 4 delay, ..., each rounded up to a multiple of the tick. All of
them are known before anything is drawn. An answer is shown at the first of them for which it was
drawn in time, with a while to spare in which it is stored. So whoever watches learns which of these
moments it was, and nothing finer: nothing at all where every search ends in time for the first, and
about log2(time / delay) possible outcomes where one does not. docs/explanation/attack-model.md says
what remains.
"""

from __future__ import annotations

# What is kept free before a moment for storing an answer: a quarter of the delay, within these
# bounds. Milliseconds.
LEAST_SPARE, MOST_SPARE = 50, 2000
# The part of it that must be left when the lock is had, so that the note is on the disk in time.
LEFT_PART = 5  # a fifth


def spare(delay: int) -> int:
    """Return how long before a moment an answer must be drawn to be seen at that moment.

    >>> spare(100), spare(5000), spare(60_000)
    (50, 1250, 2000)
    """
    return min(max(delay // 4, LEAST_SPARE), MOST_SPARE)


def rounded_up(moment: int, tick: int) -> int:
    """Return the first multiple of the tick that is not before a moment.

    >>> rounded_up(1001, 1000), rounded_up(2000, 1000)
    (2000, 2000)
    """
    return -(-moment // tick) * tick


def moment_for(asked: int, *, drawn: int, now: int, delay: int, tick: int) -> int:
    """Return the moment at which an answer will be seen.

    It follows from when the answer was drawn, unless storing it took longer than what is spare: how
    long others held the books is for those others to choose, and must decide nothing. And it is
    still to come, whatever happened.

    Args:
        asked: when the question was asked.
        drawn: when its answer was drawn.
        now: read while the lock is held under which the moment is written down.
        delay: from the question to the first moment.
        tick: of which all moments are multiples.

    >>> [moment_for(300, drawn=x, now=x, delay=2000, tick=1000) for x in (301, 2500, 2501)]
    [3000, 3000, 5000]
    >>> [moment_for(300, drawn=2500, now=x, delay=2000, tick=1000) for x in (2900, 2901)]
    [3000, 5000]
    """
    kept = spare(delay)
    return next_moment(
        asked, max(drawn + kept, now + kept // LEFT_PART) - 1, delay=delay, tick=tick
    )


def next_moment(asked: int, now: int, *, delay: int, tick: int) -> int:
    """Return the next moment at which it is worth looking.

    >>> next_moment(10_300, 13_000, delay=2000, tick=1000)
    15000
    """
    wait = delay
    while rounded_up(asked + wait, tick) <= now:
        wait *= 2
    return rounded_up(asked + wait, tick)
