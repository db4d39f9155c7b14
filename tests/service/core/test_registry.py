"""Registrations that other versions of PCOR wrote: none keeps the others from being read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet
from sqlalchemy import insert, select

from pcor.errors import ParameterError
from pcor.service.core import tables
from pcor.service.core.registry import Registration, read_registrations
from tests.helpers.service_world import DATASET, World, columns, registration, world


@pytest.fixture
def place(tmp_path: Path) -> Iterator[World]:
    with world(str(tmp_path / "books.db"), tmp_path) as made:
        yield made


def write_newer(place: World, name: str) -> None:
    """Write a registration with an option that this version does not know."""
    columns = tables.datasets.c
    with place.service.ledger.database.writing() as connection:
        chosen = select(columns.body).where(columns.name == DATASET)
        body = json.loads(connection.execute(chosen).scalars().all()[0])
        body["options"]["of_a_later_version"] = 1
        row = {"name": name, "version": 1, "made": 0, "body": json.dumps(body)}
        connection.execute(insert(tables.datasets).values(**row))


def test_a_registration_that_cannot_be_read_hides_no_other_and_can_be_replaced(
    place: World,
) -> None:
    write_newer(place, "later")
    with place.service.ledger.database.reading() as connection:
        assert [one.name for one in read_registrations(connection)] == [DATASET]
    assert place.send("owner", "GET", "/v1/datasets").status_code == 200
    put = place.send("owner", "PUT", "/v1/datasets/later", json=registration())
    assert put.status_code in (200, 201), put.text
    with place.service.ledger.database.reading() as connection:
        assert {one.name for one in read_registrations(connection)} == {DATASET, "later"}


def test_a_question_whose_plan_is_refused_by_the_rules_of_today_is_answered_so(
    place: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: Any) -> Any:
        raise ParameterError("no longer allowed")

    drawer = place.service.drawer
    draw = drawer._draw

    def later(job: Any) -> Any:
        with monkeypatch.context() as patch:
            patch.setattr(Registration, "plan", refused)
            return draw(job)

    monkeypatch.setattr(drawer, "_draw", later)
    found = place.wait(place.ask().json()["id"])
    assert found["error"]["kind"] == "parameter"
    assert "no longer allowed. This answer is paid for" in json.dumps(found["error"])


def test_a_person_with_too_many_rows_is_refused_and_not_named(
    place: World, caplog: pytest.LogCaptureFixture
) -> None:
    whole = registration(source="more.parquet")
    whole["schema"]["dataset"] |= {"person": "name", "rows_per_person": 3}
    names = ["CANARY-PERSON"] * 100 + [f"CANARY-{number}" for number in range(20)]
    rows = pa.table(columns() | {"name": names})
    parquet.write_table(rows, place.service.settings.data / "more.parquet")
    answer = place.send("owner", "PUT", "/v1/datasets/more", json=whole)
    assert 400 <= answer.status_code < 500
    assert "more rows than rows_per_person = 3 allows" in answer.text
    for private in ("CANARY", "100", "120"):
        assert private not in answer.text + caplog.text
