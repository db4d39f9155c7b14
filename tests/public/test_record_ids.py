"""Ids that declare what they look like: a mistyped one is refused before anything is charged."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet
from typer.testing import CliRunner

import pcor
from pcor.cli import app
from pcor.errors import DomainError, RecordError, SchemaError
from pcor.service.core.draws import NONE
from tests.helpers.service_world import ANALYST, columns, registration, world

RUN = CliRunner()
PATTERN = "C-[0-9]{3}"
ATTRIBUTES = {"job": ["clerk", "cook", "pilot"], "city": ["Rome", "Oslo"]}
RULE = "grubbs:min_population=5"


def schema(**changes: Any) -> pcor.Schema:
    """Return a schema whose ids are C-000 to C-999."""
    return pcor.Schema("pay", ATTRIBUTES, **{"id": "claim", "id_pattern": PATTERN} | changes)


def rows(ids: list[Any] | None = None) -> pa.Table:
    """Return 120 claims; the one in place 17 is an outlier."""
    named = [f"C-{place:03}" for place in range(120)] if ids is None else ids
    return pa.table(columns() | {"claim": named})


WRONG = [
    "C-17",
    "C-0177",
    "c-017",
    "C-017 ",
    " C-017",
    "C-017\n",
    "C_017",
    17,
    "17",
    "C-\u0660\u0661\u0667",
]


@pytest.fixture(scope="module")
def table() -> pcor.Table:
    return pcor.Table(rows(), schema())


# -- what a schema declares -----------------------------------------------------------------------


def test_a_schema_without_the_new_declarations_is_the_schema_it_was() -> None:
    before = pcor.Schema("pay", ATTRIBUTES, id="claim")
    assert before.to_dict()["dataset"] == {"name": "dataset", "id": "claim"}
    assert before.sha256 == "4febb528dfc654bb51d1d0c9a10198d948ed84d78e2d5679f126747682eca0c6"


def test_the_declarations_survive_every_way_of_writing_a_schema(tmp_path: Path) -> None:
    for declared in (schema(), schema(id_pattern=None, id_type="integer")):
        assert pcor.Schema.from_dict(declared.to_dict()) == declared
        (tmp_path / "s.toml").write_text(declared.to_toml())
        assert pcor.Schema.from_file(tmp_path / "s.toml") == declared
        assert declared != schema(id_pattern=None)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"id": None}, "id_pattern needs an id"),
        ({"id_pattern": None, "id": None, "id_type": "integer"}, "id_type needs an id"),
        ({"id_type": "number"}, 'id_type must be "integer"'),
        ({"id_pattern": ""}, "id_pattern must be"),
        ({"id_pattern": 7}, "id_pattern must be"),
        ({"id_pattern": "["}, "id_pattern must be"),
        ({"id_pattern": "a)|(b"}, "id_pattern must be"),
        ({"id_pattern": r"(a)\1"}, "id_pattern must be"),
        ({"id_pattern": "a{1001}"}, "id_pattern must be"),
        ({"id_pattern": "a" * 201}, "id_pattern must be"),
    ],
)
def test_a_declaration_that_cannot_be_kept_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(SchemaError, match=said):
        schema(**changes)


def test_no_pattern_keeps_anybody_busy() -> None:
    """The classic one that takes 2^200 steps where matching goes back and tries again."""
    declared = schema(id_pattern="(a*)*(a|aa)+b")
    begun = time.thread_time()
    with pytest.raises(RecordError):
        declared.check_id("a" * 200)
    assert time.thread_time() - begun < 5


# -- the table ------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", ["C-1234", "", None])
def test_a_table_whose_own_ids_do_not_fit_is_refused(wrong: str | None) -> None:
    ids: list[Any] = [f"C-{place:03}" for place in range(119)]
    with pytest.raises(DomainError, match="id_pattern") as refused:
        pcor.Table(rows([*ids, wrong]), schema())
    assert "C-1234" not in str(refused.value)


@pytest.mark.parametrize("kind", [pa.int64(), pa.string(), pa.float64()])
def test_whole_numbers_are_integers_in_every_type_of_column(kind: pa.DataType) -> None:
    ids = pa.array(range(120), pa.int64()).cast(kind)
    table = pcor.Table(
        pa.table(columns() | {"claim": ids}), schema(id_pattern=None, id_type="integer")
    )
    assert table.record("17").value == 400.5
    for wrong in ("x17", "017", "1.5"):
        with pytest.raises(RecordError, match="whole number"):
            table.record(wrong)


def test_the_owner_is_shown_which_ids_do_not_fit(tmp_path: Path) -> None:
    parquet.write_table(
        rows([f"C-{place:03}" for place in range(119)] + ["C-1"]), tmp_path / "t.parquet"
    )
    (tmp_path / "s.toml").write_text(schema().to_toml())
    words = ["schema", "check", str(tmp_path / "t.parquet"), "--schema", str(tmp_path / "s.toml")]
    done = RUN.invoke(app, words)
    assert done.exit_code == 2
    assert "'C-1'" in done.stdout
    assert "id_pattern" in done.stdout


# -- asking ---------------------------------------------------------------------------------------


def ways(table: pcor.Table) -> dict[str, Callable[[Any], object]]:
    """Return every way to name a record."""
    return {
        "release": lambda one: pcor.release(table, one, 0.1, RULE),
        "contexts": lambda one: pcor.matching_contexts(table, one, RULE),
        "exposure": lambda one: pcor.audit.exposure(table, one, 0.1, detector=RULE),
        "distribution": lambda one: pcor.audit.exact_distribution(
            table, record=one, epsilon=0.1, detector=RULE
        ),
    }


@pytest.mark.parametrize("way", ["release", "contexts", "exposure", "distribution"])
@pytest.mark.parametrize("wrong", WRONG)
def test_a_mistyped_id_is_refused_in_words(table: pcor.Table, way: str, wrong: Any) -> None:
    with pytest.raises(RecordError) as refused:
        ways(table)[way](wrong)
    assert f"claim {wrong!r} is not written like an id" in str(refused.value)
    assert PATTERN in str(refused.value)


def test_a_mistyped_id_costs_nothing(table: pcor.Table, tmp_path: Path) -> None:
    budget = pcor.Budget(1)
    with pytest.raises(RecordError):
        pcor.release(table, "C-17", 0.1, RULE, budget=budget)
    assert budget.left == 1
    books = pcor.Ledger(tmp_path / "books.db")
    books.set_budget("claims", 1)
    with pytest.raises(RecordError, match="is not written like"):
        books.release(table, "C-17", 0.1, dataset="claims", detector=RULE)
    assert books.left("claims") == 1
    asked = ["C-017", "C-17"]
    done = pcor.release_many(
        table, asked, 0.1, ledger=books, dataset="claims", detector=RULE, out=tmp_path / "o.jsonl"
    )
    assert done is not None
    assert books.status("claims").spent["ocdp"] == pcor.plan(schema(), 0.1).bill.epsilon
    assert "is not written like" in (tmp_path / "o.jsonl").read_text()


@pytest.mark.parametrize("command", ["plan", "release", "contexts", "audit"])
def test_the_command_line_refuses_a_mistyped_id(command: str, tmp_path: Path) -> None:
    parquet.write_table(rows(), tmp_path / "t.parquet")
    (tmp_path / "s.toml").write_text(schema().to_toml())
    words = [command, str(tmp_path / "t.parquet"), "--schema", str(tmp_path / "s.toml")]
    words += ["--record", "C-17", *([] if command == "contexts" else ["--epsilon", "0.1"])]
    done = RUN.invoke(app, words)
    assert done.exit_code == 2
    assert "is not written like an id" in done.output


def test_the_service_refuses_a_mistyped_id_and_charges_nothing(tmp_path: Path) -> None:
    with world(str(tmp_path / "books.db"), tmp_path) as place:
        parquet.write_table(rows(), place.service.settings.data / "claims.parquet")
        body = registration(source="claims.parquet", schema=schema().to_dict(), records="any")
        registered = place.send("owner", "PUT", "/v1/datasets/claims", json=body)
        assert registered.status_code == 200, registered.text
        place.send(
            "owner", "PUT", f"/v1/datasets/claims/allotments/{ANALYST}", json={"epsilon": "1"}
        )
        left = place.service.ledger.left("claims", ANALYST)
        for wrong in WRONG:
            refused = place.ask(dataset="claims", record=wrong)
            assert (refused.status_code, refused.json()["kind"]) == (422, "record")
            assert PATTERN in refused.json()["detail"]
        planned = {"dataset": "claims", "record": "C-17", "preset": "small"}
        assert place.send(ANALYST, "POST", "/v1/plans", json=planned).status_code == 422
        assert place.service.ledger.left("claims", ANALYST) == left
        # One that is written like an id and is none is charged, and told that this may be so.
        done = place.wait(place.ask(dataset="claims", record="C-999").json()["id"])
        assert "mistyped" in done["error"]["detail"]
        assert done["error"]["detail"].startswith(NONE)
