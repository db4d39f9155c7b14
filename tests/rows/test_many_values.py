"""Many attributes or many values: up to 1,000 values, and nearly every row is its own cell.

Expected answers come from sets and plain loops (``SmallRows`` below) and from the twins of
``tests/helpers/naive.py``. A context is a set of positions, a row is the set of its values'
positions, and a row is covered if it is a subset: no words, no masks, no cells. Tables are the same
every time. Only the releases draw at random, and what is asserted of them holds for every draw.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import pairwise

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import pcor
from pcor.errors import NoValidContext, TooLarge
from pcor.search import Explorer
from pcor.search.validity import Validity
from tests.helpers import naive

Sizes = tuple[int, ...]
Positions = frozenset[int]

# Few attributes of many values, many attributes of few; around one, two, three and sixteen words.
WIDEST: dict[str, Sizes] = {
    "1 x 1000": (1000,),
    "2 x 500": (500, 500),
    "10 x 100": (100,) * 10,
    "100 x 10": (10,) * 100,
    "333 x 3": (3,) * 333 + (1,),
}
SHAPES: dict[str, Sizes] = {
    "1 x 64": (64,),
    "32 x 2": (2,) * 32,
    "1 x 65": (65,),
    "63 + 2": (63, 2),
    "1 x 127": (127,),
    "1 x 128": (128,),
    "2 x 64": (64, 64),
    "64 x 2": (2,) * 64,
    "3 x 43": (43, 43, 43),
    "129": (65, 1, 63),
    "100 x 2": (2,) * 100,
    "10 x 20": (20,) * 10,
    **WIDEST,
}
RULES: dict[str, tuple[pcor.Detector, naive.Rule]] = {
    "lof": (
        pcor.LOF(k=3, threshold=1.5, min_population=8),
        naive.lof(k=3, threshold=1.5, ties="lower"),
    ),
    "grubbs": (
        pcor.Grubbs(alpha=0.05, min_population=8),
        naive.grubbs(alpha=0.05, tail="both"),
    ),
    "histogram": (
        pcor.Histogram(rare=0.1, min_population=8),
        naive.exact_histogram(rare="0.1"),
    ),
}
SMALLEST = 8

wide = pytest.mark.parametrize("shape", SHAPES)
widest = pytest.mark.parametrize("shape", WIDEST)
every_rule = pytest.mark.parametrize("rule", RULES)


# -- tables, as sets of positions -----------------------------------------------------------------


@dataclass(frozen=True)
class SmallRows:
    """Rows as sets of positions; row 0 is the record."""

    sizes: Sizes
    rows: list[Positions]
    metric: list[float]
    answers: dict[tuple[str, tuple[int, ...]], naive.Answer] = field(default_factory=dict)
    populations: dict[Positions, tuple[int, ...]] = field(default_factory=dict)

    @property
    def width(self) -> int:
        return sum(self.sizes)

    @cached_property
    def schema(self) -> pcor.Schema:
        domains = {
            f"a{i}": [f"a{i} value {c}" for c in range(size)] for i, size in enumerate(self.sizes)
        }
        return pcor.Schema(metric="pay", attributes=domains)

    @cached_property
    def frame(self) -> pa.Table:
        """The rows as somebody's file has them."""
        flat = [value for a in self.schema.attributes for value in a.values]
        texts = [[flat[position] for position in sorted(row)] for row in self.rows]
        columns = [pa.array(column) for column in zip(*texts, strict=True)]
        names = [a.name for a in self.schema.attributes]
        return pa.table([*columns, pa.array(self.metric, pa.float64())], [*names, "pay"])

    @cached_property
    def table(self) -> pcor.Table:
        return pcor.Table(self.frame, self.schema)

    def validity(self, rule: str) -> Validity:
        return Validity(self.table, self.table.record(0), RULES[rule][0])

    def context(self, positions: Positions) -> pcor.Context:
        """Build a context from its bits as text."""
        bits = "".join("01"[position in positions] for position in range(self.width))
        return pcor.Context.from_bits(self.schema, bits)

    def masks(self, contexts: Sequence[Positions]) -> list[int]:
        return [sum(1 << position for position in context) for context in contexts]

    def covered(self, context: Positions) -> tuple[int, ...]:
        if context not in self.populations:
            covered = tuple(number for number, row in enumerate(self.rows) if row <= context)
            self.populations[context] = covered
        return self.populations[context]

    def answer(self, rule: str, context: Positions) -> naive.Answer:
        """Ask the twin; populations that were met before are not judged again.

        In none of these does rounding decide, which a twin would answer with ``None``.
        """
        population = self.covered(context)
        if 0 not in population or len(population) < SMALLEST:
            return False
        key = rule, population
        if key not in self.answers:
            self.answers[key] = RULES[rule][1]([self.metric[i] for i in population])[0]
        return self.answers[key]


def borders(width: int) -> list[int]:
    """The positions on both sides of the first two and of the last border between words."""
    edges = {64, 128, 64 * (width // 64)}
    return [p for edge in sorted(edges) for p in (edge - 1, edge) if 0 <= p < width]


@cache
def drawn(shape: str, count: int = 60, *, crowded: bool = True) -> SmallRows:
    """Draw a table in which nearly every row is its own cell.

    Some rows differ from the record in one value only, at the borders between words and at both
    ends; the others in one to three values. If ``crowded``, some values lie about as far out as the
    record's, so that it is an outlier in some contexts and not in others.
    """
    sizes = SHAPES[shape]
    rng = np.random.default_rng([*sizes[:3], len(sizes), count])
    offsets = np.cumsum([0, *sizes[:-1]])
    own = offsets + rng.integers(0, sizes)
    attribute_of = np.repeat(np.arange(len(sizes)), sizes)
    rows = [frozenset(own.tolist())]
    for position in (0, *borders(sum(sizes)), sum(sizes) - 1):
        row = own.copy()
        row[attribute_of[position]] = position
        rows.append(frozenset(row.tolist()))
    while len(rows) < count:
        row = own.copy()
        for attribute in rng.integers(0, len(sizes), rng.integers(1, 4)):
            row[attribute] = offsets[attribute] + rng.integers(0, sizes[attribute])
        if frozenset(row.tolist()) not in rows or rng.random() < 0.02:
            rows.append(frozenset(row.tolist()))
    # Whole numbers: exact in every twin, and cheap as fractions.
    metric = rng.permutation(10 * count)[:count].astype(float)
    metric[0] = 30.0 * count
    if crowded:
        far = rng.choice(np.arange(1, count), 4, replace=False)
        metric[far] = metric[0] + np.array([-60, -5, 3, 40])
    return SmallRows(sizes, rows, metric.tolist())


def some_contexts(table: SmallRows) -> Iterator[Positions]:
    """Yield contexts of the record: the smallest, the largest, at word borders, at random."""
    own, full = table.rows[0], frozenset(range(table.width))
    yield own
    yield full
    for position in borders(table.width):
        yield own | full - {position}
        yield own | {p for p in full if p < position}
        yield own | {p for p in full if p >= position}
    yield own | {p for p in full if p // 64 % 2}
    yield own | {p for p in full if not p // 64 % 2}
    rng = np.random.default_rng(table.width)
    for share in (0.1, 0.5, 0.5, 0.9, 0.9, 0.9, 0.98, 0.98, 0.98):
        yield own | set(np.flatnonzero(rng.random(table.width) < share).tolist())


def neighbours(context: Positions, positions: Sequence[int]) -> list[Positions]:
    return [context ^ {position} for position in positions]


# -- verdicts -------------------------------------------------------------------------------------


@wide
def test_nearly_every_row_is_its_own_cell(shape: str) -> None:
    """Else the tests below would not test what they say."""
    table = drawn(shape)
    different = len(set(table.rows))
    assert len(table.table.cells.cell_numbers) == different
    assert 0.75 * len(table.rows) <= different


@wide
@every_rule
def test_verdicts_are_those_of_the_twin(shape: str, rule: str) -> None:
    table = drawn(shape)
    contexts = list(some_contexts(table))
    found = table.validity(rule)(table.masks(contexts))
    assert found.tolist() == [table.answer(rule, context) for context in contexts]


@wide
@every_rule
def test_verdicts_on_all_neighbours_are_those_of_the_twin(shape: str, rule: str) -> None:
    table = drawn(shape)
    free = sorted(set(range(table.width)) - table.rows[0])
    for context in list(some_contexts(table))[-1:-5:-3]:
        # Twice: judged together around their context, and without a word about it.
        (mask,) = table.masks([context])
        expected = [table.answer(rule, other) for other in neighbours(context, free)]
        around = table.validity(rule).of_neighbours(mask)
        assert around.tolist() == expected
        alone = table.validity(rule)([mask ^ 1 << position for position in free])
        assert alone.tolist() == expected


@wide
@every_rule
def test_without_the_records_own_values_nothing_is_valid(shape: str, rule: str) -> None:
    table = drawn(shape)
    full = frozenset(range(table.width))
    without = neighbours(full, sorted(table.rows[0]))
    assert not table.validity(rule)(table.masks(without)).any()


@widest
@every_rule
def test_one_context_is_judged_as_the_twin_does(shape: str, rule: str) -> None:
    table = drawn(shape)
    for context in list(some_contexts(table))[1:6]:
        found = pcor.is_outlier(table.table, 0, table.context(context), RULES[rule][0])
        assert found == table.answer(rule, context)


@every_rule
def test_the_comparisons_meet_both_answers_at_a_thousand_values(rule: str) -> None:
    """No chance is in it: the tables are the same every time."""
    for shape in WIDEST:
        table = drawn(shape)
        answers = [table.answer(rule, context) for context in some_contexts(table)]
        assert {True, False} == set(answers), shape


# -- populations ----------------------------------------------------------------------------------


@wide
def test_populations_are_those_of_plain_loops(shape: str) -> None:
    table = drawn(shape)
    contexts = list(some_contexts(table))
    without = neighbours(frozenset(range(table.width)), sorted(table.rows[0])[:5])
    found = table.table.populations(table.masks([*contexts, *without]))
    assert found.tolist() == [len(table.covered(context)) for context in [*contexts, *without]]


@wide
def test_the_totals_of_the_neighbours_at_every_position_are_those_of_plain_loops(
    shape: str,
) -> None:
    table = drawn(shape)
    whole = table.table.cells.in_memory()
    rng = np.random.default_rng(table.width)
    weights = rng.integers(0, 2**40, len(whole.cell_numbers))
    weight_of = {  # by positions, so that it does not matter how cells are numbered
        frozenset(places.tolist()): int(weight)
        for places, weight in zip(whole.cell_places, weights, strict=True)
    }
    assert set(weight_of) == set(table.rows)
    for context in list(some_contexts(table))[-1:-5:-3]:
        (words,) = table.table.words(table.masks([context]))
        found = whole.neighbour_totals(words, weights, table.width)
        around = neighbours(context, range(table.width))
        cells = [{table.rows[i] for i in table.covered(other)} for other in around]
        assert found.tolist() == [sum(map(weight_of.__getitem__, inside)) for inside in cells]


@widest
def test_distributions_are_those_of_plain_loops(shape: str) -> None:
    table = drawn(shape)
    for context in some_contexts(table):
        (mask,) = table.masks([context])
        values, counts = table.table.distribution(mask)
        expected = sorted(table.metric[i] for i in table.covered(context))
        assert np.repeat(values, counts).tolist() == expected


# -- contexts of 1,000 values ---------------------------------------------------------------------


@widest
def test_a_context_of_a_thousand_values_survives_every_form(shape: str) -> None:
    table = drawn(shape)
    for positions in list(some_contexts(table))[::5]:
        context = table.context(positions)
        (mask,) = table.masks([positions])
        assert context.mask == mask
        assert len(context.bits) == 1000
        assert {p for p, bit in enumerate(context.bits) if bit == "1"} == positions
        assert len(context) == len(positions)
        for form in (str(context), context.bits, f"<{context.bits}>", json.dumps(context.values)):
            assert pcor.Context.parse(table.schema, form) == context
        assert pcor.Context(table.schema, context.values) == context
        assert pcor.Context.from_mask(table.schema, mask) == context
        (words,) = table.table.words([mask])
        assert sum(int(word) << 64 * place for place, word in enumerate(words)) == mask


@widest
def test_flipping_any_of_a_thousand_values_twice_gives_back_the_context(shape: str) -> None:
    table = drawn(shape)
    context = table.context(list(some_contexts(table))[-1])
    found = [neighbour.mask for neighbour in context.neighbours()]
    assert len(set(found)) == len(found)
    assert all((mask ^ context.mask).bit_count() == 1 for mask in found)
    position = (found[-1] ^ context.mask).bit_length() - 1
    assert context.flip(position).flip(position) == context


@widest
def test_the_condition_of_a_thousand_values_selects_the_population(shape: str) -> None:
    table = drawn(shape)
    with duckdb.connect() as database:
        database.execute("PRAGMA disable_optimizer")  # seconds for hundreds of conditions
        database.register("people", table.frame)
        for positions in list(some_contexts(table))[::9]:
            where = table.context(positions).where()
            found = database.execute(f"SELECT pay FROM people WHERE {where}").fetchall()  # noqa: S608
            expected = [table.metric[i] for i in table.covered(positions)]
            assert sorted(pay for (pay,) in found) == sorted(expected)


# -- searches and releases ------------------------------------------------------------------------

SAMPLES = 6
SAMPLING = {
    "uniform": pcor.Uniform(samples=SAMPLES),
    "random_walk": pcor.RandomWalk(samples=SAMPLES),
    "depth_first": pcor.DepthFirst(samples=SAMPLES),
    "breadth_first": pcor.BreadthFirst(samples=SAMPLES),
}


def alone(shape: str) -> SmallRows:
    """A table of 200 rows in which the record lies far out by itself."""
    return drawn(shape, 200, crowded=False)


@widest
@every_rule
@pytest.mark.parametrize("search", SAMPLING)
def test_a_released_context_of_a_thousand_values_is_valid(
    shape: str, rule: str, search: str
) -> None:
    # Every row differs from the record in at most three values, so a context drawn uniformly covers
    # each with a chance of at least 1/8, and 100,000 are tried: too few rows in all of them, and
    # with that a false alarm, has a chance far below 2^-1000.
    table = alone(shape)
    start = None if search == "uniform" else pcor.Context.full(table.schema)
    released = pcor.release(table.table, 0, 1, RULES[rule][0], search, samples=SAMPLES, start=start)
    assert table.answer(rule, frozenset(p for p, b in enumerate(released.context.bits) if b == "1"))
    assert released.context.covers(
        {a.name: table.frame[a.name][0].as_py() for a in table.schema.attributes}
    )
    written = json.loads(json.dumps(released.to_dict()))
    assert written["bits"] == released.context.bits
    assert pcor.Context(table.schema, written["context"]) == released.context


@widest
@every_rule
@pytest.mark.parametrize("search", SAMPLING)
def test_all_candidates_at_a_thousand_values_are_valid_and_as_the_search_says(
    shape: str, rule: str, search: str
) -> None:
    table = alone(shape)
    explorer = Explorer(table.validity(rule), pcor.testing.seeded(0), lambda m: len(m) // 2, 1000)
    candidates = SAMPLING[search].explore(explorer)
    assert len(candidates) == SAMPLES
    for mask in candidates:
        assert table.answer(rule, frozenset(p for p in range(table.width) if mask >> p & 1))
    if search == "random_walk":
        assert all((one ^ two).bit_count() == 1 for one, two in pairwise(candidates))
    if search in ("depth_first", "breadth_first"):
        assert len(set(candidates)) == SAMPLES
        for place, mask in enumerate(candidates[1:], start=1):
            before = candidates[:place]
            assert any((mask ^ other).bit_count() == 1 for other in before)


def test_no_valid_context_among_a_thousand_values_is_said_when_the_tries_are_used_up() -> None:
    table = alone("10 x 100")
    never = pcor.Grubbs(min_population=1000)
    with pytest.raises(NoValidContext, match="a start context"):
        pcor.release(table.table, 0, 1, never, pcor.BreadthFirst(tries=500))


# -- sizes ----------------------------------------------------------------------------------------


@wide
def test_a_plan_names_the_size_of_the_space(shape: str) -> None:
    table = drawn(shape)
    free = table.width - len(table.sizes)
    plan = pcor.plan(table.schema, 1, search="breadth_first")
    assert plan.space == 2**free
    written = f"{2**free:,}" if free < 64 else f"2^{free}"
    assert f"{written} contexts can contain a record" in str(plan)
    stated = json.loads(json.dumps(plan.to_dict(), allow_nan=False))["possible_contexts"]
    assert stated == (2**free if free < 53 else written)


@widest
def test_the_direct_mechanism_is_refused_before_any_row_is_looked_at(shape: str) -> None:
    table = drawn(shape)
    free = table.width - len(table.sizes)
    sentence = rf"^search 'direct' draws among all 2\^{free} contexts .*use search='widest_first'$"
    with pytest.raises(TooLarge, match=sentence):
        pcor.plan(table.schema, 1, search="direct")
    budget = pcor.Budget(1)
    with pytest.raises(TooLarge, match=sentence):
        pcor.release(table.table, 0, 1, search=pcor.Direct(limit=2**2000), budget=budget)
    assert budget.left == 1
    with pytest.raises(TooLarge, match=rf"2\^{free} possible contexts"):
        pcor.matching_contexts(table.table, 0)
    assert pcor.plan(table.schema, 1).search.name == "widest_first"


# -- memory ---------------------------------------------------------------------------------------

PEOPLE, ATTRIBUTES, VALUES = 20_000, 10, 100
STEPS = 20  # paid choices of the breadth-first search
WORD = 8  # bytes

# What a release may take, in bytes, 1,000 values being 16 words:
LIMIT = (
    # the needed bits of each pair and of each cell, and one narrowed copy of both;
    2 * 2 * PEOPLE * 16 * WORD
    # for each row some ten numbers (metric, cell, count, sums), and the place of each value, each
    # in at most three copies while the table is built;
    + 3 * PEOPLE * (10 + ATTRIBUTES) * WORD
    # while rows are grouped, four numbers for each cell and value of one more attribute;
    + 4 * PEOPLE * (VALUES + 1) * WORD
    # for each context that came into reach the integer of its mask (160 bytes) and its entries in
    # three dictionaries and lists (100 bytes each), twice while a dictionary grows;
    + 2 * STEPS * ATTRIBUTES * VALUES * (160 + 3 * 100)
    # and what the allocator keeps.
    + (32 << 20)
)

# A small release first, so that programs are loaded and compiled before memory is measured.
MEASURED = """
import resource, sys
import numpy as np, pyarrow as pa, pcor

def released(people, attributes, values, samples):
    rng = np.random.default_rng(0)
    domains = {f"a{i}": list(range(values)) for i in range(attributes)}
    columns = {name: pa.array(rng.integers(0, values, people)) for name in domains}
    metric = rng.normal(0, 1, people)
    metric[0] = 50
    schema = pcor.Schema(metric="pay", attributes=domains)
    table = pcor.Table(pa.table(columns | {"pay": metric}), schema)
    full = pcor.Context.full(schema)
    pcor.release(table, 0, 1, "lof", "breadth_first", samples=samples, start=full)
    for detector in ("grubbs", "histogram"):  # these judge all rows anew at every step
        pcor.release(table, 0, 1, detector, "breadth_first", samples=2, start=full)
    return len(table.cells.cell_numbers)

people, attributes, values, samples = map(int, sys.argv[1:])
unit = 1 if sys.platform == "darwin" else 1024
released(500, attributes, values, 3)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
cells = released(people, attributes, values, samples)
print(cells, unit * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before))
"""


def test_a_release_at_a_thousand_values_takes_memory_by_rows_and_words() -> None:
    sizes = (PEOPLE, ATTRIBUTES, VALUES, STEPS)
    done = subprocess.run(  # noqa: S603 (our own program)
        [sys.executable, "-c", MEASURED, *map(str, sizes)],
        capture_output=True,
        text=True,
        check=True,
    )
    cells, grown = map(int, done.stdout.split())
    assert cells == PEOPLE  # every row is its own cell
    assert LIMIT < PEOPLE * ATTRIBUTES * VALUES * WORD  # not even a number for each row and value
    assert grown < LIMIT
