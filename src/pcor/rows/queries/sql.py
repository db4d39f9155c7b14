"""SQL as each engine writes it.

Private: nothing; these are ways of writing. The queries of ``pushdown.py`` keep to what every
engine has (CASE, GROUP BY, a join with a short list), so that all of them give the same answer;
what cannot be written alike is here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pcor.public.dates import DAY_TEXT
from pcor.public.source_format import SourceFormat
from pcor.public.spellings import BLANKS, Spellings

# What Arrow reads as a number; several engines read more than that ("1_000", "1d").
_NUMBER = "^([-+]?([0-9]+[.]?[0-9]*|[.][0-9]+)(e[-+]?[0-9]+)?|[-+]?(inf|infinity)|nan)$"


Cell = str | bool | int | float


@dataclass(frozen=True)
class Dialect:
    """How one engine writes SQL.

    Attributes:
        name: the engine.
        double: its type of 64-bit floating-point numbers.
        quote: what stands around a name.
        escapes: whether a backslash in a text means something.
        is_nan: a condition on ``{0}``: it is not a number.
        number: reads the text ``{}`` as a number, NULL where it is none.
        match: a condition on the text ``{0}``: it fits the pattern ``{1}``, in which
        whole: makes the pattern ``{}`` one that a whole text fits.
        same_text: turns ``{}`` into a text that is compared byte by byte.
        trim: the text ``{0}`` without the characters of ``{1}`` at its ends.
        translate: the text ``{0}`` with each character of ``{1}`` as the one at its place in
            ``{2}``; empty where there is no such function.
        overflows: whether a square beyond the largest number is an error.
        infinity: the largest number.
        looked_up: the entry of the list ``{1}`` at the place that ``{2}`` has in the list ``{0}``,
            NULL where it is none; for engines that are faster at this than at CASE: DuckDB does it
            once for each text of a dictionary, where a column of texts has one.
        nearest: the ``{n}`` nearest rows below and from ``{v}`` on as one aggregate each, for
            engines that have such; others count distances first.
    """

    name: str
    double: str = "DOUBLE"
    quote: str = '"'
    escapes: bool = False
    is_nan: str = "isnan({0})"
    number: str = "TRY_CAST(REPLACE(TRIM({}), '_', 'x') AS DOUBLE)"
    match: str = "regexp_full_match({0}, {1})"
    whole: str = "{}"
    same_text: str = "CAST({} AS VARCHAR)"
    trim: str = "TRIM(BOTH {1} FROM {0})"
    translate: str = "TRANSLATE({0}, {1}, {2})"
    overflows: bool = False
    infinity: str = "CAST('Infinity' AS DOUBLE)"
    looked_up: str = ""
    nearest: tuple[str, str] | None = None

    def column(self, name: str) -> str:
        """Write the name of a column."""
        return f"{self.quote}{name.replace(self.quote, 2 * self.quote)}{self.quote}"

    def literal(self, value: Cell) -> str:
        """Write a value; a float to the last bit."""
        if isinstance(value, bool):
            return "TRUE" if value else "FALSE"
        if isinstance(value, int):
            return str(value)
        if isinstance(value, float):
            return self._float(value)
        if self.escapes:
            value = value.replace("\\", "\\\\")
        return "'" + value.replace("'", "\\'" if self.escapes else "''") + "'"

    def chosen(self, key: str, choices: Sequence[tuple[Cell, int]], otherwise: str) -> str:
        """Write the number that belongs to a key, or what stands for all other keys."""
        written = [(self.literal(value), str(number)) for value, number in choices]
        if self.looked_up and written:
            found = self.looked_up.format(*map(", ".join, zip(*written, strict=True)), key)
            return found if otherwise == "NULL" else f"COALESCE({found}, {otherwise})"
        steps = [f"WHEN {key} = {value} THEN {number}" for value, number in written]
        return f"CASE {' '.join(steps) or 'WHEN 1 = 0 THEN 0'} ELSE {otherwise} END"

    def without_nan(self, number: str) -> str:
        """Write a number, NULL where it is none."""
        return f"CASE WHEN {self.is_nan.format(number)} THEN NULL ELSE {number} END"

    def stripped(self, text: str) -> str:
        """Write a text without blanks at its ends."""
        return self.trim.format(text, self.literal(BLANKS))

    def cleaned(self, text: str, spellings: Spellings) -> str | None:
        """Write a text as ``spellings.clean`` leaves it; nothing where that cannot be written."""
        text = self.stripped(text) if spellings.strip else text
        if not spellings.folds:
            return text
        if not self.translate:
            return None
        letters = map("".join, zip(*spellings.folds.items(), strict=True))
        return self.translate.format(text, *map(self.literal, letters))

    def matches(self, text: str, pattern: str) -> str:
        """Write that a text fits a pattern as a whole."""
        return self.match.format(text, self.literal(self.whole.replace("{}", pattern)))

    def replaced(self, text: str, pairs: Sequence[tuple[str, str]]) -> str:
        """Write a text in which each of some parts is replaced, one after the other."""
        for old, new in pairs:
            text = f"REPLACE({text}, {self.literal(old)}, {self.literal(new)})"
        return text

    def is_day(self, text: str) -> str:
        """Write that a text holds a day."""
        return self.matches(text, DAY_TEXT)

    def read_number(self, text: str, written: SourceFormat) -> str:
        """Write the number that a text holds, NULL where it holds none."""
        if not written.usual_numbers:
            plain = self.replaced(text, written.rewriting)
            text = f"CASE WHEN {self.matches(text, written.number)} THEN {plain} END"
        return self.number.format(text)

    def computed(self, value: str, use: Callable[[str], str]) -> str:
        """Write what uses a value several times; engines notice that it is the same."""
        return use(value)

    def _float(self, value: float) -> str:
        if math.isinf(value):
            return f"{'-' if value < 0 else ''}{self.infinity}"
        # Without the cast a decimal number would be meant, which is another kind.
        return f"CAST('{value!r}' AS {self.double})"

    def values(self, name: str, columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> str:
        """Write a short list that is not empty as a table of its own, for WITH.

        Floats go as text and are read again: not every engine takes an expression in a list.
        """
        floats = [isinstance(cell, float) for cell in rows[0]]
        written = ", ".join(
            "(" + ", ".join(self._listed(*pair) for pair in zip(row, floats, strict=True)) + ")"
            for row in rows
        )
        read = ", ".join(
            f"CAST({column} AS {self.double}) AS {column}" if is_float else column
            for column, is_float in zip(columns, floats, strict=True)
        )
        return (
            f"{name}_({', '.join(columns)}) AS (VALUES {written}), "
            f"{name} AS (SELECT {read} FROM {name}_)"
        )

    def _listed(self, cell: Cell, is_float: bool) -> str:
        return f"'{cell!r}'" if is_float else self.literal(cell)


DUCKDB = Dialect(
    "duckdb",
    # Statistics of a Parquet file leave NaN out, and by them DuckDB 2.0 decides isnan() and every
    # comparison with an edge without a look at the rows. It has no such rule for these two.
    is_nan="NOT (isfinite({0}) OR isinf({0}))",
    looked_up="list_extract([{1}], list_position([{0}], {2}))",
    nearest=("max(x, {n}) FILTER (WHERE x < {v})", "min(x, {n}) FILTER (WHERE x >= {v})"),
)
POLARS = Dialect(
    "polars",
    is_nan="{0} = CAST('NaN' AS DOUBLE)",
    match="{0} RLIKE {1}",
    whole="^(?:{})$",
    translate="",
)
SPARK = Dialect(
    "spark",
    quote="`",
    escapes=True,
    number=f"CASE WHEN LOWER(TRIM({{0}})) RLIKE '{_NUMBER}' THEN CAST(TRIM({{0}}) AS DOUBLE) END",
    match="{0} RLIKE {1}",
    whole="^(?:{})\\z",  # to Java $ is also before a last line break
    same_text="CAST({} AS STRING)",
)
POSTGRESQL = Dialect(
    "postgresql",
    double="DOUBLE PRECISION",
    is_nan="{0} = CAST('NaN' AS DOUBLE PRECISION)",
    number=(
        f"CASE WHEN LOWER(TRIM({{0}})) ~ '{_NUMBER}' THEN CAST(TRIM({{0}}) AS DOUBLE PRECISION) END"
    ),
    match="{0} ~ {1}",
    whole="^(?:{})$",
    same_text='CAST({} AS TEXT) COLLATE "C"',
    overflows=True,
    infinity="CAST('Infinity' AS DOUBLE PRECISION)",
)
