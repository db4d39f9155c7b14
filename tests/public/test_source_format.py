"""How a table is written: what can be declared, what is refused, what a number is."""

from __future__ import annotations

import re
from typing import Any

import pytest

from pcor import Schema
from pcor.errors import SchemaError
from pcor.public.source_format import SourceFormat

PLAIN: dict[str, Any] = {"metric": "pay", "attributes": {"job": ["CEO", "Lawyer"]}}


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ({"separator": ";;"}, r"separator must be one character, .* not ';;'"),
        ({"separator": "semicolo"}, r"did you mean 'semicolon'\?"),
        ({"separator": "x"}, "no letter, digit or quote"),
        ({"separator": '"'}, "no letter, digit or quote"),
        ({"separator": ""}, "one character"),
        ({"separator": "§"}, "one character"),
        ({"encoding": "latin-99"}, r"encoding 'latin-99' is not known.*windows-1252"),
        ({"encoding": "uft-8"}, r"did you mean 'utf-8'\?"),
        ({"encoding": "rot13"}, "is not known"),
        ({"encoding": "a\0b"}, "is not known"),
        ({"decimal": ";"}, r"decimal must be one of \. , or a word: point, comma; not ';'"),
        ({"decimal": "coma"}, r"did you mean 'comma'\?"),
        ({"decimal": ""}, "decimal must be one of"),
        ({"thousands": "_"}, r"thousands must be one of , \. ' or a word"),
        ({"decimal": ",", "thousands": ","}, "decimal and thousands are both ','"),
        ({"thousands": "point"}, r"decimal and thousands are both '\.'"),
        ({"currency": "5"}, "currency must be a sign or a word"),
        ({"currency": "E"}, "currency must be a sign or a word"),
        ({"currency": "."}, "currency must be a sign or a word"),
        ({"currency": "a b"}, "currency must be a sign or a word"),
        ({"dates": "dd-mon-yy"}, "dates must say how a day is written"),
        ({"dates": "DD.MM/YYYY"}, "dates must say how a day is written"),
        ({"dates": "DD.DD.YYYY"}, "dates must say how a day is written"),
        ({"dates": "DMYYYY"}, "dates must say how a day is written"),
        ({"sheet": "a\x1bb"}, "sheet must be the name of a sheet"),
        ({"seperator": ";"}, r"unknown key 'seperator'; did you mean 'separator'\?"),
        ({"decimal": 5}, r"\[source\] decimal must be a text, not 5"),
    ],
)
def test_a_table_that_nobody_writes_is_refused(declared: dict[str, Any], said: str) -> None:
    with pytest.raises(SchemaError, match=said):
        Schema(**PLAIN, source=declared)


def test_source_must_be_a_table() -> None:
    with pytest.raises(SchemaError, match="source must be a table"):
        Schema(**PLAIN, source=";")  # type: ignore[arg-type]
    with pytest.raises(SchemaError, match=r"\[source\] must be a table"):
        Schema.from_dict({"metric": {"column": "m"}, "attributes": {"a": ["x"]}, "source": ";"})


def test_a_mark_may_be_named_by_a_word() -> None:
    by_word = SourceFormat("tab", "Latin1", "comma", "space")
    assert by_word == SourceFormat("\t", "iso-8859-1", ",", " ")
    assert by_word == SourceFormat("\\t", "latin-1", ",", "\u202f")
    assert SourceFormat(encoding="utf-8-sig") == SourceFormat()


@pytest.mark.parametrize(
    ("declared", "written", "plain"),
    [
        ({"decimal": ",", "thousands": "."}, "1.234.567,89", "1234567.89"),
        ({"decimal": ",", "thousands": "."}, "1234567,89", "1234567.89"),
        ({"decimal": ",", "thousands": "."}, "1.23", None),
        ({"decimal": ",", "thousands": "."}, "1.2345", None),
        ({"decimal": ",", "thousands": "."}, "1234.567", None),
        ({"decimal": ",", "thousands": "."}, ".123", None),
        ({"decimal": ","}, "1.5", None),
        ({"decimal": ","}, "1,5e-3", "1.5e-3"),
        ({"decimal": ","}, "1,5,5", None),
        ({"decimal": ","}, ",5", ".5"),
        ({"decimal": ","}, "5,", "5."),
        ({"decimal": ","}, ",", None),
        ({"decimal": ","}, "nan", None),
        ({"thousands": ","}, "26,557.16", "26557.16"),
        ({"thousands": "space"}, "1 234\u202f567\u00a0890", "1234567890"),
        ({"thousands": "space"}, " 12 34", None),
        ({"thousands": "'"}, "1\u2019234'567.5", "1234567.5"),
        ({"thousands": ",", "currency": "$"}, "$26,557.16", "26557.16"),
        ({"thousands": ",", "currency": "$"}, "-$ 5", "-5"),
        ({"thousands": ",", "currency": "$"}, "$-5", "-5"),
        ({"thousands": ",", "currency": "$"}, "5 $", "5"),
        ({"thousands": ",", "currency": "$"}, "5$0", None),
        ({"thousands": ",", "currency": "$"}, "$", None),
        ({"thousands": ",", "currency": "$"}, "$$5", None),
        ({"thousands": ",", "currency": "$"}, "--5", None),
        ({"thousands": ",", "currency": "$"}, "€5", None),
        ({"currency": "Fr."}, "Fr. 5.50", "5.50"),
        ({"currency": "EUR"}, "1e3 EUR", "1e3"),
    ],
)
def test_a_number_is_what_the_format_says(
    declared: dict[str, str], written: str, plain: str | None
) -> None:
    assert SourceFormat(**declared).plain(written) == plain


def test_the_pattern_of_numbers_has_no_backslash_which_some_engines_read_twice() -> None:
    pattern = SourceFormat(decimal=",", thousands="'", currency="Fr.").number
    assert "\\" not in pattern
    assert re.compile(pattern)


def test_how_a_table_is_written_is_part_of_the_fingerprint_and_survives_a_file() -> None:
    usual, written = Schema(**PLAIN), Schema(**PLAIN, source={"decimal": ",", "separator": "tab"})
    assert usual.sha256 != written.sha256
    assert usual.sha256 == Schema(**PLAIN, source={"decimal": "."}).sha256
    assert "source" not in usual.to_dict()
    assert written.to_toml().endswith('[source]\nseparator = "\\t"\ndecimal = ","\n')
    assert Schema.from_dict(written.to_dict()) == written


def test_what_is_said_otherwise_stands_in_for_what_is_declared() -> None:
    declared = Schema(**PLAIN, source={"decimal": ",", "separator": ";"})
    said = declared.written(separator="tab", thousands=".")
    assert said == Schema(**PLAIN, source={"decimal": ",", "separator": "\t", "thousands": "."})
