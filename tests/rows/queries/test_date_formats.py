"""Dates in texts: however they are written, every engine reads the day that was meant."""

from __future__ import annotations

import datetime as dt
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import psycopg
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pcor
from pcor.audit.source_guess import guess_dates
from pcor.errors import SourceError
from pcor.public.source_format import SourceFormat
from tests.helpers.engines import LOCAL, SERVERS
from tests.helpers.postgres import postgres
from tests.helpers.same_rows import cells

FORMATS = [
    "DD.MM.YYYY", "D.M.YYYY", "MM/DD/YYYY", "M/D/YYYY", "D-M-YYYY", "DD MM YYYY",
    "YYYY/MM/DD", "YYYY/M/D", "YYYYMMDD", "DDMMYYYY", "YYYY-D-M",
]  # fmt: skip
# Months of one digit and of two, in two years; a part of the first and of the last.
SPAN = {"by": "month", "from": "2018-11-10", "to": "2019-03-14"}
ENGINES = ["duckdb", "polars", "sqlite"]
Day = tuple[str, dt.date]


def schema(form: str, outside: str = "drop", **declared: object) -> pcor.Schema:
    attributes = {"day": {"date": SPAN, "outside": outside, "contexts": "range"} | declared}
    return pcor.Schema(metric="m", attributes=attributes, source={"dates": form})


def said(day: dt.date, form: str, *, short: str = "") -> str:
    """Return a day in a format; parts that may have one digit have as few as they can if so."""
    text = form.replace("YYYY", f"{day.year:04}")
    for letter, part in (("M", day.month), ("D", day.day)):
        digits = 1 if letter in short and 2 * letter not in form else 2
        text = text.replace(2 * letter, letter).replace(letter, f"{part:0{digits}}")
    return text


@st.composite
def columns(draw: st.DrawFn) -> tuple[str, list[Day]]:
    """Return a format, and days as somebody writes them in it."""
    form = draw(st.sampled_from(FORMATS))
    near = st.dates(dt.date(2018, 11, 1), dt.date(2019, 3, 31))
    days = draw(st.lists(near | st.dates(dt.date(1000, 1, 1)), min_size=1, max_size=12))
    short, times = st.sampled_from(["", "M", "D", "MD"]), ["", "", " 23:59", " 00:00:00.5"]
    return form, [
        (said(day, form, short=draw(short)) + draw(st.sampled_from(times)), day) for day in days
    ]


def check(engine: str, form: str, days: list[Day], folder: Path) -> None:
    """Compare with dates that are no texts."""
    inside = dt.date(2018, 12, 24)
    texts, meant = zip(*days, (said(inside, form), inside), strict=True)
    metric = [float(row) for row in range(len(texts) + 2)]
    rows = pa.table({"day": [*texts, None, " "], "m": metric})
    dates = pa.table({"day": pa.array([*meant, None, None], pa.date32()), "m": metric})
    expected = cells(pcor.Table(dates, schema("")))
    assert cells(pcor.Table(rows, schema(form))) == expected
    assert cells(pcor.Table({**LOCAL, **SERVERS}[engine](rows, folder), schema(form))) == expected


@settings(max_examples=60)
@pytest.mark.parametrize("engine", ENGINES)
@given(column=columns())
def test_a_day_in_any_format_is_read_as_it_was_meant(
    engine: str, column: tuple[str, list[Day]]
) -> None:
    with TemporaryDirectory() as folder:
        check(engine, *column, Path(folder))


FEW: list[tuple[str, list[Day]]] = [
    ("D.M.YYYY", [("1.2.2019", dt.date(2019, 2, 1)), ("01.12.2018 7:00", dt.date(2018, 12, 1))]),
    ("M/D/YYYY", [("3/14/2019", dt.date(2019, 3, 14)), ("03/15/2019", dt.date(2019, 3, 15))]),
    ("YYYYMMDD", [("20181110", dt.date(2018, 11, 10)), ("20181109", dt.date(2018, 11, 9))]),
]


@pytest.mark.parametrize("engine", list(SERVERS))
@pytest.mark.parametrize(("form", "days"), FEW)
def test_a_day_in_a_server(engine: str, form: str, days: list[Day], tmp_path: Path) -> None:
    check(engine, form, days, tmp_path)


MISPRINTS = [
    "30.2.2019", "2019-03-14", "14/3/2019", "14.3.19", "14.3.2019x", "14.3.2019T10:00", "0.1.2019",
    "1.13.2019", "14..2019", "a.b.2019", "٣.3.2019", "14.3.", "x", "14.3.2019 noon", "29.2.1900",
]  # fmt: skip


@pytest.mark.parametrize("engine", ["memory", *LOCAL])
@pytest.mark.parametrize("text", MISPRINTS)
def test_a_text_that_is_no_day_in_the_format_is_refused(
    engine: str, text: str, tmp_path: Path
) -> None:
    rows = pa.table({"day": ["14.3.2019", text], "m": [1.0, 2.0]})
    source = rows if engine == "memory" else LOCAL[engine](rows, tmp_path)
    with pytest.raises(SourceError, match="does not hold a date in every row"):
        pcor.Table(source, schema("D.M.YYYY"))


@pytest.mark.parametrize("text", MISPRINTS)
def test_no_server_takes_it_for_a_day_either(text: str, tmp_path: Path) -> None:
    rows = pa.table({"day": ["14.3.2019", text], "m": [1.0, 2.0]})
    with pytest.raises(SourceError, match="does not hold a date in every row"):
        pcor.Table(SERVERS["postgresql"](rows, tmp_path), schema("D.M.YYYY"))


def test_check_shows_the_owner_what_is_no_day() -> None:
    rows = pa.table({"day": ["14.3.2019", "2019-03-14", "31.4.2018"], "m": [1.0, 2.0, 3.0]})
    (misfit,) = schema("D.M.YYYY").check(rows)
    assert (misfit.problem, misfit.rows) == ("not a date", 2)
    assert "write each like D.M.YYYY" in misfit.remedy


# -- contexts as SQL -------------------------------------------------------------------------------

WORD = "1.1.2019"  # means that there is none
TEXTS = ["10.11.2018", "1.12.2018 8:00", "31.12.2018", "01.02.2019", WORD, "14.3.2019", "", None]


def selected(kind: str, condition: str, cells: Sequence[object], column: str) -> set[int]:
    rows = list(enumerate(cells))
    query = f'SELECT "row" FROM rows WHERE {condition}'  # noqa: S608
    if kind == "duckdb":
        with closing(duckdb.connect()) as connection:
            connection.execute(f'CREATE TABLE rows ("row" INTEGER, "day" {column})')
            connection.executemany("INSERT INTO rows VALUES (?, ?)", rows)
            return {row for (row,) in connection.execute(query).fetchall()}
    if kind == "sqlite":
        with closing(sqlite3.connect(":memory:")) as connection:
            connection.execute(f'CREATE TABLE rows ("row" INTEGER, "day" {column})')
            connection.executemany("INSERT INTO rows VALUES (?, ?)", rows)
            return {row for (row,) in connection.execute(query)}
    with psycopg.connect(postgres().new_database()) as connection:
        made = f'CREATE TEMPORARY TABLE rows ("row" INTEGER, "day" {column})'
        connection.execute(made.encode())
        connection.cursor().executemany("INSERT INTO rows VALUES (%s, %s)", rows)
        return {row for (row,) in connection.execute(query.encode()).fetchall()}


@pytest.mark.parametrize("kind", ["duckdb", "sqlite", "postgresql"])
def test_a_context_as_sql_selects_its_rows(kind: str) -> None:
    declared = schema("D.M.YYYY", missing_values=[WORD])
    columns = pa.table({"day": TEXTS, "m": [float(row) for row in range(len(TEXTS))]})
    table = pcor.Table(columns, declared)
    months = len(declared.attributes[0].values)
    for low in range(months):
        for high in range(low, months):
            mask = sum(1 << code for code in range(low, high + 1))
            values, _ = table.distribution(mask)
            condition = pcor.Context.from_mask(declared, mask).where()
            assert selected(kind, condition, TEXTS, "TEXT") == {int(value) for value in values}


DATES = [
    dt.datetime(2018, 2, 10), dt.datetime(2018, 3, 1, 8), dt.datetime(2018, 12, 31, 23, 59),
    dt.datetime(2019, 1, 1, 12), dt.datetime(2019, 3, 14, 23), dt.datetime(2019, 3, 15), None,
]  # fmt: skip


@pytest.mark.parametrize("column", ["DATE", "TIMESTAMP"])
@pytest.mark.parametrize(
    ("kind", "form"),
    [
        *(("duckdb", form) for form in ("D.M.YYYY", "YYYYMMDD", "MM/DD/YYYY", "")),
        ("postgresql", "D.M.YYYY"),
    ],
)
def test_a_context_as_sql_selects_its_rows_of_dates_that_are_no_texts(
    kind: str, form: str, column: str
) -> None:
    """A database sniffs dates in a file that has them as texts."""
    declared = schema(form, missing_values=["2019-01-01", "n/a"], strip=True)
    days = [day if day is None or column == "TIMESTAMP" else day.date() for day in DATES]
    metric = [float(row) for row in range(len(days))]
    arrow = {"DATE": pa.date32(), "TIMESTAMP": pa.timestamp("us")}[column]
    table = pcor.Table(pa.table({"day": pa.array(days, arrow), "m": metric}), declared)
    for low, high in [(0, 1), (2, 4), (3, 3), (0, 4)]:
        mask = sum(1 << code for code in range(low, high + 1))
        values, _ = table.distribution(mask)
        condition = pcor.Context.from_mask(declared, mask).where()
        assert selected(kind, condition, days, column) == {int(value) for value in values}


# -- drafts ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("texts", "layout", "expected"),
    [
        (["14.03.2019", "n/a", "01.02.2018", None], SourceFormat(), "DD.MM.YYYY"),
        (["14.3.2019", "01.02.2018"], SourceFormat(), "D.M.YYYY"),
        (["03/14/2019", "02/01/2018"], SourceFormat(";"), "MM/DD/YYYY"),
        (["03/04/2019", "02/01/2018"], SourceFormat(), "MM/DD/YYYY"),
        (["03/04/2019", "02/01/2018"], SourceFormat(";"), "DD/MM/YYYY"),
        (["3/4/2019", "12/31/2018 14:00"], SourceFormat(), "M/D/YYYY"),
        (["14.3.2019", "x"], SourceFormat(), ""),
        (["n/a", None], SourceFormat(), ""),
        (["14.3.2019"], SourceFormat(dates="YYYYMMDD"), "YYYYMMDD"),
    ],
)
def test_a_draft_guesses_how_days_are_written(
    texts: list[str | None], layout: SourceFormat, expected: str
) -> None:
    assert (
        guess_dates([pa.chunked_array([[1, 2]]), pa.chunked_array([texts])], layout).dates
        == expected
    )


def test_a_draft_with_such_days_says_so_and_fits() -> None:
    months = [f"{1 + row % 28:02}.{1 + row % 12:02}.2019" for row in range(120)]
    rows = {"day": months, "job": ["a", "b"] * 60, "pay": [float(row) for row in range(120)]}
    draft = pcor.Schema.draft(pa.table(rows), metric="pay")
    assert draft.source.dates == "DD.MM.YYYY"
    assert draft.attribute("day").date is not None
    assert draft.check(pa.table(rows)) == []
