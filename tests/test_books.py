"""The books under pressure: text that cannot be sent, damage, refusals without end."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pytest

import pcor
from pcor.errors import ParameterError
from pcor.ledger import Ledger
from pcor.ledger.entries import Entry
from pcor.ledger.request import canonical
from tests.ledger_clients import DATASET, EACH, OUTLIER, SETTINGS, table
from tests.postgres import postgres
from tests.test_cli import pcor_

HALF = "\ud800"  # of a surrogate pair: UTF-8 cannot hold it


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty place for a ledger: a file, and a database of a real PostgreSQL."""
    if request.param == "sqlite":
        return str(tmp_path / "books.db")
    return postgres().new_database()


@pytest.fixture
def ledger(url: str) -> Iterator[Ledger]:
    opened = Ledger(url)
    opened.set_budget(DATASET, 1)
    yield opened
    opened.close()


# -- text that cannot be sent ---------------------------------------------------------------------


@contextmanager
def before_the_rule() -> Iterator[None]:
    """Let through what was let through before text had to be printable."""
    with (
        patch("pcor.domain.is_printable", lambda _: True),
        patch("pcor.ledger.request.is_printable", lambda _: True),
    ):
        yield


@pytest.mark.parametrize("name", ["dataset", "analyst", "key", "version", "record"])
@pytest.mark.parametrize("bad", [f"x{HALF}", "x\x1b", "x\x00y"], ids=ascii)
def test_a_name_that_cannot_be_printed_is_refused_before_any_charge(
    ledger: Ledger, name: str, bad: str
) -> None:
    given = {"record": OUTLIER, "dataset": DATASET, name: bad}
    before = list(ledger.entries())
    with pytest.raises(ParameterError, match="print") as refused:
        request_of(**given)
    str(refused.value).encode()
    with pytest.raises(pcor.errors.PcorError):
        ledger.release(table(), epsilon=EACH, **SETTINGS, **given)  # type: ignore[arg-type]
    assert list(ledger.entries()) == before


def request_of(**given: object) -> pcor.ledger.Request:
    """Return a request with some names."""
    planned = pcor.plan(table().schema, EACH, **SETTINGS)
    return pcor.ledger.Request.of(planned, **{"analyst": "owner", **given})  # type: ignore[arg-type]


def test_books_of_before_that_hold_such_text_are_exported_and_verified(
    ledger: Ledger, url: str, tmp_path: Path
) -> None:
    with before_the_rule():
        jobs = ["clerk", "cook", "pilot", HALF]
        schema = pcor.Schema(metric="pay", attributes={"job": jobs}, name=f"people{HALF}")
        people = {"job": ["clerk"] * 30, "pay": [100.0 + row % 7 for row in range(29)] + [900.5]}
        odd = pcor.Table(pa.table(people), schema)
        released = ledger.release(odd, 29, EACH, dataset=DATASET, **SETTINGS)
        ledger.charge(request_of(record=f"x{HALF}", dataset=DATASET))
    assert ledger.verify().ok
    stream, file = io.StringIO(), tmp_path / "books.jsonl"
    assert ledger.export(stream) == ledger.export(file) == 4
    assert stream.getvalue() == file.read_text(encoding="utf-8")
    for line in stream.getvalue().splitlines():
        read = json.loads(line)
        assert Entry(**read | {"body": canonical(read["body"])}).sealed() == read["hash"]
    for words in (["export"], ["verify", "--json"], ["show"]):
        command, *options = words
        assert pcor_("ledger", command, url, *options).code == 0
    released.save(tmp_path / "certificate.json")
    released.save(tmp_path / "certificate.html")
    assert json.loads((tmp_path / "certificate.json").read_text("utf-8")) == released.to_dict()
