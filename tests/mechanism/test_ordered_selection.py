"""The ordered draw: the exponential mechanism over everything, decided before everything is met.

Most tests script the uniform number U and compare with inverting the distribution function over all
candidates, in integers and with more digits than the code under test has. Only the last few draw.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

import pcor
from pcor.audit.exact import selection_chances
from pcor.mechanism.ordered_selection import FIRST_BITS, Candidates, Run, draw_first
from pcor.mechanism.samplers import exp_bounds
from pcor.mechanism.selection import SystemChooser
from pcor.public.context import Words
from pcor.releasing.plan import plan
from pcor.releasing.run import best_first, draw
from pcor.search import best_first as best_first_module
from pcor.search.best_first import BestFirst
from pcor.search.utility import Scorer
from pcor.search.validity import Validity
from pcor.testing import SeededChooser
from tests.helpers.neighbours import DETECTORS

# Per check. 2 checks that must pass, 10,000 runs a year: one false alarm in 50,000 years. The
# noncentral chi-square puts the chance to miss 0.7 or 1.3 of epsilon below 1e-19 at our numbers of
# draws: 1e-25 for the releases, 7e-20 for lists.
FALSE_ALARM = 1e-9

Between = tuple[Fraction, Fraction]


# -- exp(-x) by its series ------------------------------------------------------------------------


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


def test_the_twin_knows_e() -> None:
    low, high = exp_minus(Fraction(1), 200)
    # 1/e, from OEIS A068985.
    digits = Fraction(367879441171442321595523770161460867, 10**36)
    assert low - Fraction(1, 10**36) < digits < high
    assert high - low < Fraction(1, 2**180)


exponents = st.one_of(
    st.fractions(0, 200),
    st.fractions(0, 10, max_denominator=100),
    st.integers(0, 200).map(Fraction),
    st.tuples(st.integers(1, 10**40), st.integers(30, 320)).map(
        lambda p: Fraction(p[0], 10 ** p[1])
    ),
    st.integers(1, 10**60).map(lambda n: n * Fraction(1, 10**60) * 140),
).filter(lambda x: x < 1000)


def enclosed(x: Fraction, bits: int) -> None:
    low, high = exp_bounds(x, bits)
    below, above = exp_minus(x, bits + 192)
    assert low <= below * 2**bits
    assert above * 2**bits <= high
    assert low >= 0
    assert high - low <= 2


@given(exponents.filter(bool), st.sampled_from([1, 2, 3, 8, 53, 64, 192, 384]))
def test_the_bounds_enclose_the_exponential_and_are_two_units_apart_at_most(
    x: Fraction, bits: int
) -> None:
    enclosed(x, bits)


@pytest.mark.parametrize("bits", [1, 8, 192, 768])
def test_the_bounds_hold_on_both_sides_of_the_cut_off_and_of_powers_of_ten(bits: int) -> None:
    cut = Fraction(bits * 10000, 14426)
    for base in (
        cut,
        Fraction(1),
        Fraction(10),
        Fraction(100),
        Fraction(1, 10),
        Fraction(1, 10**9),
    ):
        for step in (0, 1, -1):
            for power in (-2, -12, -60, -80, -300):
                x = base + step * Fraction(10) ** power
                if 0 < x < 1000:
                    enclosed(x, bits)
    assert exp_bounds(cut + Fraction(1, 10**9), bits) == (0, 1)


def test_nothing_below_the_cut_off_exceeds_one_unit_however_many_bits() -> None:
    """One unit is exp(-bits * ln 2), and 10000/14426 is more than ln 2."""
    half = exp_minus(Fraction(10000, 14426), 300)
    assert half[1] < Fraction(1, 2)
    for bits in (192, 393_216, 1 << 40):  # a cut-off at 1.4427 was wrong from 290,000 bits on
        assert exp_bounds(Fraction(bits * 10000, 14426) + 1, bits) == (0, 1)


@pytest.mark.parametrize("bits", [1, 8, 192, 10**5])
def test_zero_is_exact_and_what_is_huge_is_less_than_one_unit(bits: int) -> None:
    assert exp_bounds(Fraction(0), bits) == (1 << bits, 1 << bits)
    assert exp_bounds(Fraction(10**300), bits) == (0, 1)


# -- candidates that arrive as the test says ------------------------------------------------------


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

    def met(self) -> list[Run]:
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


def inverse(utilities: Sequence[int], eta: Fraction, number: Fraction) -> int:
    """Return the candidate whose share U * Z lies in, by as many digits as that takes."""
    precision = 256
    while True:
        found = ends(utilities, eta, precision)
        low, high = number * found[-1][0], number * found[-1][1]
        first = next(i for i, (_, end) in enumerate(found) if low < end)
        last = next((i for i, (end, _) in enumerate(found) if high < end), None)
        if first == last:
            return first
        precision *= 2


def boundary(utilities: Sequence[int], eta: Fraction, after: int, digits: int) -> Fraction:
    """Return where in [0, 1) a candidate's share ends, rounded down to so many binary digits."""
    precision = 2 * digits + 256
    while True:
        found = ends(utilities, eta, precision)
        low, high = found[after][0] / found[-1][1], found[after][1] / found[-1][0]
        if int(low * 2**digits) == int(high * 2**digits):
            return Fraction(int(low * 2**digits), 2**digits)
        precision *= 2


def candidates(spread: int) -> st.SearchStrategy[list[tuple[int, bool]]]:
    item = st.tuples(st.integers(0, spread), st.booleans() | st.just(True))
    return st.lists(item, min_size=1, max_size=9).map(lambda items: sorted(items, reverse=True))


etas = st.sampled_from([Fraction(1, 100), Fraction(1, 3), Fraction(1), Fraction(7, 2)])
batches = st.lists(st.integers(1, 4), min_size=1, max_size=3)
spreads = st.sampled_from([0, 2, 10, 400])


@given(spreads.flatmap(candidates), etas, batches, st.integers(0, 3), st.data())
def test_a_scripted_number_gives_what_inverting_the_whole_distribution_gives(
    items: list[tuple[int, bool]], eta: Fraction, sizes: list[int], loose: int, data: st.DataObject
) -> None:
    utilities = [utility for utility, valid in items if valid]
    if not utilities:
        assert draw_first(Arriving(items, sizes, loose), eta, Script(Fraction(0))) is None
        return
    number = Fraction(data.draw(st.integers(0, 2**70 - 1)), 2**70)
    if len(set(utilities)) > 1 and data.draw(st.booleans()):
        after = data.draw(st.integers(0, len(utilities) - 2))
        digits = data.draw(st.sampled_from([100, 191, 193, 390]))
        number = boundary(utilities, eta, after, digits)
        number += Fraction(data.draw(st.integers(0, 1)), 2**digits)
        if number >= 1:
            return
    expected = inverse(utilities, eta, number)
    assert draw_first(Arriving(items, sizes, loose), eta, Script(number)) == expected


@pytest.mark.parametrize("batch", [1, 2, 5])
@pytest.mark.parametrize("loose", [0, 2])
@pytest.mark.parametrize("digits", [200, 400, 800])
def test_a_number_next_to_a_boundary_asks_for_more_bits_and_falls_on_its_own_side(
    batch: int, loose: int, digits: int
) -> None:
    utilities, eta = [3, 2, 2, 1, 0], Fraction(2, 3)
    items = [(utility, True) for utility in utilities]
    for after in range(4):
        below = boundary(utilities, eta, after, digits)
        for number, expected in ((below, after), (below + Fraction(1, 2**digits), after + 1)):
            script = Script(number)
            assert draw_first(Arriving(items, [batch], loose), eta, script) == expected
            assert script.bits > digits - 10
            assert script.asked[:2] == [1 << FIRST_BITS] * 2


def test_weights_far_below_the_first_digits_are_drawn_by_the_numbers_that_point_to_them() -> None:
    """exp(-1000) is 2^-1442: 192 bits do not see it, and it is there."""
    items = [(1000, True), (0, True), (0, False), (0, True)]
    for number, expected in (
        (1 - Fraction(1, 2**1400), 0),
        (1 - Fraction(1, 2**1442), 1),
        (1 - Fraction(1, 2**1500), 2),
    ):
        assert inverse([1000, 0, 0], Fraction(1), number) == expected
        script = Script(number)
        assert draw_first(Arriving(items), Fraction(1), script) == expected
        assert script.bits == 8 * FIRST_BITS


def test_equal_utilities_share_equally_and_a_boundary_belongs_to_the_right() -> None:
    items = [(7, True)] * 4
    for eighth in range(8):
        script = Script(Fraction(eighth, 8))
        assert draw_first(Arriving(items, [4]), Fraction(1), script) == eighth // 2
        assert script.bits == FIRST_BITS


def test_a_single_candidate_is_drawn_and_none_is_none_without_a_draw() -> None:
    script = Script(Fraction(2**300 - 1, 2**300))
    assert draw_first(Arriving([(5, False), (4, True), (3, False)]), Fraction(1), script) == 0
    nothing = Script(Fraction(1, 2))
    assert draw_first(Arriving([(5, False), (4, False)]), Fraction(1), nothing) is None
    assert draw_first(Arriving([]), Fraction(1), nothing) is None
    assert nothing.asked == []


def test_the_draw_ends_early_where_what_is_left_cannot_change_it() -> None:
    items = [(1000 - i, True) for i in range(1000)]
    arriving = Arriving(items, [10])
    assert draw_first(arriving, Fraction(1), Script(Fraction(1, 3))) == 0
    assert arriving.visited <= 20


class Undecided(Exception):
    """The bits given did not suffice."""


def only(point: int, size: int) -> Callable[[int], int]:
    """Give out one number, once."""
    left = [point]

    def uniform(count: int) -> int:
        if not left:
            raise Undecided
        assert count == size
        return left.pop()

    return uniform


@pytest.mark.parametrize(
    "utilities", [[0], [1, 0], [4, 4, 1], [9, 5, 5, 5, 0], [2, 2, 2], [30, 0]], ids=str
)
@pytest.mark.parametrize("bits", [6, 8, 13])
def test_over_all_points_what_is_decided_is_right_and_the_rest_vanishes(
    utilities: list[int], bits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Integrate over U: each point stands for the numbers in [point, point + 1) / 2^bits."""
    monkeypatch.setattr("pcor.mechanism.ordered_selection.FIRST_BITS", bits)
    eta, size = Fraction(1, 3), 1 << bits
    found = ends(utilities, eta, 256)
    total = found[-1]
    starts = [(Fraction(0), Fraction(0)), *found[:-1]]
    decided = [0] * len(utilities)
    for point in range(size):
        uniform = only(point, size)
        try:
            place = draw_first(Arriving([(u, True) for u in utilities], [2]), eta, uniform)
        except Undecided:
            continue
        assert place is not None
        decided[place] += 1
        assert Fraction(point, size) * total[0] >= starts[place][0]
        assert Fraction(point + 1, size) * total[1] <= found[place][1]
    count = len(utilities)
    undecided = size - sum(decided)
    # Each boundary is known to 2 units per candidate, U * Z to 3 * count + 3; a point is a unit
    # wide at least.
    assert undecided <= count * (7 * count + 6)
    for place in range(count):
        chance = (found[place][1] - starts[place][0]) / total[0]
        assert Fraction(decided[place], size) <= chance
        assert chance <= Fraction(decided[place] + undecided, size) + Fraction(1, 2**200)


# -- permute-and-flip ------------------------------------------------------------------------------


def none_from(
    utilities: Sequence[int], eta: Fraction, bits: int
) -> list[tuple[Fraction, Fraction]]:
    """Bound, for each place, the chance that no coin from there on succeeds."""
    found = [(Fraction(1), Fraction(1))]
    for utility in reversed(utilities):
        low, high = exp_bounds(eta * (utilities[0] - utility), bits)
        before = found[-1]
        found.append(
            (
                before[0] * (1 - Fraction(high, 1 << bits)),
                before[1] * (1 - Fraction(low, 1 << bits)),
            )
        )
    return found[::-1]


class LastSuccess(Exception):
    """Carries the place to the test instead of going on to the coins before it."""


@given(spreads.flatmap(candidates), etas, batches, st.integers(0, 3), st.data())
def test_a_scripted_number_gives_the_last_success(
    items: list[tuple[int, bool]], eta: Fraction, sizes: list[int], loose: int, data: st.DataObject
) -> None:
    utilities = [utility for utility, valid in items if valid]
    number = Fraction(data.draw(st.integers(0, 2**70 - 1)), 2**70)
    if not utilities:
        return
    chances = none_from(utilities, eta, 2000)
    if data.draw(st.booleans()):  # next to where one takes over from another
        digits = data.draw(st.sampled_from([100, 191, 193, 390]))
        place = data.draw(st.integers(0, len(utilities) - 1))
        number = Fraction(int(chances[place][0] * 2**digits), 2**digits)
        number += Fraction(data.draw(st.integers(0, 1)), 2**digits)
        assume(number < 1)
    assume(all(not low <= number <= high or low == high for low, high in chances))
    expected = max(place for place, (low, _) in enumerate(chances) if low <= number)

    def pick(short: Any, *_: object) -> int:
        assert short.tolist() == [utilities[0] - u for u in utilities[: expected + 1]]
        raise LastSuccess

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pcor.mechanism.ordered_selection.pick_success", pick)
        with pytest.raises(LastSuccess):
            draw_first(Arriving(items, sizes, loose), eta, Script(number), "permute_and_flip")


@pytest.mark.parametrize("drawn", ["permute_and_flip", "exponential"])
@pytest.mark.parametrize("eta", [Fraction(1, 4), Fraction(1, 3)])
def test_permute_and_flip_in_order_has_its_chances_and_no_others(drawn: str, eta: Fraction) -> None:
    """Chi-square with a false-alarm rate of 1e-9; the exponential mechanism must be rejected.

    It is missed with a chance below 1e-10, by the noncentral chi-square distribution.
    """
    items = [(90, True), (90, True), (88, False), (85, True), (85, True), (80, True), (50, True)]
    utilities = [utility for utility, valid in items if valid]
    uniform = SystemChooser().uniform
    draws = [draw_first(Arriving(items, [2], 1), eta, uniform, drawn) or 0 for _ in range(12_000)]
    chances = selection_chances(utilities, eta=eta, mechanism="permute_and_flip")
    common = chances * len(draws) > 5
    counts = np.bincount(draws, minlength=len(utilities))
    p = stats.chisquare(
        counts[common], counts[common].sum() * chances[common] / chances[common].sum()
    )
    assert (p.pvalue > 1e-9) == (drawn == "permute_and_flip")


# -- contexts, best first -------------------------------------------------------------------------

ATTRIBUTES = {"job": ["a", "b", "c"], "city": ["x", "y", "z"], "sex": ["f", "m"]}
Row = tuple[str, str, str, float]


def table_of(rows: Sequence[Row]) -> pcor.Table:
    schema = pcor.Schema(metric="pay", attributes=ATTRIBUTES)
    names = (*ATTRIBUTES, "pay")
    return pcor.Table(pa.table({n: [row[i] for row in rows] for i, n in enumerate(names)}), schema)


rows = st.lists(
    st.tuples(*(st.sampled_from(v) for v in ATTRIBUTES.values()), st.integers(0, 9).map(float)),
    min_size=4,
    max_size=25,
)


def chosen_utility(name: str, table: pcor.Table) -> Any:
    """Population, or the overlap with a context that is not the record's own."""
    some = {"job": ["a", "b"], "city": ["y", "z"], "sex": ["f", "m"]}
    return "population" if name == "population" else pcor.Overlap(pcor.Context(table.schema, some))


def by_hand(validity: Validity, utility: Any) -> dict[int, int]:
    """Return every valid context with its score: one by one, each scored through its population."""
    table = validity.table
    rule = pcor.PopulationSize() if utility == "population" else utility
    masks = list(validity.record.space.masks())
    valid = itertools.compress(masks, validity(masks))
    return {
        mask: rule.score(pcor.Population(pcor.Context.from_mask(table.schema, mask), table))
        for mask in valid
    }


def scores(ordered: Candidates) -> list[int]:
    return [run.utility for run in ordered.met() for _ in range(run.count)]


@settings(max_examples=60)
@given(
    rows,
    st.sampled_from(sorted(DETECTORS)),
    st.sampled_from(["population", "overlap"]),
    st.sampled_from([1, 3, 128]),
    st.sampled_from([1, 5, 1 << 13]),
)
def test_best_first_meets_every_valid_context_once_by_falling_utility(
    crowd: list[Row], detector: str, utility: str, step: int, sort_after: int
) -> None:
    table = table_of([("a", "x", "f", 40.0), *crowd])
    validity = Validity(table, table.record(0), DETECTORS[detector])
    chosen = chosen_utility(utility, table)
    expected = by_hand(validity, chosen)
    settled = plan(table.schema, 1, detector=DETECTORS[detector], search="direct", utility=chosen)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(best_first_module, "FIRST_STEP", step)
        patch.setattr(best_first_module, "LARGEST_STEP", step)
        patch.setattr(best_first_module, "_SORT_AFTER", sort_after)
        ordered = best_first(settled, validity)
        assert ordered is not None
        before: list[int] = []
        while not ordered.finished:
            met = dict(zip(ordered.masks(), scores(ordered), strict=True)) if before else {}
            left = [score for mask, score in expected.items() if mask not in met]
            for least in set(left):  # never fewer than there are, never of less utility
                bound = sum(run.count for run in ordered.remaining() if run.utility >= least)
                assert bound >= sum(score >= least for score in left)
            ordered.advance()
            assert ordered.masks()[: len(before)] == before  # what was met keeps its place
            before = ordered.masks()
    assert ordered.remaining() == []
    assert sorted(ordered.masks()) == sorted(expected)
    assert [expected[mask] for mask in ordered.masks()] == scores(ordered)
    assert scores(ordered) == sorted(scores(ordered), reverse=True)


def test_the_bounds_count_every_context_not_visited_in_a_space_of_2_to_the_62() -> None:
    """Their sum is exact, where float64 would lose what was visited."""
    values = [str(i) for i in range(63)]
    schema = pcor.Schema(metric="pay", attributes={"a": values})
    frame = pa.table({"a": ["0", *values], "pay": [99.0, *map(float, range(63))]})
    table = pcor.Table(frame, schema)
    validity = Validity(table, table.record(0), DETECTORS["lof"])
    ordered = BestFirst(validity, table.cells.cell_counts)
    for visited in (128, 384):
        ordered.advance()
        assert sum(run.count for run in ordered.remaining()) == (1 << 62) - visited


@dataclass(frozen=True)
class TwicePopulation:
    """A utility of the user's own."""

    sensitivity = 2
    monotonic = True

    def score(self, population: pcor.Population) -> int:
        return 2 * population.size


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, True),
        ({"utility": "overlap"}, True),
        ({"selection": "permute_and_flip"}, True),
        ({"utility": TwicePopulation()}, False),
        ({"search": "uniform", "samples": 3}, False),
    ],
    ids=str,
)
def test_public_facts_alone_decide_whether_the_draw_is_ordered(
    options: dict[str, Any], expected: bool
) -> None:
    table = table_of([("a", "x", "f", 40.0), ("b", "y", "m", 1.0)])
    if options.get("utility") == "overlap":
        options = options | {"utility": chosen_utility("overlap", table)}
    settled = plan(table.schema, 1, **({"search": "direct"} | options))
    validity = Validity(table, table.record(0), settled.detector)
    assert (best_first(settled, validity) is not None) == expected


@settings(max_examples=40)
@given(rows, st.sampled_from(sorted(DETECTORS)), st.sampled_from(["population", "overlap"]))
def test_the_exact_distribution_is_the_exhaustive_exponential_mechanism(
    crowd: list[Row], detector: str, utility: str
) -> None:
    table = table_of([("a", "x", "f", 40.0), *crowd])
    chosen = chosen_utility(utility, table)
    expected = by_hand(Validity(table, table.record(0), DETECTORS[detector]), chosen)
    if not expected:
        return
    masks = list(expected)
    found = ends(list(expected.values()), Fraction(1, 5), 200)
    total = found[-1][1]
    starts = [Fraction(0), *(end for _, end in found[:-1])]
    chances = {
        mask: float((end - start) / total)
        for mask, start, (_, end) in zip(masks, starts, found, strict=True)
    }
    stated = pcor.audit.exact_distribution(
        table,
        0,
        "0.2",
        detector=DETECTORS[detector],
        search="direct",
        utility=chosen,
        selection="exponential",
    )
    assert {context.mask for context in stated} == set(chances)
    distance = sum(abs(chances[c.mask] - chance) for c, chance in stated.items()) / 2
    assert distance < 1e-12


# -- a larger table -------------------------------------------------------------------------------


def larger(sizes: Sequence[int], number: int) -> pcor.Table:
    """Return a table whose record 0 stands out nearly everywhere."""
    numbers = random.Random(3)  # noqa: S311 (test data)
    domains = {f"a{i}": [f"v{j}" for j in range(size)] for i, size in enumerate(sizes)}
    columns: dict[str, list[Any]] = {
        name: [values[0], *numbers.choices(values, k=number)] for name, values in domains.items()
    }
    columns["pay"] = [1000.0, *(numbers.gauss(100.0, 15.0) for _ in range(number))]
    return pcor.Table(pa.table(columns), pcor.Schema(metric="pay", attributes=domains))


class Scripted(SeededChooser):
    """Draws with a scripted number."""

    def __init__(self, number: Fraction) -> None:
        super().__init__(0)
        self.script = Script(number)

    def select_first(self, candidates: Candidates, *, eta: Fraction, mechanism: str) -> int | None:
        return draw_first(candidates, eta, self.script, mechanism)


class Counting(Validity):
    """Counts the contexts that were judged."""

    judged = 0

    def judge(self, cells: Any, words: Words, moments: Any = None) -> Any:
        self.judged += len(words)
        return super().judge(cells, words, moments)


@pytest.mark.parametrize("utility", ["population", "overlap"])
@pytest.mark.parametrize("sort_after", [256, 1 << 20])
def test_unvisited_contexts_keep_their_chance_and_most_are_never_visited(
    utility: str, sort_after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(best_first_module, "_SORT_AFTER", sort_after)
    table = larger((6, 6, 5), 500)
    first = {"a0": ["v0", "v1", "v2", "v3"], "a1": [f"v{j}" for j in range(6)], "a2": ["v0", "v1"]}
    overlap = pcor.Overlap(pcor.Context(table.schema, first))
    chosen: Any = "population" if utility == "population" else overlap
    detector = pcor.Grubbs(min_population=3)
    settled = plan(
        table.schema,
        "0.3",
        detector=detector,
        search="direct",
        utility=chosen,
        selection="exponential",
    )
    everything = best_first(settled, Validity(table, table.record(0), detector))
    assert everything is not None
    while not everything.finished:
        everything.advance()
    masks, utilities = everything.masks(), scores(everything)
    assert len(masks) > 10_000  # of 16,384

    found = ends(utilities, settled.bill.eta, 512)
    total = found[-1][1]
    for place in (0, 1, 2, 100, 1_000, 5_000, len(masks) - 2, len(masks) - 1):
        start = found[place - 1][1] if place else Fraction(0)
        middle = (start + found[place][0]) / 2 / total
        validity = Counting(table, table.record(0), detector)
        number = Fraction(int(middle * 2**600), 2**600)
        assert draw(settled, validity, Scripted(number)) == masks[place]
        if place == 0:
            assert validity.judged <= 128 + 256


def p_value(observed: Sequence[int], chances: Sequence[float]) -> float:
    """Test draws against chances; candidates are put together, best first, in shares of 1/20."""
    order = np.argsort(-np.array(chances), kind="stable")
    ranks = np.empty(len(order), dtype=np.int64)
    group = np.minimum((np.cumsum(np.array(chances)[order]) * 20).astype(np.int64), 19)
    ranks[order] = np.unique(group, return_inverse=True)[1]
    expected = np.bincount(ranks, chances)
    counts = np.bincount(ranks[list(observed)], minlength=len(expected))
    assert expected.min() * len(observed) > 20
    return float(stats.chisquare(counts, len(observed) * expected / expected.sum()).pvalue)


@pytest.mark.parametrize(("factor", "accepted"), [("1", True), ("0.7", False), ("1.3", False)])
def test_releases_from_2_to_the_10_contexts_have_the_exact_chances_and_no_others(
    factor: str, accepted: bool
) -> None:
    table = larger((5, 4, 4), 400)
    detector = pcor.Grubbs(min_population=3)
    settled = plan(table.schema, "0.02", detector=detector, search="direct")
    expected = by_hand(Validity(table, table.record(0), detector), "population")
    assert len(expected) > 500
    place = {mask: i for i, mask in enumerate(expected)}
    chances = selection_chances(
        list(expected.values()), eta=settled.bill.eta, mechanism=settled.selection
    )
    epsilon = Fraction("0.02") * Fraction(factor)
    draws = [
        place[pcor.release(table, 0, epsilon, detector, "direct").context.mask] for _ in range(500)
    ]
    assert (p_value(draws, chances.tolist()) > FALSE_ALARM) == accepted


@pytest.mark.parametrize(("factor", "accepted"), [("1", True), ("0.7", False), ("1.3", False)])
def test_the_ordered_draw_and_the_draw_from_a_list_are_alike(factor: str, accepted: bool) -> None:
    utilities, eta, draws = [300, 200, 200, 100, 0], Fraction(1, 100), 12_000
    items = [(utility, True) for utility in utilities]
    chooser = SystemChooser()
    theirs = [chooser.select(utilities, eta=eta, mechanism="exponential") for _ in range(draws)]
    ours = [
        chooser.select_first(
            Arriving(items, [2]), eta=eta * Fraction(factor), mechanism="exponential"
        )
        for _ in range(draws)
    ]
    counts = [np.bincount(np.array(drawn), minlength=5) for drawn in (theirs, ours)]
    assert (stats.chi2_contingency(np.array(counts)).pvalue > FALSE_ALARM) == accepted


def test_no_valid_context_is_an_answer_of_the_ordered_draw_too() -> None:
    table = table_of([("a", "x", "f", 1.0)] * 30)
    with pytest.raises(pcor.errors.NoValidContext):
        pcor.release(table, 0, 1, search="direct")


def test_scores_of_the_order_are_those_of_the_scorer() -> None:
    table = larger((3, 3, 3), 60)
    detector = pcor.Grubbs(min_population=3)
    settled = plan(table.schema, 1, detector=detector, search="direct")
    ordered = best_first(settled, Validity(table, table.record(0), detector))
    assert ordered is not None
    while not ordered.finished:
        ordered.advance()
    assert Scorer(settled.utility, table)(ordered.masks()) == scores(ordered)
