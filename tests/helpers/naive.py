"""Slow, obvious twins of everything fast: plain loops, other people's libraries, exact fractions.

Nothing here imports pcor. A twin answers ``True``, ``False``, or ``None`` where rounding decides:
within ``ROUNDING`` of its threshold, or on the edge of a bin in floating point.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy import stats
from sklearn.neighbors import LocalOutlierFactor

# Relative. Float64 errors of our sums are below 1e-12, so a verdict outside it must be right.
ROUNDING = 1e-9

Answer = bool | None
Rule = Callable[[Sequence[float]], list[Answer]]
Domains = Sequence[Sequence[str]]
Row = tuple[str, ...]  # one value per attribute


# -- contexts and COE -----------------------------------------------------------------------------


def subsets(values: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield every subset but the empty one."""
    for size in range(1, len(values) + 1):
        yield from itertools.combinations(values, size)


def contexts(domains: Domains) -> Iterator[tuple[tuple[str, ...], ...]]:
    """Yield every context: at least one value per attribute."""
    yield from itertools.product(*(subsets(values) for values in domains))


def mask(domains: Domains, context: Sequence[Sequence[str]]) -> int:
    """Write a context as a number: bit j for the j-th value, attribute after attribute."""
    bits = [
        value in chosen for values, chosen in zip(domains, context, strict=True) for value in values
    ]
    return sum(2**place for place, bit in enumerate(bits) if bit)


def covers(context: Sequence[Sequence[str]], row: Row) -> bool:
    return all(value in chosen for value, chosen in zip(row, context, strict=True))


class COE(NamedTuple):
    """The valid contexts of a record with their populations, and those where rounding decides."""

    populations: dict[int, int]
    undecided: set[int]


def coe(
    domains: Domains,
    rows: Sequence[Row],
    metric: Sequence[float],
    record: int,
    rule: Rule,
    *,
    min_population: int,
) -> COE:
    """Try every context there is."""
    found = COE({}, set())
    for context in contexts(domains):
        if not covers(context, rows[record]):
            continue
        population = [i for i, row in enumerate(rows) if covers(context, row)]
        if len(population) < min_population:
            continue
        answer = rule([metric[i] for i in population])[population.index(record)]
        if answer is None:
            found.undecided.add(mask(domains, context))
        elif answer:
            found.populations[mask(domains, context)] = len(population)
    return found


# -- exact numbers --------------------------------------------------------------------------------


def whole_numbers(population: Sequence[float]) -> tuple[list[int], int]:
    """Write every number as so many times 1/unit, exactly, and return the unit as well.

    Every float is a whole number over a power of two. Whole numbers are added and compared many
    times faster than fractions.
    """
    ratios = [value.as_integer_ratio() for value in population]
    unit = max(denominator for _, denominator in ratios)
    return [numerator * (unit // denominator) for numerator, denominator in ratios], unit


# -- local outlier factor -------------------------------------------------------------------------


def lof_factors(population: Sequence[float], k: int, ties: str) -> list[float]:
    """Compute LOF from its definition, for any ties; more than k rows are needed."""
    density, neighbours = lof_densities(population, k, ties)
    return [
        math.fsum(density[o] for o in near) / len(near) / density[p]
        for p, near in enumerate(neighbours)
    ]


def lof_densities(
    population: Sequence[float], k: int, ties: str
) -> tuple[list[float], list[list[int]]]:
    """Return the local reachability density of each row, and which rows are its neighbours."""
    rows = range(len(population))
    neighbours: list[list[int]] = []
    kd: list[float] = []
    for p in rows:
        others = sorted(
            (abs(population[p] - population[o]), population[o], o) for o in rows if o != p
        )
        farthest = others[k - 1][0]
        near = (
            others[:k] if ties == "lower" else [other for other in others if other[0] <= farthest]
        )
        neighbours.append([o for _, _, o in near])
        kd.append(farthest)
    density = []
    for p in rows:
        reach = [max(abs(population[p] - population[o]), kd[o]) for o in neighbours[p]]
        density.append(1 / (math.fsum(reach) / len(reach) + 1e-10))
    return density, neighbours


def lof(*, k: int, threshold: float, ties: str) -> Rule:
    def rule(population: Sequence[float]) -> list[Answer]:
        if len(population) <= k:
            return [False] * len(population)
        return [_above(factor, threshold) for factor in lof_factors(population, k, ties)]

    return rule


def sklearn_lof(*, k: int, threshold: float) -> Rule:
    """Ask scikit-learn; right only where no record has two neighbours equally far."""

    def rule(population: Sequence[float]) -> list[Answer]:
        if len(population) <= k:
            return [False] * len(population)
        column = np.array(population, dtype=float).reshape(-1, 1)
        # Every algorithm of theirs is exact; on a handful of rows this one is 60 times faster.
        fitted = LocalOutlierFactor(n_neighbors=k, algorithm="kd_tree").fit(column)
        factors = -fitted.negative_outlier_factor_
        decided = np.abs(factors / threshold - 1) >= ROUNDING
        answers = zip(decided.tolist(), (factors > threshold).tolist(), strict=True)
        return [above if sure else None for sure, above in answers]

    return rule


def without_neighbour_ties(number: int) -> int:
    """Read the binary digits of a number in base 3.

    Of numbers made so no three are equally spaced (the digits of a + b = 2p would have to agree),
    hence no record has two neighbours at the same distance.
    """
    return int(f"{number:b}", 3)


def _above(score: float, threshold: float) -> Answer:
    return None if abs(score / threshold - 1) < ROUNDING else score > threshold


# -- Grubbs ---------------------------------------------------------------------------------------


class GrubbsStep(NamedTuple):
    """One Grubbs test: how many rows, which extreme, G and what it must exceed."""

    n: int
    extreme: float
    g: float
    critical: float


@lru_cache(maxsize=10_000)
def grubbs_critical(n: int, alpha: float, tail: str) -> float:
    """Follow the NIST handbook, 1.3.5.17.1."""
    t = float(stats.t.isf(alpha / (2 * n) if tail == "both" else alpha / n, n - 2))
    return (n - 1) / math.sqrt(n) * math.sqrt(t**2 / (n - 2 + t**2))


def grubbs_steps(population: Sequence[float], alpha: float, tail: str) -> list[GrubbsStep]:
    """Run the test until it finds nothing; mean and variance are exact."""
    numbers, unit = whole_numbers(population)  # G is the same in any unit
    left = sorted(numbers)
    steps: list[GrubbsStep] = []
    while len(left) >= 3 and left[0] < left[-1]:
        n = len(left)
        mean = Fraction(sum(left), n)
        squares = sum(value**2 for value in left) - n * mean**2  # of the distances to the mean
        variance = squares / (n - 1)
        above, below = left[-1] - mean, mean - left[0]
        upper = {"upper": True, "lower": False, "both": above >= below}[tail]
        extreme, distance = (left[-1], above) if upper else (left[0], below)
        g = math.sqrt(distance**2 / variance)
        steps.append(GrubbsStep(n, extreme / unit, g, grubbs_critical(n, alpha, tail)))
        if not g > steps[-1].critical:
            break
        left.remove(extreme)
    return steps


def grubbs(*, alpha: float, tail: str) -> Rule:
    """Every row whose value was removed at least once is an outlier."""

    def rule(population: Sequence[float]) -> list[Answer]:
        steps = grubbs_steps(population, alpha, tail)
        if any(_above(step.g, step.critical) is None for step in steps):
            return [None] * len(population)
        removed = {step.extreme for step in steps if step.g > step.critical}
        return [value in removed for value in population]

    return rule


# -- histogram ------------------------------------------------------------------------------------


def numpy_histogram(*, rare: str, include_maximum: bool = True) -> Rule:
    """Ask numpy for counts and edges; it cannot tell where a value lies on an inner edge."""

    def rule(population: Sequence[float]) -> list[Answer]:
        low, high = min(population), max(population)
        if low == high:
            return [False] * len(population)
        counts, edges = np.histogram(population, bins=math.isqrt(len(population)))
        if any(
            abs(value - edge) < ROUNDING * (high - low)
            for value in population
            for edge in edges[1:-1]
        ):
            return [None] * len(population)
        answers: list[Answer] = []
        for value in population:
            own = sum(1 for edge in edges[1:-1] if edge <= value)
            few = int(counts[own]) <= Fraction(rare) * len(population)
            answers.append(few and (include_maximum or value < high))
        return answers

    return rule


def exact_histogram(*, rare: str, include_maximum: bool = True) -> Rule:
    """Compare with every edge exactly; right for any numbers."""

    def rule(population: Sequence[float]) -> list[Answer]:
        numbers, _ = whole_numbers(population)
        low, high = min(numbers), max(numbers)
        if low == high:
            return [False] * len(population)
        bins = math.isqrt(len(population))
        # Both sides times the number of bins: edges are whole numbers, too.
        inner = [bins * low + (high - low) * i for i in range(1, bins)]
        own = [sum(edge <= bins * number for edge in inner) for number in numbers]
        rows = Counter(own)
        allowed = Fraction(rare) * len(population)
        return [
            rows[bin_] <= allowed and (include_maximum or number < high)
            for bin_, number in zip(own, numbers, strict=True)
        ]

    return rule


# -- counting -------------------------------------------------------------------------------------

# Whether a number lies in the region of a value.
Region = Callable[[float, float], bool]


def tail(side: str) -> Region:
    return lambda x, value: x >= value if side == "upper" else x <= value


def neighbourhood(radius: float) -> Region:
    return lambda x, value: abs(x - value) <= radius


def same_bin(edges: Sequence[float]) -> Region:
    """Number the bins by how many edges lie at or below a number."""

    def number(x: float) -> int:
        return [edge <= x for edge in edges].count(True)

    return lambda x, value: number(x) == number(value)


def counting(region: Region, *, share: str) -> Rule:
    """Less than a share of the rows lies in the region of an outlier."""

    def rule(population: Sequence[float]) -> list[Answer]:
        allowed = Fraction(share) * len(population)
        answers: dict[float, Answer] = {
            value: sum(region(x, value) for x in population) < allowed for value in set(population)
        }
        return [answers[value] for value in population]

    return rule


def rank_scores(places: Sequence[int], points: int, share: Fraction, target: int) -> list[Fraction]:
    """Return for each point of a grid minus its distance from a wanted rank, row by row.

    Args:
        places: of each row, the point that it belongs to.
        points: how many there are.
        share: the wanted rank is this share of the rows,
        target: and so many more.
    """
    wanted = share * len(places) + target
    scores = []
    for point in range(points):
        least = len([place for place in places if place < point])
        most = len([place for place in places if place <= point])
        if point > 0 and wanted < least:
            scores.append(wanted - least)
        elif point < points - 1 and wanted > most:
            scores.append(most - wanted)
        else:
            scores.append(Fraction(0))
    return scores


# -- people ----------------------------------------------------------------------------------------

# Whose a row is, its codes and its metric.
PersonalRow = tuple[str, tuple[int, ...], float]


def people(rows: Sequence[PersonalRow], allowed: Sequence[set[int]]) -> int:
    """Count the people with a row whose every code is allowed."""
    return len(
        {
            who
            for who, codes, _ in rows
            if all(code in some for code, some in zip(codes, allowed, strict=True))
        }
    )


def kept(rows: Sequence[PersonalRow], bound: int) -> list[PersonalRow]:
    """Return the rows that count where only the first so many of each person do, sorted."""
    found = []
    for who in {row[0] for row in rows}:
        found += sorted((row for row in rows if row[0] == who), key=place_in_order)[:bound]
    return sorted(found)


def place_in_order(row: PersonalRow) -> tuple[float, tuple[int, ...], float]:
    """Return the public hash of a row, and what decides between equal ones.

    Python's own floats, which follow IEEE 754 like everybody's.
    """
    _, codes, metric = row
    factors = [
        int.from_bytes(hashlib.sha256(f"pcor keep {place}".encode()).digest()[:4], "big") % 2**30
        + 1
        for place in range(len(codes) + 1)
    ]
    mixed = metric * factors[0]
    for code, factor in zip(codes, factors[1:], strict=True):
        mixed = mixed + float(code) * factor
    turns = mixed / 2**31
    return turns - math.floor(turns), codes, metric


# -- rows counted one by one ----------------------------------------------------------------------


def grid_point(metric: float, low: float, high: float, steps_per_unit: float, last: int) -> int:
    """Return the point of a grid that a metric belongs to."""
    if metric <= low:
        return 0
    return last if metric >= high else min(last, math.floor((metric - low) * steps_per_unit + 0.5))


def nearest_metrics(
    metrics: Sequence[float], value: float, wanted: int
) -> tuple[list[float], list[float]]:
    """Return the nearest metrics below a value, falling, and those from it on, rising."""
    below = sorted((metric for metric in metrics if metric < value), reverse=True)
    above = sorted(metric for metric in metrics if metric >= value)
    return below[:wanted], above[:wanted]
