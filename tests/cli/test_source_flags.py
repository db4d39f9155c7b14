"""From a messy file to a certificate: by what its draft says, or by the options of a command."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.helpers.command_line import pcor_
from tests.helpers.dialects import ATTRIBUTES, OUTLIER, written

RECORD = 100 + OUTLIER
DETECTOR = ("--detector", "grubbs:min_population=5")
FLAGS = (
    *("--separator", "semicolon", "--encoding", "windows-1252", "--decimal", "comma"),
    *("--thousands", ".", "--currency", "€"),
)


def reviewed(folder: Path, dialect: str, *given: str) -> tuple[Path, Path]:
    """Draft a schema and delete its marks; return the table and the schema."""
    table, schema = written(dialect, folder), folder / f"{dialect}.toml"
    asked = ("--metric", "pay", "--attributes", ",".join(ATTRIBUTES), "--id", "key")
    ran = pcor_("schema", "init", table, *asked, "--out", schema, *given)
    assert ran.code == 0, ran.err
    text = schema.read_text(encoding="utf-8")
    schema.write_text(re.sub(r" *# REVIEW:.*", "", text), encoding="utf-8")
    return table, schema


@pytest.mark.parametrize("dialect", ["dollars", "euros", "unicode"])
def test_a_messy_file_gets_a_certificate_with_what_its_draft_says(
    dialect: str, tmp_path: Path
) -> None:
    table, schema = reviewed(tmp_path, dialect)
    assert pcor_("schema", "check", table, "--schema", schema).code == 0
    asked = ("--schema", schema, "--record", RECORD, "--epsilon", 1, *DETECTOR, "--json")
    ran = pcor_("release", table, *asked)
    assert ran.code == 0, ran.err
    assert ran.json["record"] in (RECORD, str(RECORD))


def test_options_stand_in_for_what_the_schema_says(tmp_path: Path) -> None:
    table, schema = reviewed(tmp_path, "euros")
    bare = tmp_path / "bare.toml"
    bare.write_text(schema.read_text(encoding="utf-8").partition("[source]")[0], encoding="utf-8")
    request = ("--record", RECORD, "--epsilon", 1, *DETECTOR, "--json")
    declared = pcor_("release", table, "--schema", schema, *request).json
    optional = pcor_("release", table, "--schema", bare, *request, *FLAGS).json
    assert optional["schema_sha256"] == declared["schema_sha256"]
    planned = pcor_("plan", table, "--schema", bare, *request, *FLAGS).json
    assert planned["schema_sha256"] == declared["schema_sha256"]
    for command in ("contexts", "outliers", "audit", "calibrate"):
        words: list[object] = [command, table, "--schema", bare, *DETECTOR, "--json"]
        words += ["--record", RECORD] if command in ("contexts", "audit") else []
        words += ["--rows", 5, "--exposed", 1] if command == "calibrate" else []
        assert pcor_(*words, *FLAGS).code == 0, command
        refused = pcor_(*words)
        assert refused.code == 2, command
        assert "--encoding windows-1252" in refused.json["error"]


def test_the_options_of_a_draft_are_written_down_without_a_mark(tmp_path: Path) -> None:
    _, schema = reviewed(tmp_path, "euros", *FLAGS)
    assert 'separator = ";"\nencoding = "cp1252"\ndecimal = ","\n' in schema.read_text("utf-8")


@pytest.mark.parametrize(
    ("flag", "value", "said"),
    [
        ("--separator", ";;", "separator must be one character"),
        ("--encoding", "utf-9", "encoding 'utf-9' is not known"),
        ("--decimal", "x", "decimal must be one of"),
        ("--thousands", ",", "decimal and thousands are both ','"),
        ("--encoding", "utf-16", "is not text in utf-16"),
    ],
)
def test_an_option_that_cannot_be_is_refused_with_a_sentence(
    flag: str, value: str, said: str, tmp_path: Path
) -> None:
    table, schema = reviewed(tmp_path, "euros")
    ran = pcor_("outliers", table, "--schema", schema, flag, value)
    assert ran.code == 2
    assert said in ran.err
