"""Numbers in texts: however they are written, every engine reads the one that was meant."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import pcor
from pcor.errors import MetricError, SourceError
from pcor.public.source_format import THOUSANDS, SourceFormat
from pcor.public.spellings import BLANKS
from tests.helpers.engines import LOCAL, SERVERS
from tests.helpers.same_rows import cells

EDGES = [-1e18, -1000, -0.5, 0, 0.5, 1000, 1e6, 1e18]
ENGINES = ["duckdb", "polars", "sqlite"]


@st.composite
def formats(draw: st.DrawFn) -> SourceFormat:
    decimal = draw(st.sampled_from(".,"))
    thousands = draw(st.sampled_from(["", *(mark for mark in THOUSANDS if mark != decimal)]))
    currency = draw(st.sampled_from(["", "$", "€", "EUR", "Fr.", "R$", "zł"]))
    form = SourceFormat(decimal=decimal, thousands=thousands, currency=currency)
    assume(not form.usual_numbers)
    return form


@st.composite
def written(draw: st.DrawFn, form: SourceFormat) -> tuple[str, float]:
    """Return a number as somebody writes it in this format, and the number."""
    digits = draw(st.integers(0, 10**14))
    places = draw(st.integers(0, 6))
    whole, part = divmod(digits, 10**places)
    text = f"{whole:,}" if form.thousands and draw(st.booleans()) else str(whole)
    mark = draw(st.sampled_from(THOUSANDS[form.thousands])) if form.thousands else ""
    text = text.replace(",", mark)
    text += f"{form.decimal}{part:0{places}}" if places else ""
    power = draw(st.sampled_from(["", "", "e3", "E-2", "e+05"]))
    sign = draw(st.sampled_from(["", "-", "+"]))
    blank = draw(st.sampled_from(["", *BLANKS]))
    before, after = draw(st.sampled_from([("", ""), (form.currency, ""), ("", form.currency)]))
    front = f"{sign}{before}" if draw(st.booleans()) else f"{before}{sign}"
    exact = f"{sign}{whole}.{part:0{places}}" if places else f"{sign}{whole}"
    return f"{front}{blank}{text}{power}{blank}{after}", float(exact + power)


@st.composite
def columns(draw: st.DrawFn) -> tuple[SourceFormat, list[tuple[str, float]]]:
    form = draw(formats())
    return form, draw(st.lists(written(form), min_size=1, max_size=12))


def schema(form: SourceFormat) -> pcor.Schema:
    return pcor.Schema(
        metric={"column": "m", "missing": "drop"},
        attributes={"a": {"edges": EDGES, "outside": "drop"}},
        source=form,
    )


def values(table: pcor.Table) -> list[float]:
    """Return all metrics, rising."""
    found, counts = table.distribution((1 << table.schema.width) - 1)
    return np.repeat(found, counts).tolist()


def check(engine: str, form: SourceFormat, numbers: list[tuple[str, float]], folder: Path) -> None:
    texts, meant = zip(*numbers, strict=True)
    rows = pa.table({"a": [*texts, "0", "0"], "m": [*texts, None, " "]})
    memory = pcor.Table(rows, schema(form))
    kept = [number for number in meant if EDGES[0] <= number <= EDGES[-1]]
    assert values(memory) == sorted(kept)
    table = pcor.Table({**LOCAL, **SERVERS}[engine](rows, folder), schema(form))
    assert values(table) == values(memory)
    assert cells(table) == cells(memory)


@settings(max_examples=20)
@pytest.mark.parametrize("engine", ENGINES)
@given(column=columns())
def test_a_number_in_any_format_is_read_as_it_was_meant(
    engine: str, column: tuple[SourceFormat, list[tuple[str, float]]]
) -> None:
    with TemporaryDirectory() as folder:
        check(engine, *column, Path(folder))


FEW: list[tuple[SourceFormat, list[tuple[str, float]]]] = [
    (
        SourceFormat(decimal=",", thousands=".", currency="€"),
        [("1.234.567,89 €", 1234567.89), ("-€ 0,5", -0.5), ("12e2", 1200.0), ("-1.000", -1000.0)],
    ),
    (
        SourceFormat(thousands="'", currency="Fr."),
        [("Fr. 1\u2019234'567.5", 1234567.5), ("0.1", 0.1), ("\u00a0+7 Fr.", 7.0)],
    ),
    (SourceFormat(thousands=" ", currency="R$"), [("R$1 234\u202f567", 1234567.0), ("-.5", -0.5)]),
]


@pytest.mark.parametrize(("form", "numbers"), FEW)
def test_numbers_in_postgresql(
    form: SourceFormat, numbers: list[tuple[str, float]], tmp_path: Path
) -> None:
    check("postgresql", form, numbers, tmp_path)


@pytest.mark.parametrize(("form", "numbers"), FEW)
def test_numbers_in_spark(
    form: SourceFormat, numbers: list[tuple[str, float]], tmp_path: Path
) -> None:
    check("spark", form, numbers, tmp_path)


MISPRINTS = [
    "1.23", "1.2345", "1234.567", ".123", "1..000", "1.000.", "1.00.000", "1,5,5", ",", "-", "€",
    "€€5", "5€5", "--5", "-€-5", "5-", "1e", "1e5,5", "1e+-5", "e5", "5 5", "1_000", "x", "nan",
    "inf", "0x10", "$5", "5\u200b", "٣",
]  # fmt: skip


def check_refused(engine: str, text: str, folder: Path) -> None:
    """Check that an engine takes a text for no number, in a metric and in bins."""
    form = SourceFormat(decimal=",", thousands=".", currency="€")
    for name, error in (("m", MetricError), ("a", SourceError)):
        rows = pa.table({"a": ["1"], "m": ["1"]} | {name: [text]})
        source = rows if engine == "memory" else {**LOCAL, **SERVERS}[engine](rows, folder)
        with pytest.raises(error, match="not numeric"):
            pcor.Table(source, schema(form))
        (folder / "rows.db").unlink(missing_ok=True)


@pytest.mark.parametrize("engine", ["memory", *ENGINES])
@pytest.mark.parametrize("text", MISPRINTS)
def test_a_text_that_is_no_number_in_the_format_is_refused(
    engine: str, text: str, tmp_path: Path
) -> None:
    check_refused(engine, text, tmp_path)


@pytest.mark.parametrize("text", ["1.23", "5\u200b", "5€5", "nan"])
def test_a_text_that_is_no_number_in_the_format_is_refused_in_postgresql(
    text: str, tmp_path: Path
) -> None:
    check_refused("postgresql", text, tmp_path)


@pytest.mark.parametrize("text", ["1.23", "5\u200b"])
def test_a_text_that_is_no_number_in_the_format_is_refused_in_spark(
    text: str, tmp_path: Path
) -> None:
    check_refused("spark", text, tmp_path)


@pytest.mark.parametrize("engine", ["memory", *LOCAL])
def test_listed_numbers_are_read_in_the_format_too(engine: str, tmp_path: Path) -> None:
    declared = pcor.Schema(
        metric="m", attributes={"a": [0.5, 1000, 1500]}, source={"decimal": ",", "thousands": "."}
    )
    rows = pa.table(
        {"a": ["0,5", "1.500", "1500", " 0,50", "1000"], "m": [1.0, 2.0, 3.0, 4.0, 5.0]}
    )
    source = rows if engine == "memory" else LOCAL[engine](rows, tmp_path)
    assert cells(pcor.Table(source, declared)) == {(0,): 2, (1,): 1, (2,): 2}


def test_a_column_of_numbers_is_not_a_column_of_texts() -> None:
    rows = pa.table({"a": [0.25, 1234.5], "m": [1.5, 2.5]})
    assert values(pcor.Table(rows, schema(SourceFormat(decimal=",")))) == [1.5, 2.5]


def test_sqlite_reads_texts_as_usual_where_nothing_is_declared(tmp_path: Path) -> None:
    rows = pa.table({"a": ["1", " 2.5 ", "-3e2"], "m": ["10", "1.5", "-2e-3"]})
    assert values(pcor.Table(rows, schema(SourceFormat()))) == [-0.002, 1.5, 10.0]
    assert values(pcor.Table(LOCAL["sqlite"](rows, tmp_path), schema(SourceFormat()))) == [
        -0.002,
        1.5,
        10.0,
    ]
