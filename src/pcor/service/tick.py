"""When an answer may be seen: at fixed moments after the question, never when it is ready.

Private: how long a search took, because it depends on the rows. A question asked at time T has the
moments T + delay, T + 2 delay, T + 4 delay, ..., each rounded up to a multiple of the tick. All of
them are known before anything is drawn. An answer is shown at the first of them that comes after
it was stored. So whoever watches learns which of these moments it was, and nothing finer: nothing
at all where every search ends within the delay, and about log2(time / delay) possible outcomes
where one does not. docs/how-to/service.md says what remains.
"""

from __future__ import annotations

# An answer that is stored this shortly before a moment waits for the next one, so that the note
# that it may be shown is on the disk in time. Milliseconds.
MARGIN = 50


def rounded_up(moment: int, tick: int) -> int:
    """Return the first multiple of the tick that is not before a moment.

    >>> rounded_up(1001, 1000), rounded_up(2000, 1000)
    (2000, 2000)
    """
    return -(-moment // tick) * tick


def moment_for(asked: int, ready: int, *, delay: int, tick: int) -> int:
    """Return the moment at which an answer that is ready will be seen.

    >>> [moment_for(10_300, ready, delay=2000, tick=1000) for ready in (10_301, 12_900, 13_100)]
    [13000, 13000, 15000]
    """
    return next_moment(asked, ready + MARGIN - 1, delay=delay, tick=tick)


def next_moment(asked: int, now: int, *, delay: int, tick: int) -> int:
    """Return the next moment at which it is worth looking.

    >>> next_moment(10_300, 13_000, delay=2000, tick=1000)
    15000
    """
    wait = delay
    while rounded_up(asked + wait, tick) <= now:
        wait *= 2
    return rounded_up(asked + wait, tick)
