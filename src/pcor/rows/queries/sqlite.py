"""SQLite, which has no regular expressions: texts are taken apart step by step.

Private: nothing; these are ways of writing. The claim: a text is a number here if it matches
``SourceFormat.number``. Each step is a SELECT of its own around the one before, so that what a step
has found can be used more than once.
"""

from __future__ import annotations

from collections.abc import Callable

from pcor.public.dates import TIME
from pcor.public.source_format import THOUSANDS, SourceFormat
from pcor.public.spellings import BLANKS
from pcor.rows.queries.sql import Dialect

_DIGIT = "[0-9]"
_SIGNED = "GLOB '[-+]*'"

# Groups of three digits with commas between, told by what they must not hold.
_GROUPED = " AND ".join(
    [
        "whole NOT GLOB '*[^0-9,]*'",
        f"whole GLOB '{_DIGIT}*'",
        f"whole NOT GLOB '{4 * _DIGIT}*'",
        f"whole NOT GLOB '*,{4 * _DIGIT}*'",
        *(f"whole || ',' NOT GLOB '*,{count * _DIGIT},*'" for count in range(3)),
    ]
)


def _step(columns: str, source: str = "") -> str:
    """Write one row of columns. Without OFFSET they are written out wherever they are used."""
    return f"(SELECT {columns}{f' FROM {source}' if source else ''} LIMIT 1 OFFSET 0)"


class SqliteDialect(Dialect):
    """SQL as SQLite writes it."""

    def is_day(self, text: str) -> str:
        """Write that a text holds a day.

        SQLite's calendar takes 30 February for a day in March, if it has to count: without "+0
        days" old versions return what they were given.
        """
        return (
            f"({text} GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]*' "
            f"AND date(substr({text}, 1, 10), '+0 days') IS substr({text}, 1, 10) "
            f"AND (length({text}) = 10 OR (substr({text}, 11, 1) IN ('T', ' ') "
            f"AND length({text}) > 11 AND substr({text}, 12) NOT GLOB '*[^{TIME}]*')))"
        )

    def read_number(self, text: str, written: SourceFormat) -> str:
        """Write the number that a cell is or holds, NULL where it is and holds none."""
        blanks, point = self.literal(BLANKS), self.literal(written.decimal)
        inner = self.literal("" if written.usual_numbers else BLANKS)
        marks = [(mark, ",") for mark in THOUSANDS.get(written.thousands, "")]
        digits = f"whole NOT GLOB '*[^0-9]*'{f' OR ({_GROUPED})' if marks else ''}"
        steps = [
            f"TRIM({text}, {blanks}) AS t",
            *self._without_currency(written.currency, blanks),
            f"CASE WHEN t {_SIGNED} THEN substr(t, 1, 1) ELSE '' END AS sign, t",
            f"sign, LTRIM(substr(t, length(sign) + 1), {inner}) AS t",
            "sign, t, instr(lower(t), 'e') AS e",
            "sign, CASE e WHEN 0 THEN t ELSE substr(t, 1, e - 1) END AS t, "
            "CASE e WHEN 0 THEN '0' ELSE substr(t, e + 1) END AS power",
            f"sign, t, power, instr(t, {point}) AS e",
            "sign, power, CASE e WHEN 0 THEN t ELSE substr(t, 1, e - 1) END AS whole, "
            "CASE e WHEN 0 THEN '' ELSE substr(t, e + 1) END AS part",
            f"sign, power, {self.replaced('whole', marks)} AS whole, part",
        ]
        found = ""
        for step in steps:
            found = _step(step, found)
        power = f"CASE WHEN power {_SIGNED} THEN substr(power, 2) ELSE power END"
        is_number = (
            f"({digits}) AND part NOT GLOB '*[^0-9]*' AND whole || part <> '' "
            f"AND {power} <> '' AND {power} NOT GLOB '*[^0-9]*'"
        )
        # What CAST reads of "5." and ".5" need not be known.
        plain = "sign || '0' || REPLACE(whole, ',', '') || '.' || part || '0e' || power"
        return (
            f"CASE WHEN typeof({text}) IN ('integer', 'real') THEN CAST({text} AS REAL) ELSE "
            f"(SELECT CAST({plain} AS REAL) FROM {found} WHERE {is_number}) END"
        )

    def computed(self, value: str, use: Callable[[str], str]) -> str:
        """Write what uses a value several times, so that it is computed once."""
        return f"(SELECT {use('v')} FROM {_step(f'{value} AS v')})"

    def _without_currency(self, currency: str, blanks: str) -> list[str]:
        """Write what takes a currency away: behind a number, and before it or its sign."""
        if not currency:
            return []
        name, size = self.literal(currency), len(currency)
        rest = f"LTRIM(substr(t, 2), {blanks})"
        return [
            f"CASE WHEN substr(t, -{size}) = {name} "
            f"THEN RTRIM(substr(t, 1, length(t) - {size}), {blanks}) ELSE t END AS t",
            f"CASE WHEN substr(t, 1, {size}) = {name} THEN LTRIM(substr(t, {size + 1}), {blanks}) "
            f"WHEN t {_SIGNED} AND substr({rest}, 1, {size}) = {name} "
            f"THEN substr(t, 1, 1) || substr({rest}, {size + 1}) ELSE t END AS t",
        ]


SQLITE = SqliteDialect(
    "sqlite",
    double="REAL",
    is_nan="FALSE",  # it has none: they are stored as NULL
    same_text="CAST({} AS TEXT)",
    trim="TRIM({0}, {1})",
    translate="",  # REPLACE for each letter, one inside the other, is more than it can parse
    infinity="9e999",
)
