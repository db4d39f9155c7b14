"""All records of a run share the passes over rows that lie elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest

import pcor
from pcor.errors import ParameterError, RecordError, TooLarge
from pcor.ledger import Ledger
from pcor.releasing.batch.lookup import Lookup
from pcor.rows.keys import find_several
from tests.helpers.batches import LOOSE
from tests.helpers.engines import LOCAL, SERVERS
from tests.helpers.engines import SCHEMA as ENGINE_SCHEMA
from tests.helpers.engines import people as engine_people
from tests.helpers.ledger_clients import DATASET

MAKERS = {**LOCAL, "postgresql": SERVERS["postgresql"]}


@pytest.mark.parametrize("engine", MAKERS)
def test_many_keys_are_found_at_once_as_one_by_one(engine: str, tmp_path: Path) -> None:
    rows = engine_people(60)
    keys = rows["key"].to_pylist()
    rows = rows.set_column(0, "key", pa.array([*keys[:-1], keys[0]]))  # the first twice
    lazy = pcor.Table(MAKERS[engine](rows, tmp_path), ENGINE_SCHEMA)
    check_found(lazy, [keys[0], keys[1], keys[7], 4, "name", -1, 1 << 70])


@pytest.mark.parametrize("engine", MAKERS)
def test_keys_that_are_texts_are_found_at_once_as_one_by_one(engine: str, tmp_path: Path) -> None:
    rows = engine_people(60)
    names = ["it's", "017", "17", "é", "a\\b", *(f"n{place}" for place in range(55))]
    rows = rows.set_column(0, "key", pa.array(names))
    lazy = pcor.Table(MAKERS[engine](rows, tmp_path), ENGINE_SCHEMA)
    check_found(lazy, ["it's", "017", 17, "é", "a\\b", "n3", "N3", 18])


def check_found(lazy: pcor.Table, keys: list[int | str]) -> None:
    """Compare what is found at once with what ``Table.record`` finds."""

    def look(rows: pcor.Table, key: int | str) -> object:
        try:
            found = rows.record(key)
        except RecordError as error:
            return str(error)
        return found.key, found.value, found.space

    together = Lookup(lazy)
    together.look_up(keys)
    assert len(together._known) >= 4
    assert [look(together.table, key) for key in keys] == [look(lazy, key) for key in keys]


def test_row_numbers_are_looked_up_one_by_one(tmp_path: Path) -> None:
    numbered = pcor.Schema(metric="pay", attributes={"year": [2019, 2020, 2021]})
    lazy = pcor.Table(LOCAL["duckdb"](engine_people(60), tmp_path), numbered)
    assert lazy.pushdown is not None
    assert find_several(lazy.pushdown, [1, 2, 3]) == {}
    results = pcor.release_many(lazy, [1, 59, 60], 1, **LOOSE)
    assert isinstance(results[2], RecordError)


@pytest.mark.parametrize(
    "detector", ["lof:k=5", "grubbs", "histogram", "tail", "rare_bin:edges=0|900|2000"]
)
def test_all_records_share_the_passes_over_rows_that_lie_elsewhere(
    detector: str, tmp_path: Path
) -> None:
    rows = engine_people(200)
    how: dict[str, Any] = {"detector": detector, "chooser": pcor.testing.seeded(3)}
    keys = rows["key"].to_pylist()[:20:2]

    def asked(records: list[int]) -> tuple[int, list[Any]]:
        lazy = pcor.Table(LOCAL["duckdb"](rows, tmp_path), ENGINE_SCHEMA)
        assert lazy.pushdown is not None
        engine = lazy.pushdown.engine
        real, queries = engine.run, 0

        def run(query: str) -> pa.Table:
            nonlocal queries
            queries += 1
            return real(query)

        engine.run = run  # type: ignore[method-assign]
        how["chooser"] = pcor.testing.seeded(3)
        found = pcor.release_many(lazy, records, 1, **how)
        return queries, found.to_dict()["results"]

    few, _ = asked(keys[:2])
    more, found = asked(keys)
    assert more == few <= 3
    how["chooser"] = pcor.testing.seeded(3)
    local = pcor.release_many(pcor.Table(rows, ENGINE_SCHEMA), keys, 1, **how).to_dict()["results"]
    for one in (*found, *local):
        one["answer"].pop("engine", None)
    assert found == local


def test_no_row_decides_the_order_of_entries_by_a_limit_of_the_engine(
    tmp_path: Path, ledger: Ledger
) -> None:
    """One more row, and the pairs of all records together are above the limit."""
    rows = engine_people(200)
    keys, rule = rows["key"].to_pylist()[:6], "histogram:rare=0.02"

    def order(people: pa.Table, pairs: int, dataset: str) -> list[tuple[str, int]]:
        lazy = pcor.Table(LOCAL["duckdb"](people, tmp_path), ENGINE_SCHEMA, pairs=pairs)
        ledger.set_budget(dataset, 10)
        how: dict[str, Any] = {"ledger": ledger, "dataset": dataset}
        try:
            pcor.release_many(lazy, keys, 1, workers=2, detector=rule, **how)
        except pcor.errors.TooLarge:
            assert ledger.status(dataset).spent["ocdp"] == 0  # as the table alone decides
            return []
        found = [e for e in ledger.entries(dataset) if e.kind in ("charge", "answer")]
        records = {e.key: e.content["request"]["record"] for e in found if e.kind == "charge"}
        return [(entry.kind, records[entry.key]) for entry in found]

    def most(people: pa.Table) -> int:
        """Return how many pairs the records of a round need together."""
        lazy = pcor.Table(LOCAL["duckdb"](people, tmp_path), ENGINE_SCHEMA)
        needed = []
        assert lazy.pushdown is not None
        real = lazy.pushdown.pairs

        def pairs(*ends: float) -> Any:
            found = real(*ends)
            needed.append(len(found.values))
            return found

        with patch.object(lazy.pushdown, "pairs", pairs):
            pcor.release_many(lazy, keys, 1, workers=2, detector=rule)
        return max(needed)

    one = rows.slice(0, 1).set_column(0, "key", pa.array([9_999]))
    more = pa.concat_tables([rows, one.set_column(4, "pay", pa.array([1003.125]))])
    limit = most(rows)
    assert most(more) == limit + 1
    first, second = order(rows, limit, "first"), order(more, limit, "second")
    public = [("charge", key) for key in keys[:4]]
    public += [("answer", keys[0]), ("charge", keys[4]), ("answer", keys[1]), ("charge", keys[5])]
    public += [("answer", key) for key in keys[2:]]
    assert first in ([], public)
    assert second in ([], public)


def test_an_engine_that_fails_ends_the_run_before_anything_is_charged(
    tmp_path: Path, ledger: Ledger
) -> None:
    rows = engine_people(200)
    lazy = pcor.Table(LOCAL["duckdb"](rows, tmp_path), ENGINE_SCHEMA)
    assert lazy.pushdown is not None
    with (
        patch.object(lazy.pushdown.engine, "run", side_effect=RuntimeError("a cell: 400.5")),
        pytest.raises(pcor.errors.SourceError, match="could not answer") as raised,
    ):
        pcor.release_many(lazy, [3, 10], 1, ledger=ledger, dataset=DATASET, **LOOSE)
    assert "400.5" not in str(raised.value)
    assert ledger.status(DATASET).spent["ocdp"] == 0


FAILING = 1900.5


class Curious(pcor.LOF):
    """Tells something about the rows by failing."""

    def window_on(self, value: float, low: float, high: float) -> Any:
        if value == FAILING or high > 1e9:
            raise ValueError("a cell: 400.5")
        return super().window_on(value, low, high)


@pytest.mark.parametrize("facts", [None, "count,rank,median"])
@pytest.mark.parametrize("largest", [2500.0, 2e9], ids=["of a record", "of all rows"])
def test_what_the_users_own_code_says_of_the_rows_is_paid_for(
    largest: float, facts: str | None, tmp_path: Path, ledger: Ledger
) -> None:
    """Were it free, one could ask for it as often as one likes."""
    pay = [FAILING, largest, *np.arange(1000.0, 1098.0)]
    rows = engine_people(100).set_column(4, "pay", pa.array(pay))
    whole = ENGINE_SCHEMA.to_dict()
    whole["metric"] |= {"low": 0, "high": 3000, "step": 10}
    lazy = pcor.Table(LOCAL["duckdb"](rows, tmp_path), pcor.Schema.from_dict(whole))
    keys = rows["key"].to_pylist()[:5]
    how: dict[str, Any] = {"detector": Curious(k=5), "facts": facts}
    books: dict[str, Any] = {"ledger": ledger, "dataset": DATASET}
    for paid in ({"budget": pcor.Budget(10)}, books):
        found = pcor.release_many(lazy, keys, 1, **how, **paid)
        assert found.charged == 5
        failed = [isinstance(one, ParameterError) for one in found]
        assert failed == ([True] * 5 if largest > 1e9 else [True, *[False] * 4])
        assert "400.5" not in str(found[0])
    assert pcor.release_many(lazy, keys, 1, **how, **books).charged == 0


def test_what_an_engine_may_not_hand_over_is_refused_for_free_beside_code_that_fails(
    tmp_path: Path, ledger: Ledger
) -> None:
    class Failing(pcor.Grubbs):
        def window_on(self, value: float, low: float, high: float) -> Any:
            if value == FAILING:
                raise ValueError
            return super().window_on(value, low, high)

    pay = [FAILING, *np.arange(1000.0, 1099.0)]
    rows = engine_people(100).set_column(4, "pay", pa.array(pay))
    lazy = pcor.Table(LOCAL["duckdb"](rows, tmp_path), ENGINE_SCHEMA, pairs=60)
    how: dict[str, Any] = {"detector": Failing(), "ledger": ledger, "dataset": DATASET}
    with pytest.raises(TooLarge, match="distinct pairs"):
        pcor.release_many(lazy, rows["key"].to_pylist()[:2], 1, **how)
    assert ledger.status(DATASET).spent["ocdp"] == 0
