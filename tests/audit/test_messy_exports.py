"""Twelve messy exports, each from file to certificate by what its draft proposes, in every engine.

Four dialects (separators, encodings, numbers, packed or not), each with spellings that differ by
case and blanks, with words for no value, and with both. What is expected comes from the clean
table. Servers, which take longer, are asked with each dialect and each mess, not with every pair.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pcor
from pcor.public.schema import REVIEW
from tests.helpers.command_line import pcor_
from tests.helpers.dialects import ATTRIBUTES, ID, METRIC, OUTLIER, people, texts, written
from tests.helpers.engines import LOCAL, SERVERS

Columns = dict[str, list[Any]]
RECORD = 100 + OUTLIER
DETECTOR = "grubbs:min_population=5"


def with_spellings(columns: Columns) -> Columns:
    """Write some of the words in capitals, some with blanks around them."""
    ways: dict[int, Callable[[str], str]] = {
        1: str.upper,
        2: lambda word: f"{word} ",
        3: lambda word: f" {word.lower()}",
    }
    spelled = [ways.get(n % 10, str)(word) for n, word in enumerate(columns["job"])]
    return columns | {"job": spelled}


def with_gaps(columns: Columns) -> Columns:
    """Add three rows that have no value of something, each like another row otherwise."""
    longer = {name: [*cells, cells[7], cells[11], cells[13]] for name, cells in columns.items()}
    longer["key"][-3:] = [900, 901, 902]
    longer[METRIC][-3:-1] = ["n/a", ""]
    longer["job"][-1] = "?"
    return longer


MESSES: dict[str, Callable[[Columns], Columns]] = {
    "spellings": with_spellings,
    "gaps": with_gaps,
    "both": lambda columns: with_gaps(with_spellings(columns)),
}
EXPORTS = [(d, m) for d in ("semicolons", "tabs", "euros", "unicode") for m in MESSES]
each_export = pytest.mark.parametrize(("dialect", "mess"), EXPORTS)


def reviewed(path: Path) -> pcor.Schema:
    """Draft a schema on the command line and delete its marks, as an owner who agrees would."""
    draft = path.parent / "draft.toml"
    asked = ("--metric", METRIC, "--attributes", ",".join(ATTRIBUTES), "--id", ID, "--out", draft)
    ran = pcor_("schema", "init", path, *asked)
    assert ran.code == 0, ran.err
    declared = draft.with_name("schema.toml")
    declared.write_text(
        draft.read_text(encoding="utf-8").replace(f"  {REVIEW}", ""), encoding="utf-8"
    )
    return pcor.Schema.from_file(declared)


def contexts(table: pcor.Table, record: int | str) -> tuple[list[list[int]], list[int]]:
    found = pcor.matching_contexts(table, record, DETECTOR)
    return found.masks.tolist(), found.populations.tolist()


def clean_contexts(schema: pcor.Schema) -> tuple[list[list[int]], list[int]]:
    """Return those of the clean table under the domains of a draft."""
    domains = {
        a.name: {"edges": list(a.edges)} if a.edges is not None else list(a.values)
        for a in schema.attributes
    }
    family = {attribute.name: attribute.contexts for attribute in schema.attributes}
    clean = pcor.Schema(metric=METRIC, attributes=domains, id=ID, contexts=family)
    found = contexts(pcor.Table(pa.table(people()), clean), RECORD)
    assert len(found[0]) > 1
    return found


@each_export
def test_a_messy_export_comes_from_file_to_certificate_by_its_draft_alone(
    dialect: str, mess: str, tmp_path: Path
) -> None:
    path = written(dialect, tmp_path, MESSES[mess](people()))
    schema = reviewed(path)
    assert schema.domains["job"] == ("Bäcker", "Café; Bar", 'says "hi"')
    declared = tmp_path / "schema.toml"
    checked = pcor_("schema", "check", path, "--schema", declared)
    assert checked.code == 0, checked.out
    certificate = tmp_path / "certificate.json"
    asked = ("--record", RECORD, "--epsilon", 1, "--detector", DETECTOR, "--out", certificate)
    ran = pcor_("release", path, "--schema", declared, *asked)
    assert ran.code == 0, ran.err
    table = pcor.Table(path, schema)
    assert contexts(table, RECORD) == clean_contexts(schema)
    answer = json.loads(certificate.read_text(encoding="utf-8"))
    assert pcor.is_outlier(table, RECORD, answer["context"], DETECTOR)


def check_engine(engine: str, dialect: str, mess: str, folder: Path) -> None:
    columns = MESSES[mess](people())
    schema = reviewed(written(dialect, folder, columns))
    cells = texts(dialect, columns)
    rows = pa.table({name: pa.array(column, pa.string()) for name, column in cells.items()})
    table = pcor.Table((LOCAL | SERVERS)[engine](rows, folder), schema)
    assert contexts(table, str(RECORD)) == clean_contexts(schema)


@pytest.mark.parametrize("engine", list(LOCAL))
@each_export
def test_every_engine_finds_the_contexts_of_the_clean_table(
    engine: str, dialect: str, mess: str, tmp_path: Path
) -> None:
    check_engine(engine, dialect, mess, tmp_path)


@pytest.mark.parametrize("engine", list(SERVERS))
@each_export
def test_servers_find_the_contexts_of_the_clean_table(
    engine: str, dialect: str, mess: str, tmp_path: Path
) -> None:
    check_engine(engine, dialect, mess, tmp_path)


@each_export
def test_an_export_really_is_messy(dialect: str, mess: str, tmp_path: Path) -> None:
    """The schema of the clean table does not fit it, or cannot even be compared with it."""
    path = written(dialect, tmp_path, MESSES[mess](people()))
    plain = pcor.Schema(metric=METRIC, attributes={"job": sorted(set(people()["job"]))}, id=ID)
    with pytest.raises(pcor.PcorError):
        pcor.Table(path, plain)
