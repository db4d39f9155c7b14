"""The paper's tables from public raw files, with the filters of ours.

Private: the rows, until somebody looks up that they are public. The paper says how many rows and
values its tables have, not which; these filters give tables of the same shape.

Salaries: the Province of Ontario's "Public sector salary disclosure" (ontario.ca), a CSV file for
each year, with columns Sector, Last Name, First Name, Salary Paid, Taxable Benefits, Employer, Job
Title, Calendar Year. Kept: 2006 to 2013, eight universities, titles in nine families by keyword.
Homicides: "Homicide Reports" of the Murder Accountability Project (Kaggle, ``database.csv``), with
columns Record ID, Agency Type, State, Year, Victim Age, Weapon and others. Kept: four types of
agency, six states, six weapons, and victims of known age.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv, parquet

from pcor.errors import SourceError, WriteError, did_you_mean
from pcor.public.schema import Schema
from pcor.support.files import write_text, write_whole

YEARS = tuple(range(2006, 2014))
EMPLOYERS = (
    "Brock University",
    "McMaster University",
    "Queen's University",
    "University of Guelph",
    "University of Ottawa",
    "University of Waterloo",
    "University of Western Ontario",
    "York University",
)
_OTHER_NAMES = {"western university": "University of Western Ontario"}

# The first family whose words are in a title; ``None`` for those that are left out.
_FAMILIES: tuple[tuple[str, str | None], ...] = (
    ("associate professor|^assoc prof", "Associate Professor"),
    ("assistant professor", "Assistant Professor"),
    ("professor", "Professor"),
    ("faculty", None),
    ("lecturer", "Lecturer"),
    ("instructor", None),
    ("dean", "Dean"),
    ("president|provost|registrar", "Executive"),
    ("director", "Director"),
    ("manager", "Manager"),
    ("librarian", "Librarian"),
)
FAMILIES = tuple(sorted(name for _, name in _FAMILIES if name))

AGENCIES = ("County Police", "Municipal Police", "Sheriff", "State Police")
STATES = ("California", "Florida", "Georgia", "New York", "Pennsylvania", "Texas")
WEAPONS = ("Blunt Object", "Firearm", "Handgun", "Knife", "Rifle", "Shotgun")
_OLDEST = 99  # 998 and 999 stand for unknown

# What we call a column, and what the files do.
_SALARY = {
    "job_title": ("Job Title", "Position", "Title"),
    "employer": ("Employer",),
    "year": ("Calendar Year", "Year"),
    "salary": ("Salary Paid", "Salary"),
}
_HOMICIDE = {
    "agency_type": ("Agency Type",),
    "state": ("State",),
    "weapon": ("Weapon",),
    "victim_age": ("Victim Age",),
}


def prepare_salary(files: Sequence[Path], out: Path) -> Path:
    """Write salary_51k.parquet and its schema from the yearly files; return the path."""
    raw = pa.concat_tables([_read(file, _SALARY) for file in files])
    rows = pa.table(
        {
            "job_title": _mapped(raw["job_title"], family),
            "employer": _mapped(raw["employer"], university),
            "year": _numbers(raw["year"]).cast(pa.int16(), safe=False),
            "salary": _numbers(raw["salary"]),
        }
    )
    rows = _within(rows.drop_null(), "year", pa.array(YEARS, pa.int16()))
    domains: dict[str, Sequence[object]] = {
        "job_title": FAMILIES,
        "employer": EMPLOYERS,
        "year": YEARS,
    }
    return _write(rows, "salary", domains, out / "salary_51k.parquet")


def prepare_homicide(file: Path, out: Path) -> Path:
    """Write homicide_110k.parquet and its schema from the reports; return the path."""
    raw = _read(file, _HOMICIDE)
    ages = _numbers(raw["victim_age"])
    known = pc.if_else(pc.less_equal(ages, _OLDEST), ages, None)
    rows = raw.set_column(raw.schema.get_field_index("victim_age"), "victim_age", known)
    rows = rows.drop_null()
    domains = {"agency_type": AGENCIES, "state": STATES, "weapon": WEAPONS}
    for name, values in domains.items():
        rows = _within(rows, name, pa.array(values))
    return _write(rows, "victim_age", domains, out / "homicide_110k.parquet")


def family(title: str) -> str | None:
    """Return the family of a job title.

    >>> family("Associate Professor / Professeur agrégé"), family("Vice-President, Research")
    ('Associate Professor', 'Executive')
    """
    plain = _plain(title)  # both sides of a bilingual title: "Dean / Professor" is not one
    for words, name in _FAMILIES:
        if re.search(words, plain):
            return name
    return None


def university(employer: str) -> str | None:
    """Return the name of one of the eight universities, however it is spelt.

    >>> university("University of Ottawa / Université d'Ottawa"), university("The Ottawa Hospital")
    ('University of Ottawa', None)
    """
    english = employer.split("/")[0]
    plain = _plain(english).removeprefix("the ")
    names = {_plain(name): name for name in EMPLOYERS} | _OTHER_NAMES
    return names.get(plain)


def _plain(text: str) -> str:
    """Write a text in lower case, without accents, curly quotes or extra spaces."""
    letters = unicodedata.normalize("NFKD", text.replace("\u2019", "'"))
    kept = "".join(letter for letter in letters if not unicodedata.combining(letter))
    return " ".join(kept.lower().split())


def _read(file: Path, wanted: Mapping[str, tuple[str, ...]]) -> pa.Table:
    """Read the wanted columns of a CSV file as text, under our names."""
    try:
        content = file.read_bytes()
    except OSError:
        raise SourceError(f"cannot read {str(file)!r}: no such file, or not allowed") from None
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("cp1252", errors="replace")  # the older files
    try:
        header = csv.open_csv(pa.BufferReader(text.encode())).schema.names
        names = {ours: _column(header, theirs, file) for ours, theirs in wanted.items()}
        columns = csv.ConvertOptions(
            column_types=dict.fromkeys(names.values(), pa.string()),
            include_columns=list(names.values()),
            strings_can_be_null=True,
        )
        rows = csv.read_csv(
            pa.BufferReader(text.encode()),
            parse_options=csv.ParseOptions(newlines_in_values=True),
            convert_options=columns,
        )
    except pa.ArrowException:
        raise SourceError(f"{str(file)!r} is not a CSV file with a row of column names") from None
    return rows.rename_columns(list(names))


def _column(header: Sequence[str], theirs: Sequence[str], file: Path) -> str:
    """Return the name of a column as the file has it; case and spaces around it do not matter."""
    known = {name.strip().lower(): name for name in header}
    for name in theirs:
        if name.lower() in known:
            return known[name.lower()]
    raise SourceError(
        f"{str(file)!r} has no column {' or '.join(map(repr, theirs))}"
        f"{did_you_mean(theirs[0], header)}; is it the raw file as published?"
    )


def _mapped(column: pa.ChunkedArray, name: Callable[[str], str | None]) -> pa.Array:
    """Rename the values of a column; each different one is looked at once."""
    encoded = column.combine_chunks().dictionary_encode()
    found = [None if value is None else name(value) for value in encoded.dictionary.to_pylist()]
    return pc.take(pa.array(found, pa.string()), encoded.indices)


def _numbers(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Read amounts such as ``$123,456.78``; what is no number becomes null."""
    digits = pc.replace_substring_regex(column, r"[$,\s]", "")
    written = pc.match_substring_regex(digits, r"^-?\d+(\.\d*)?$")
    return pc.if_else(written, digits, None).cast(pa.float64())


def _within(rows: pa.Table, name: str, values: pa.Array) -> pa.Table:
    return rows.filter(pc.is_in(rows[name], values))


def _write(
    rows: pa.Table, metric: str, domains: Mapping[str, Sequence[object]], path: Path
) -> Path:
    """Write the table and its schema side by side."""
    if len(rows) == 0:
        raise SourceError(
            f"no row of the raw files is one of {path.stem}: "
            f"{', '.join(f'{name} in {list(values)}' for name, values in domains.items())}"
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError:
        raise WriteError(f"cannot make the folder {str(path.parent)!r}") from None
    write_whole(path, lambda part: parquet.write_table(rows, part, compression="zstd"))
    schema = Schema(
        metric=metric,
        attributes={name: list(values) for name, values in domains.items()},
        name=path.stem.replace("_", "-"),
    )
    write_text(path.with_suffix(".toml"), schema.to_toml())
    return path
