"""Limits are met by the table, for every record alike, before anything is charged."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv

import pcor
from pcor.errors import NoValidContext, SourceError, TooLarge
from pcor.rows import encoding
from pcor.search.margin import LARGEST_FACTOR, margin_scores
from tests.helpers.changing_rows import DP, RECORD, SCHEMA, Median, people
from tests.helpers.engines import LOCAL

UNBOUNDED = [
    pcor.Grubbs(),
    pcor.Grubbs(tail="upper"),
    pcor.Grubbs(tail="lower"),
    pcor.LOF(k=3, ties="all"),
    pcor.Histogram(),
    pcor.Estimator(lambda values: values > 1400),
]


def distinct_pairs(rows: pa.Table) -> int:
    return len(set(zip(*(rows[n].to_pylist() for n in ("job", "city", "pay")), strict=True)))


@pytest.mark.parametrize("engine", ["duckdb", "polars", "sqlite"])
@pytest.mark.parametrize("detector", UNBOUNDED, ids=lambda d: f"{d.name}-{getattr(d, 'tail', '')}")
def test_a_limit_is_met_by_the_table_for_every_record_alike_and_before_the_charge(
    engine: str, detector: pcor.detectors.Detector, tmp_path: Path
) -> None:
    rows = people(400)
    source, pairs = LOCAL[engine](rows, tmp_path), distinct_pairs(rows)
    assert pairs < 400
    for limit in (pairs - 1, pairs):
        table, budget = pcor.Table(source, SCHEMA, pairs=limit), pcor.Budget(5)
        for key in (0, 1, 77, 123, 399):
            if limit < pairs:
                with pytest.raises(TooLarge, match=f"{limit} distinct .* for any record"):
                    pcor.release(table, key, 1, detector, budget=budget)
            else:
                with suppress(NoValidContext):
                    pcor.release(table, key, 1, detector, budget=budget)
        assert budget.left == (5 if limit < pairs else 0)


def test_a_batch_meets_the_limit_before_any_charge(tmp_path: Path) -> None:
    rows = people(400)
    for engine in ("duckdb", "sqlite"):
        source = LOCAL[engine](rows, tmp_path)
        table, budget = pcor.Table(source, SCHEMA, pairs=distinct_pairs(rows) - 1), pcor.Budget(5)
        with pytest.raises(TooLarge, match="for any record"):
            pcor.release_many(table, [0, 1, 2], 1, detector="grubbs:tail=upper", budget=budget)
        assert budget.left == 5


def test_a_utility_that_looks_at_all_values_meets_the_limit_wherever_it_looks(
    tmp_path: Path,
) -> None:
    """One small population would fit; which ones do is private."""
    rows = people(400)
    table = pcor.Table(LOCAL["duckdb"](rows, tmp_path), SCHEMA, pairs=distinct_pairs(rows) - 1)
    for mask in (0b01001, 0b11111):
        with pytest.raises(TooLarge, match="for any record"):
            table.distribution(mask)


def test_a_utility_of_ones_own_meets_the_limit_before_the_charge(tmp_path: Path) -> None:
    rows = people(400)
    table = pcor.Table(LOCAL["duckdb"](rows, tmp_path), SCHEMA, pairs=distinct_pairs(rows) - 1)
    budget = pcor.Budget(1)
    with pytest.raises(TooLarge, match="for any record"):
        pcor.release(table, RECORD, 1, pcor.LOF(k=5), utility=Median(), budget=budget)
    assert budget.left == 1


def test_texts_that_share_a_hash_of_the_engine_are_told_apart(tmp_path: Path) -> None:
    """The engine's own hash has no key: such texts can be made, and no salt would part them."""
    one, other = "3519.10100000040", "3519.89900000583"
    same = duckdb.connect().execute("SELECT hash(?) = hash(?)", [one, other]).fetchall()
    assert same == [(True,)]  # or this test shows nothing any more: find another pair
    file = tmp_path / "rows.csv"
    texts = people().set_column(3, "pay", people()["pay"].cast(pa.string()))

    def write(text: str) -> None:
        pay = [text if place == 5 else own for place, own in enumerate(texts["pay"].to_pylist())]
        csv.write_csv(texts.set_column(3, "pay", pa.array(pay)), file)

    write(one)
    table = pcor.Table(file, SCHEMA, memory="1GiB")
    write(other)
    budget = pcor.Budget(1)
    with pytest.raises(SourceError, match="the rows changed"):
        pcor.release(table, RECORD, 1, budget=budget, **DP)
    assert budget.left == 1


def test_a_list_of_one_record_asks_nothing_after_its_charge(tmp_path: Path) -> None:
    table = pcor.Table(LOCAL["duckdb"](people(), tmp_path), SCHEMA)
    asked: list[str] = []
    assert table.pushdown is not None
    engine = table.pushdown.engine
    run = engine.run

    def noted(query: str) -> pa.Table:
        asked.append(query)
        return run(query)

    class Purse(pcor.Budget):
        def spend(self, *words: Any) -> None:
            super().spend(*words)
            vars(engine)["run"] = noted

    pcor.release_many(table, [RECORD], 1, budget=Purse(1), **DP)
    assert asked == []


def test_the_nearest_rows_meet_no_limit_once_the_table_is_made(tmp_path: Path) -> None:
    """What LOF reads is bounded by the cells, which were counted when the table was made."""
    source = LOCAL["polars"](people(400), tmp_path)
    for limit in range(1, 400):
        try:
            table = pcor.Table(source, SCHEMA, pairs=limit)
        except TooLarge:
            continue
        break
    assert 1 < limit < 200
    for key in range(0, 400, 40):
        pcor.matching_contexts(table, key, pcor.LOF(k=20))


@pytest.mark.parametrize("engine", [None, *LOCAL])
def test_a_table_of_more_rows_than_scores_have_room_for_is_refused(
    engine: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert encoding.MOST_ROWS == 2**31 - 1
    source: Any = people() if engine is None else LOCAL[engine](people(), tmp_path)
    monkeypatch.setattr(encoding, "MOST_ROWS", 60)
    pcor.Table(source, SCHEMA)
    monkeypatch.setattr(encoding, "MOST_ROWS", 59)
    with pytest.raises(TooLarge, match="more than 59 rows fit the schema"):
        pcor.Table(source, SCHEMA)


def test_the_scores_of_the_largest_table_do_not_wrap() -> None:
    """The steepest price, all rows in the region or none, against Python's own whole numbers."""
    rule = pcor.Tail(0.000999, min_population=1 << 31)
    a, b = rule.share_exact.numerator, rule.share_exact.denominator
    steepness = LARGEST_FACTOR // b
    n = encoding.MOST_ROWS + 1  # with the row that a neighbour has more
    inside = np.array([0, 1, n])
    counts = np.full(3, n)
    scores = margin_scores(rule, steepness, counts, counts, inside).tolist()
    expected = [min(b * n, b * (n - (1 << 31) + 1), steepness * (a * n - b * c)) for c in (0, 1, n)]
    assert scores == expected
    assert max(scores) - min(scores) < 1 << 62
