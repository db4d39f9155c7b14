"""Exponentials by their series, and draws whose random numbers are written down beforehand."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from hypothesis import strategies as st

from pcor.mechanism.ordered_selection import Run

# Per check. 2 checks that must pass, 10,000 runs a year: one false alarm in 50,000 years. The
# noncentral chi-square puts the chance to miss 0.7 or 1.3 of epsilon below 1e-19 at our numbers of
# draws: 1e-25 for the releases, 7e-20 for lists.
FALSE_ALARM = 1e-9

Between = tuple[Fraction, Fraction]


def exp_minus(x: Fraction, precision: int) -> Between:
    """Return bounds on exp(-x): the series of exp(x / 2^k), squared k times, 1 over it.

    In units of 2^-precision, every step rounded down for the one and up for the other.
    """
    if x == 0:
        return Fraction(1), Fraction(1)
    squarings = max(0, (x.numerator // x.denominator).bit_length())
    one, y = 1 << precision, x / 2**squarings
    down = y.numerator * one // y.denominator
    up = down + 1
    low = high = low_term = high_term = one
    for n in itertools.count(1):
        low_term = low_term * down // (one * n)
        high_term = -(-high_term * up // (one * n))
        low, high = low + low_term, high + high_term
        if high_term <= 1:
            break
    high += 2  # y <= 1 and n >= 2: the rest of the series is less than twice its last term
    for _ in range(squarings):
        low, high = low * low // one, -(-high * high // one)
    return Fraction(one * one // high, one), Fraction(-(-one * one // low), one)


@dataclass
class Arriving:
    """Contexts by falling utility, valid or not, in batches; bounds as loose as wanted."""

    items: Sequence[tuple[int, bool]]
    batches: Sequence[int] = (1,)
    looseness: int = 0
    visited: int = 0
    advanced: int = 0

    @property
    def finished(self) -> bool:
        return self.visited >= len(self.items)

    def ranked(self) -> list[Run]:
        valid = [utility for utility, yes in self.items[: self.visited] if yes]
        return [Run(u, len(list(group))) for u, group in itertools.groupby(valid)]

    def remaining(self) -> list[Run]:
        return [
            Run(utility + self.looseness, 1 + self.looseness)
            for utility, _ in self.items[self.visited :]
        ]

    def advance(self) -> None:
        assert not self.finished
        self.visited += self.batches[self.advanced % len(self.batches)]
        self.advanced += 1


@dataclass
class Script:
    """Gives out the binary digits of one number, as many as asked for."""

    number: Fraction
    asked: list[int] = field(default_factory=list)

    def __call__(self, count: int) -> int:
        self.asked.append(count)
        scaled = self.number * count
        whole = scaled.numerator // scaled.denominator
        self.number = scaled - whole
        return whole

    @property
    def bits(self) -> int:
        return sum(count.bit_length() - 1 for count in self.asked)


def ends(utilities: Sequence[int], eta: Fraction, precision: int) -> list[Between]:
    """Return bounds on where each share of [0, Z) ends; utilities in the order of arrival."""
    known = {u: exp_minus(eta * (max(utilities) - u), precision) for u in set(utilities)}
    low = high = Fraction(0)
    found = []
    for utility in utilities:
        low, high = low + known[utility][0], high + known[utility][1]
        found.append((low, high))
    return found


def candidates(spread: int) -> st.SearchStrategy[list[tuple[int, bool]]]:
    item = st.tuples(st.integers(0, spread), st.booleans() | st.just(True))
    return st.lists(item, min_size=1, max_size=9).map(lambda items: sorted(items, reverse=True))
