"""A record is found by its id, or by its number where there is none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pcor import Grubbs, Schema, Table, outliers
from pcor.errors import RecordError
from tests.helpers.pay_tables import BY_ROW, PAY, STAFF, as_csv, people, staff


def test_a_record_is_found_by_its_id() -> None:
    record = Table(people(), PAY).record(2)
    assert (record.key, record.value, record.space.fixed) == (2, 20.0, 0b10)


def test_a_record_is_found_by_its_row_number_from_0() -> None:
    assert Table(people(), BY_ROW).record(2).value == 30.0


def test_dropped_rows_keep_their_row_numbers() -> None:
    schema = Schema(metric="pay", attributes={"job": {"values": ["CEO"], "outside": "drop"}})
    assert Table(people(), schema).record(2).value == 30.0


def test_outliers_are_named_by_the_row_numbers_of_the_source() -> None:
    schema = Schema(metric="pay", attributes={"job": {"values": ["CEO"], "outside": "drop"}})
    job = ["Astronaut", "CEO", *["CEO", "Astronaut"] * 30]
    pay = [1.0, 99.0, *[1.0, 5.0, 1.5, 5.0] * 15]
    rows = pa.table({"job": job, "pay": pay})
    assert outliers(Table(rows, schema), detector=Grubbs()) == [1]


@pytest.mark.parametrize(
    ("schema", "key"),
    [
        (PAY, 4),
        (PAY, "4"),
        (PAY, "two"),
        (PAY, 10**30),
        (PAY, -1),
        (BY_ROW, 3),
        (BY_ROW, -1),
        (BY_ROW, "x"),
    ],
)
def test_an_unknown_record_is_refused_by_its_name(schema: Schema, key: int | str) -> None:
    with pytest.raises(RecordError, match=f"no record with (key|row number) '?{key}"):
        Table(people(), schema).record(key)


def test_a_dropped_row_is_no_record() -> None:
    schema = Schema(metric="pay", attributes={"job": {"values": ["CEO"], "outside": "drop"}})
    with pytest.raises(RecordError, match="no record with row number 1 among the rows that fit"):
        Table(people(), schema).record(1)


@pytest.mark.parametrize("key", [True, 2.0, None, [2]])
def test_a_record_is_named_by_a_whole_number_or_a_text(key: Any) -> None:
    with pytest.raises(RecordError, match="named by a whole number or a text"):
        Table(people(), PAY).record(key)


def test_an_id_of_two_rows_names_no_record() -> None:
    with pytest.raises(RecordError, match="key 1 names more than one row; the id column must be"):
        Table(people(key=[1, 1, 2]), PAY).record(1)


@pytest.mark.parametrize(
    "keys",
    [
        pa.array([1, 2, 3]),
        pa.array(["1", "2", "3"]),
        pa.array([1.0, 2.0, None]),
        pa.array([2**64 - 1, 2, 3], pa.uint64()),
        pa.array([1, 2, 3]).dictionary_encode(),
        pa.array(["1", "2", None]).dictionary_encode(),
    ],
)
@pytest.mark.parametrize("asked", [2, "2", np.int64(2)])
def test_an_id_is_found_however_it_is_stored_and_asked_for(keys: pa.Array, asked: Any) -> None:
    record = Table(people(key=keys), PAY).record(asked)
    assert (record.key, record.value) == (2, 20.0)


def test_a_text_id_keeps_its_leading_zeros() -> None:
    table = Table(people(key=["7", "007", "07"]), PAY)
    assert (table.record("007").value, table.record("007").key) == (20.0, "007")


@pytest.mark.parametrize("key", ["o'Hara; --", "zwei Wörter", "🙂"])
def test_any_text_may_be_an_id(key: str) -> None:
    assert Table(people(key=["a", key, "b"]), PAY).record(key).value == 20.0


def test_every_outlier_can_be_asked_for_by_the_name_it_is_given(tmp_path: Path) -> None:
    names = outliers(Table(as_csv(staff(), tmp_path), STAFF))
    table = Table(staff(), STAFF)
    assert [table.record(name).key for name in names] == names
