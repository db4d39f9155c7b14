"""Families in every engine: COE by the definition, and the draws of the same rows in memory."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import csv

import pcor
from pcor.testing import seeded
from tests.helpers.engines import LOCAL, SERVERS
from tests.helpers.family_tables import TWINS, FamilyTable, family_table

# PySpark before 4.2 leaves its sockets to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")

# Every kind of family at once, and both limits.
MIXED = pcor.Schema(
    metric="metric",
    attributes={
        "city": {
            "values": ["Rome", "Köln", "it's", "Bonn", "Oslo"],
            "groups": {"near": ["Köln", "Bonn"], "nearer": ["near", "it's"]},
        },
        "year": {"values": [2019, 2020, 2021, 2022], "contexts": "range"},
        "job": {"values": ["cook", "clerk"], "contexts": "one"},
        "team": ["a", "b", "c"],
    },
    max_clauses=3,
    max_named=4,
)


def mixed(seed: int, rows: int = 60) -> FamilyTable:
    """Return a random table of all families, with a record that stands out."""
    numbers = random.Random(seed)  # noqa: S311 (test data)
    codes = tuple(
        tuple(numbers.randrange(len(a.values)) for a in MIXED.attributes) for _ in range(rows)
    )
    metric = [numbers.randrange(80) / 4 for _ in range(rows - 1)]
    return FamilyTable(MIXED, codes, (*metric, 90.25), rows - 1)


MANY = [mixed(0), mixed(1), *(family_table(seed) for seed in range(8))]

# Whatever holds rows; each question to a server takes longer, to Spark most of a second.
CASES = dict.fromkeys((*LOCAL, "csv"), MANY) | {"postgresql": MANY[:4], "spark": MANY[:1]}


def schema_of(case: FamilyTable) -> pcor.Schema:
    """Return the schema of a case with an id: servers have no order of rows."""
    return pcor.Schema.from_dict(case.schema.to_dict() | {"dataset": {"id": "key"}})


def rows_of(case: FamilyTable) -> pa.Table:
    return case.frame.append_column("key", pa.array(range(len(case.codes))))


def table_in(engine: str, case: FamilyTable, folder: Path) -> pcor.Table:
    """Return the rows of a case where an engine keeps them."""
    rows, schema = rows_of(case), schema_of(case)
    folder.mkdir()
    if engine == "csv":
        csv.write_csv(rows, folder / "rows.csv")
        return pcor.Table(folder / "rows.csv", schema, memory="1GiB")
    return pcor.Table((LOCAL | SERVERS)[engine](rows, folder), schema)


@pytest.fixture(scope="module", params=list(CASES))
def tables(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> list[tuple[FamilyTable, pcor.Table]]:
    folder = tmp_path_factory.mktemp("families")
    return [
        (case, table_in(request.param, case, folder / str(number)))
        for number, case in enumerate(CASES[request.param])
    ]


def test_coe_is_the_valid_contexts_of_the_family_by_its_definition(
    tables: list[tuple[FamilyTable, pcor.Table]],
) -> None:
    valid = 0
    for case, table in tables:
        assert table.pushdown is not None  # or this would look at rows in memory
        for detector, twin in TWINS.values():
            expected = case.coe(twin, detector.min_population)
            if expected is not None:
                found = pcor.matching_contexts(table, case.record, detector)
                masks = [context.mask for context in found.contexts]
                assert dict(zip(masks, found.populations.tolist(), strict=True)) == expected
                valid += len(expected)
    assert valid > 10


def test_a_draw_is_the_one_of_the_same_rows_in_memory(
    tables: list[tuple[FamilyTable, pcor.Table]],
) -> None:
    """Exact and by a walk, with brevity and without, under both guarantees."""
    ways: list[dict[str, Any]] = [
        {"detector": pcor.LOF(k=3, min_population=5), "search": "direct"},
        {"detector": pcor.Grubbs(alpha=0.2, min_population=5), "search": "direct", "brevity": 2},
        {"detector": TWINS["histogram"][0], "search": "random_walk", "samples": 4, "brevity": 1},
        {"detector": TWINS["tail"][0], "guarantee": "dp", "brevity": 1},
        {"detector": TWINS["neighbourhood"][0], "guarantee": "dp"},
    ]
    drawn = 0
    for case, table in tables:
        memory = pcor.Table(rows_of(case), schema_of(case))
        for way in ways:
            one, other = (_drawn(t, case.record, way) for t in (table, memory))
            assert one == other
            drawn += isinstance(one, dict)
    assert drawn > len(tables) * 2  # not by counting alone, which always draws


def _drawn(table: pcor.Table, record: int, way: dict[str, Any]) -> dict[str, Any] | str:
    """Return a seeded release but for its engine, or why there is none."""
    try:
        found = pcor.release(table, record, 1, **way, chooser=seeded(1)).to_dict()
    except pcor.errors.NoValidContext as error:
        return str(error)
    found.pop("engine")
    return found
