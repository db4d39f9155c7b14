"""Tables of who is paid what, and the forms in which people keep them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv, parquet

from pcor import Schema, Table

PAY = Schema(metric="pay", attributes={"job": ["CEO", "Lawyer"]}, id="key")
BY_ROW = Schema(metric="pay", attributes={"job": ["CEO", "Lawyer"]})

# Told apart from anything that a message could hold by chance.
MARK = "Zyzzyva-7391"
MARKED_NUMBER = 73917391.25


def people(**columns: Any) -> pa.Table:
    """Three rows; any column may be given anew."""
    rows = {"key": [1, 2, 3], "job": ["CEO", "Lawyer", "CEO"], "pay": [10.0, 20.0, 30.0]}
    return pa.table(rows | columns)


def counts(table: Table) -> list[int]:
    """How many rows have each value of the first attribute."""
    others = sum(table.schema.attribute_masks[1:])
    first = range(len(table.schema.attributes[0].values))
    return [int(n) for n in table.populations([1 << place | others for place in first])]


def from_text(folder: Path, text: str, schema: Schema = PAY) -> Table:
    path = folder / "rows.csv"
    path.write_text(text, encoding="utf-8", newline="")
    return Table(path, schema)


def job_schema(declared: Any, **metric: Any) -> Schema:
    return Schema(metric={"column": "pay"} | metric, attributes={"job": declared}, id="key")


def as_csv(rows: pa.Table, folder: Path) -> Path:
    csv.write_csv(rows, folder / "rows.csv")
    return folder / "rows.csv"


def as_parquet(rows: pa.Table, folder: Path) -> Path:
    parquet.write_table(rows, folder / "rows.parquet", row_group_size=40)
    return folder / "rows.parquet"


def as_shuffled(rows: pa.Table, _: Path) -> pa.Table:
    return rows.take(np.random.default_rng(7).permutation(len(rows)))


def as_dictionaries(rows: pa.Table, _: Path) -> pa.Table:
    """Every text column as codes, in chunks whose dictionaries differ."""
    halves = [rows.slice(0, 90), rows.slice(90)]
    texts = [field.name for field in rows.schema if field.type == pa.string()]
    for number, half in enumerate(halves):
        for name in texts:
            place = half.schema.get_field_index(name)
            codes = half[name].combine_chunks().dictionary_encode()
            halves[number] = half = half.set_column(place, name, codes)
    return pa.concat_tables(halves)


STAFF = Schema(
    metric="pay",
    attributes={
        "job": ["CEO", "Lawyer", "Medical Doctor"],
        "city": ["Ottawa", "St. John's, NL"],
        "year": [2019, 2020],
        "full time": [True, False],
        "age": {"edges": [18, 30, 50, 99]},
    },
    id="key",
)


def staff() -> pa.Table:
    """180 rows of every kind of column, with ties and a few extremes."""
    rng = np.random.default_rng(11)
    size = 180
    pay = rng.integers(90, 110, size).astype(float)
    pay[[5, 60, 140]] = [400.5, 20.25, 300.0]
    return pa.table(
        {
            "key": rng.permutation(size) + 1000,
            "job": np.array(["CEO", "Lawyer", "Medical Doctor"])[rng.integers(0, 3, size)],
            "city": np.array(["Ottawa", "St. John's, NL"])[rng.integers(0, 2, size)],
            "year": rng.integers(2019, 2021, size),
            "full time": rng.integers(0, 2, size).astype(bool),
            "age": rng.integers(18, 100, size),
            "pay": pay,
            "unused": ["x"] * size,
        }
    )
