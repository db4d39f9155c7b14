"""`pcor contexts` and `pcor outliers`: for the owner only."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyarrow import parquet

import pcor
from pcor.cli import owner
from pcor.cli.output import OWNER_ONLY
from tests.helpers.command_line import GRUBBS, OUTLIER, SCHEMA, Files, loaded, pcor_, people


def coe(files: Files) -> dict[str, int]:
    table = pcor.Table(files.table, files.schema)
    found = pcor.matching_contexts(table, OUTLIER, GRUBBS)
    sizes = found.populations.tolist()
    return {c.bits: n for c, n in zip(found.contexts, sizes, strict=True)}


def test_contexts_says_owner_only_first_and_lists_the_largest_first(files: Files) -> None:
    ran = pcor_("contexts", *files.table_and_schema, "--record", OUTLIER, "--detector", GRUBBS)
    assert (ran.code, ran.err) == (0, "")
    first, title, *rows = ran.out.splitlines()
    assert first == OWNER_ONLY
    assert title == f"{len(coe(files))} contexts in which record {OUTLIER} is an outlier"
    sizes = [int(row.split()[1]) for row in rows]
    assert sizes == sorted(coe(files).values(), reverse=True)


def test_contexts_as_json_says_owner_only_first(files: Files) -> None:
    how = ("--record", OUTLIER, "--detector", GRUBBS, "--json")
    ran = pcor_("contexts", *files.table_and_schema, *how)
    assert next(iter(ran.json.items())) == ("owner_only", OWNER_ONLY)
    assert {row["bits"]: row["population"] for row in ran.json["contexts"]} == coe(files)


def test_the_largest_are_the_same_on_the_screen_as_in_the_whole_list(files: Files) -> None:
    """The screen does without the whole list; equal populations come in the order of their bits."""
    wide = files.declared(SCHEMA.replace("[0, 30, 60]", "[0, 10, 12, 14, 30, 60]"))  # nobody is 14
    how = ("contexts", files.table, "--schema", wide, "--record", OUTLIER, "--detector", GRUBBS)
    rows = pcor_(*how, "--json").json["contexts"]
    assert len(rows) == 2**7
    assert rows == sorted(rows, key=lambda row: (-row["population"], row["bits"]))
    expected = [f"  {row['bits']}  {row['population']}  {row['context']}" for row in rows[:20]]
    assert pcor_(*how).out.splitlines()[2:22] == expected
    with_file = pcor_(*how, "--out", files.folder / "coe.parquet")
    assert with_file.out.splitlines()[2:22] == expected


def test_the_limit_is_on_members_and_not_on_what_limits_cut_out(files: Files) -> None:
    limited = files.declared(SCHEMA + "\n[contexts]\nmax_clauses = 1\n")
    schema = pcor.Schema.from_file(limited)
    how = ("contexts", files.table, "--schema", limited, "--record", OUTLIER, "--detector", GRUBBS)
    found = pcor.matching_contexts(pcor.Table(files.table, schema), OUTLIER, GRUBBS)
    assert schema.most_contexts < schema.most_numbered
    ran = pcor_(*how, "--limit", schema.most_contexts, "--json")
    assert ran.json["count"] == len(found) > 0
    assert pcor_(*how, "--limit", schema.most_contexts - 1).code == 2


@pytest.mark.parametrize("ending", ["csv", "json"])
def test_contexts_writes_all_rows_as_text(files: Files, ending: str) -> None:
    out = files.folder / f"coe.{ending}"
    before = files.listing()
    how = ("--record", OUTLIER, "--detector", GRUBBS, "--out", out)
    ran = pcor_("contexts", *files.table_and_schema, *how)
    assert ran.code == 0
    assert ran.out.splitlines()[0] == OWNER_ONLY
    assert ran.err == f"{OWNER_ONLY} Written to {out}\n"
    assert files.listing() == before | {out.name}
    rows = loaded(out)
    assert {row["bits"]: row["population"] for row in rows} == coe(files)
    assert rows == sorted(rows, key=lambda row: (-row["population"], row["bits"]))
    assert list(rows[0]) == ["bits", "population", "context"]
    schema = pcor.Schema.from_file(files.schema)
    for row in rows:
        assert pcor.Context.parse(schema, row["context"]).bits == row["bits"]


def test_contexts_writes_packed_bits_to_parquet(files: Files) -> None:
    out = files.folder / "coe.PARQUET"
    before = files.listing()
    how = ("--record", OUTLIER, "--detector", GRUBBS, "--out", out)
    ran = pcor_("contexts", *files.table_and_schema, *how)
    assert ran.code == 0
    assert ran.out.splitlines()[0] == OWNER_ONLY
    assert ran.err == f"{OWNER_ONLY} Written to {out}\n"
    assert files.listing() == before | {out.name}
    schema = pcor.Schema.from_file(files.schema)
    rows = parquet.read_table(out).to_pylist()
    found = {pcor.Context.from_mask(schema, r["mask_0"]).bits: r["population"] for r in rows}
    assert found == coe(files)
    about = parquet.read_metadata(out).metadata
    assert about[b"owner_only"].startswith(b"OWNER ONLY: ")
    assert about[b"record"] == b"17"
    assert json.loads(about[b"detector"])["name"] == "grubbs"


@pytest.mark.parametrize("ending", ["parquet", "csv", "json"])
def test_contexts_as_json_beside_a_file_gives_the_number_and_the_largest(
    files: Files, ending: str
) -> None:
    out = files.folder / f"coe.{ending}"
    how = ("--record", OUTLIER, "--detector", GRUBBS, "--out", out, "--json")
    ran = pcor_("contexts", *files.table_and_schema, *how)
    assert list(ran.json) == ["owner_only", "record", "count", "largest", "out"]
    assert ran.json["count"] == len(coe(files))
    assert {row["bits"]: row["population"] for row in ran.json["largest"]} == coe(files)
    assert ran.json["out"] == str(out)


@pytest.mark.parametrize("how", [("--json",), ("--out", "coe.csv"), ("--out", "coe.json")])
def test_too_many_contexts_for_text_are_refused_and_parquet_is_named(
    files: Files, how: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    count = len(coe(files))
    monkeypatch.chdir(files.folder)
    before = files.listing()
    words = ("contexts", *files.table_and_schema, "--record", OUTLIER, "--detector", GRUBBS)
    monkeypatch.setattr(owner, "MOST_SENTENCES", count - 1)
    ran = pcor_(*words, *how)
    assert ran.code == 2
    assert f"more than {count - 1} contexts" in ran.err
    assert "--out FILE.parquet" in ran.err
    assert files.listing() == before
    assert pcor_(*words).code == 0
    assert pcor_(*words, "--out", "coe.parquet").code == 0
    monkeypatch.setattr(owner, "MOST_SENTENCES", count)
    assert pcor_(*words, *how).code == 0


@pytest.mark.parametrize("ending", ["parquet", "csv", "json"])
def test_a_record_without_contexts_gives_an_empty_list_with_its_columns(
    files: Files, ending: str
) -> None:
    out = files.folder / f"coe.{ending}"
    ran = pcor_("contexts", *files.table_and_schema, "--record", 3, "--out", out)
    assert ran.code == 0
    assert "0 contexts in which record 3 is an outlier" in ran.out
    assert loaded(out) == []
    if ending == "parquet":
        assert parquet.read_table(out).column_names == ["mask_0", "population"]


def test_contexts_shows_twenty_rows_and_says_how_many_more(files: Files) -> None:
    wide = files.declared(SCHEMA.replace("[0, 30, 60]", "[0, 20, 30, 40, 50, 60]"))
    how = ("--schema", wide, "--record", OUTLIER, "--detector", GRUBBS)
    ran = pcor_("contexts", files.table, *how)
    rows = ran.out.splitlines()[2:]
    assert len(rows) == 21
    assert rows[-1].startswith("  ... and ")
    assert "--out FILE" in rows[-1]
    out = files.folder / "coe.parquet"
    written = pcor_("contexts", files.table, *how, "--out", out).out.splitlines()[2:]
    assert written[:20] == rows[:20]
    assert written[-1].endswith(f" more; all of them are in {out}")


def test_contexts_refuses_a_space_above_the_limit(files: Files) -> None:
    ran = pcor_("contexts", *files.table_and_schema, "--record", OUTLIER, "--limit", 8)
    assert ran.code == 2
    assert "16 possible contexts, more than the limit of 8" in ran.err
    assert "--limit" in ran.err


def test_outliers_lists_the_records_of_the_whole_table_or_of_one_context(files: Files) -> None:
    whole = pcor_("outliers", *files.table_and_schema, "--detector", "grubbs")
    assert whole.code == 0
    assert whole.out.splitlines()[0] == OWNER_ONLY
    assert whole.out.splitlines()[1:] == [
        "outliers among all rows, by falling pay: 1",
        f"  {OUTLIER}  400.5",
    ]
    elsewhere = ("--detector", "grubbs", "--context", "any job; city is Rome; any age", "--json")
    ran = pcor_("outliers", *files.table_and_schema, *elsewhere)
    assert next(iter(ran.json.items())) == ("owner_only", OWNER_ONLY)
    assert ran.json["context"]["city"] == ["Rome"]
    assert OUTLIER not in ran.json["outliers"]


@pytest.mark.parametrize("in_memory", [True, False])
def test_outliers_shows_values_the_largest_first(files: Files, in_memory: bool) -> None:
    pay = people()["pay"]
    far = {3: -190.25, 40: 385.0, 90: 410.5, 91: 385.0}
    for row, value in far.items():
        pay[row] = value
    table = files.rewritten(pay=pay)
    if not in_memory:  # a folder stays where it is
        (files.folder / "parts").mkdir()
        table = table.rename(files.folder / "parts" / "one.csv").parent
    how = ("--schema", files.schema, "--detector", "grubbs:tail=both")
    ordered = {90: 410.5, OUTLIER: 400.5, 40: 385.0, 91: 385.0, 3: -190.25}
    ran = pcor_("outliers", table, *how, "--json")
    assert ran.json["outliers"] == [*ordered]
    assert ran.json["values"] == [*ordered.values()]
    printed = pcor_("outliers", table, *how, "--out", files.folder / "o.csv").out.splitlines()
    assert printed[2:] == [f"  {key}  {value}" for key, value in ordered.items()]
    written = loaded(files.folder / "o.csv")
    assert {int(row["record"]): float(row["value"]) for row in written} == ordered


@pytest.mark.parametrize("ending", ["parquet", "csv", "json"])
def test_outliers_writes_ids_of_any_kind(files: Files, ending: str) -> None:
    """Ids such as 17 and "17b" side by side were once an internal error."""
    out = files.folder / f"outliers.{ending}"
    keys: list[Any] = [str(key) for key in people()["key"]]
    keys[18] = "18b"
    pay = people()["pay"]
    pay[18] = 390.5
    table = files.rewritten(key=keys, pay=pay)
    how = ("--schema", files.schema, "--detector", "grubbs", "--out", out)
    ran = pcor_("outliers", table, *how)
    assert ran.code == 0
    assert [str(row["record"]) for row in loaded(out)] == ["17", "18b"]


def test_calibrate_prints_a_line_for_each_family_and_ends_with_a_sentence(files: Files) -> None:
    ran = pcor_("calibrate", *files.table_and_schema, "--detector", GRUBBS, "--rows", 5)
    assert ran.code == 0
    first, heading, *rows, last = ran.out.splitlines()
    assert first == OWNER_ONLY
    assert " ".join(heading.split()) == "family detector contexts stand out 95 % named exposed"
    assert len(rows) >= 3
    out_of = heading.index("stand out")
    assert all(row[out_of:].split()[1:3] == ["of", "5"] for row in rows)
    standing = rows[0][out_of:].split()[0]
    assert last.startswith(
        f"{standing} of 5 random rows stand out in some context of the family as"
    )
