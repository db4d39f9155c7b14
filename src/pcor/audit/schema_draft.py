"""Draft a schema from a table. For the owner's eyes: everything here shows rows.

A domain is public knowledge and has to be the owner's word, not the data's. So whatever a draft
read off the data stands in a part that is marked for review: one mark for each attribute, and one
for the metric, for limits and for how the file is written, where those were guessed.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pcor.audit.column_draft import (
    MOST_VALUES,
    ColumnDraft,
    cell_counts,
    draft_column,
    missing_words,
    names_rows,
)
from pcor.audit.known_words import means_no_value
from pcor.audit.owner_only import OwnerOnly
from pcor.audit.schema_fit import CLEAN_PEOPLE, differ, reads_as, spelled_alike, wrong_cells
from pcor.audit.source_guess import guess_dates, guess_layout, guess_numbers
from pcor.errors import MetricError, SourceError, is_printable
from pcor.public.guarantee import OWNER_ONLY, PureDP
from pcor.public.schema import REVIEW, Metric, Schema
from pcor.public.schema_file import marked_tables
from pcor.public.source_format import SourceFormat
from pcor.public.spellings import BLANKS
from pcor.public.toml_text import toml_lines, toml_value
from pcor.rows.columns import read_columns
from pcor.rows.encoding import is_text, numbers
from pcor.rows.files import plain_name
from pcor.search.blocks import ENUMERATION_LIMIT

# How many attributes are proposed where none are named, and how many clauses where all sets of
# clauses would be too many.
_MOST_ATTRIBUTES = 6
_FEW_CLAUSES = (3, 2)

_SHOWN_CELLS = 5

# More different words among numbers than this are no exceptions that anybody would go through.
_MOST_STRANGE_WORDS = 20
_EXCEPTIONS = 0.1  # nor a larger part of the rows
_DIGIT = re.compile(r"\d")
_EMPTY_THEM = 'or empty them and set missing = "drop" under [metric]'

_HEADER = """\
# A draft by `pcor schema init`, not yet fit for use.
# A domain is public knowledge: it says what could occur, not what does. Every part marked REVIEW
# was read off the data. Check each one, add what can occur but did not, remove what only an error
# can have put there, and then delete the marks.
"""
_FAMILIES = {
    "range": '  # an unbroken run; or "one" value, or "any" set of them',
    "one": '  # the record\'s own value or all; or "any" set; or groups = {...} in place of this',
}
# Placeholders, never read off the data: what only the owner can say.
_GRID = """\
# low = 0  # for --facts median: quantiles are released at low, low + step, ... high. Say what
# high = 20000  # anybody may know; these three are examples, and not from the data
# step = 50"""
_CONTEXTS = """\
# [contexts]
# max_clauses = {most}  # at most so many attributes are restricted: shorter sentences
"""
_RELEASE = f"""\
[release]
detector = "grubbs"  # far from the mean, for so many rows
# detector = "lof"  # the paper's: farther from its neighbours than they are; a low bar
# detector = "tail:share=0.01"  # among the largest one in a hundred; for --guarantee {PureDP.name}
"""
NO_ID = (
    "no id column: a record is its row number, nothing is promised to whoever stands before it, "
    f"and guarantee {PureDP.name!r} is refused"
)

# How columns are called that name people.
_PEOPLE = re.compile(
    r"customer|client|person|people|patient|member|policy_?holder|insured|user|employee|driver|"
    r"citizen|student|household|account|holder|ssn|(?<![a-z])kund(?:e|in)|versicherte|mitarbeiter",
    re.IGNORECASE,
)


@dataclass(frozen=True, repr=False)
class SchemaDraft(OwnerOnly):
    """A proposal, and what was noticed on the way. Private.

    Attributes:
        schema: what it declares.
        text: the schema file, with a mark on everything that was read off the data.
        noticed: for each column, by its name, sentences for the owner.
    """

    schema: Schema
    text: str
    noticed: dict[str, list[str]]

    @property
    def marks(self) -> int:
        """How many parts of the file are marked."""
        return len(self.schema.unreviewed)

    @property
    def notes(self) -> tuple[str, ...]:
        """What was noticed, a line each; columns of which the same is said share one."""
        columns: dict[str, list[str]] = {}
        for column, sentences in self.noticed.items():
            for sentence in sentences:
                columns.setdefault(sentence, []).extend([column] if column else [])
        # Names as a shell takes them: they are typed again, behind --attributes.
        return tuple(
            f"{shlex.quote(','.join(names))}: {sentence}" if names else sentence
            for sentence, names in columns.items()
        )


def draft(
    source: Any,
    *,
    metric: str,
    attributes: Sequence[str] | None = None,
    id_column: str | None = None,
    person: str | None = None,
    name: str = "",
    given: Mapping[str, str] | None = None,
) -> SchemaDraft:
    """Return a proposal for a table; everything in it that was read off the data is marked.

    Args:
        source: the table.
        metric: the column to judge by.
        attributes: the columns that contexts speak of; if ``None``, a few are proposed.
        id_column: the column that names a record.
        person: the column that says whose a row is; how many rows people have is read off the data.
        name: of the dataset.
        given: what is known of how the table is written; the rest of ``[source]`` is guessed.

    Raises:
        SourceError: a column is named twice, is not there, or cannot be an attribute.
        MetricError: the metric is not numeric.
    """
    named = [] if attributes is None else list(attributes)
    if not named and attributes is not None:
        raise SourceError(
            "name at least one attribute, a column that contexts speak of: --attributes a,b,c"
        )
    roles = [metric, *named, *(one for one in (id_column, person) if one is not None)]
    layout = guess_layout(source, given or {})
    own: dict[str, str] = {}

    def looked_at(names: list[str]) -> list[str]:
        own.update(_own_names(roles, names))
        people = (name for name in names if attributes is None or _PEOPLE.search(name))
        return [*own.values(), *people]

    # Names come with the rows: a workbook is opened once.
    columns = read_columns(source, looked_at, layout)
    metric, named = own[metric], [own[one] for one in named]
    id_column, person = own.get(id_column or ""), own.get(person or "")
    roles = list(own.values())
    others = [column for column in columns.column_names if column not in roles]
    written = guess_numbers(columns[metric], metric, layout, given or {})
    written = guess_dates((columns[column] for column in named or others), written)
    noticed: dict[str, list[str]] = {}
    measured = _metric(columns[metric], metric, written, noticed)
    if attributes is None:
        drafts = _proposed({column: columns[column] for column in others}, written, noticed)
    else:
        drafts = {column: draft_column(columns[column], column, written) for column in named}
    noticed |= {column: one.noticed for column, one in drafts.items() if one.noticed}
    for column in others:
        if column not in drafts and _PEOPLE.search(column):
            _notice_people(columns[column], column, noticed)
    dataset = name or (plain_name(Path(source)) if isinstance(source, str | Path) else "dataset")
    about: dict[str, Any] = {"name": dataset} | ({} if id_column is None else {"id": id_column})
    if person is not None:
        about |= _person(columns[person], person, noticed)
    declared: dict[str, Any] = {
        "dataset": about,
        "metric": measured,
        "attributes": {column: one.declared for column, one in drafts.items()},
        "release": {"detector": "grubbs"},
        "source": written.to_dict(),
    }
    schema = _that_fits(declared, noticed)
    text = _text(declared, given or {})
    return SchemaDraft(schema.marked(marked_tables(text)), text, noticed)


def _own_names(given: Sequence[str], there: Sequence[str]) -> dict[str, str]:
    """Return what each column is called in the table; blanks at the ends need not be given.

    A name that fits no column, or several, stays as it is, and is refused when it is read.

    Raises:
        SourceError: two of them are the same column.
    """
    own: dict[str, str] = {}
    for name in given:
        alike = [one for one in there if one.strip(BLANKS) == name.strip(BLANKS)]
        column = alike[0] if len(alike) == 1 and name not in there else name
        if column in own.values():
            raise SourceError(
                f"column {column!r} is named twice; each column has one role: the metric, an "
                "attribute, the id or the person"
            )
        own[name] = column
    return own


# -- what is proposed -----------------------------------------------------------------------------


def _metric(
    column: Any, name: str, written: SourceFormat, noticed: dict[str, list[str]]
) -> dict[str, Any]:
    """Return what the schema says of the metric: which words mean that there is none."""
    words: list[str] = []
    strange: dict[str, int] = {}
    if is_text(column.type):  # only texts can hold words beside numbers
        cells = cell_counts(column)
        strange = _words_among_numbers(cells, written)
        found = missing_words(cells, written)
        words = [word for word in found if written.plain(word) is None] + list(strange)
    metric = Metric(name, missing="drop", missing_values=tuple(words))
    try:
        values = numbers(column, metric, written)
    except MetricError:
        refused = MetricError(
            f"the metric {name!r} is not numeric: at least one row holds text or another kind of "
            "value; a metric must be a number in every row"
        )
        shown = _cells_that_are_not_numbers(column, written)
        refused.add_note(f"{OWNER_ONLY} {shown}; correct them, {_EMPTY_THEM}")
        raise refused from None
    declared: dict[str, Any] = {"column": name}
    if without := int((values != values).sum()):
        declared["missing"] = "drop"
        said = (
            "row without a number, which is" if without == 1 else "rows without a number, which are"
        )
        noticed[name] = [f"{without:,} {said} left out"]
    if strange:
        shown = ", ".join(
            f"{word!r} in {n:,} row{'' if n == 1 else 's'}" for word, n in strange.items()
        )
        noticed[name].append(
            f"nearly all cells are numbers; taken for no value, in missing_values: {shown}"
        )
    if words:
        declared["missing_values"] = words
    return declared


def _words_among_numbers(cells: Mapping[Any, int], written: SourceFormat) -> dict[str, int]:
    """Return the few words, with how often they occur, where all else are numbers; or nothing.

    A cell with a digit may be a number that is written in another way: that is for the owner to
    correct, and no word.
    """
    texts: Counter[str] = Counter()
    for cell, count in cells.items():
        texts[str(cell).strip(BLANKS)] += count
    wrong = {
        text: count
        for text, count in sorted(texts.items())
        if text and not means_no_value(text) and not reads_as(text, "a number", written)
    }
    few = len(wrong) <= _MOST_STRANGE_WORDS
    few = few and sum(wrong.values()) <= _EXCEPTIONS * sum(texts.values())
    words = all(is_printable(text) and not _DIGIT.search(text) for text in wrong)
    return wrong if few and words else {}


def _cells_that_are_not_numbers(column: Any, written: SourceFormat) -> str:
    """Return the first distinct ones, with the first row of each."""
    wrong = wrong_cells(column, "a number", written)
    wrong = [(row, cell) for row, cell in wrong if not means_no_value(cell.strip(BLANKS))]
    first: dict[str, int] = {}
    for row, cell in wrong:
        first.setdefault(cell, row)
    shown = [f"{cell!r} in row {row}" for cell, row in list(first.items())[:_SHOWN_CELLS]]
    return f"{len(wrong):,} not numbers, first {', '.join(shown)} (rows are counted from 0)"


def _proposed(
    columns: Mapping[str, Any], written: SourceFormat, noticed: dict[str, list[str]]
) -> dict[str, ColumnDraft]:
    """Choose the columns that contexts could speak of, and say of the others why not.

    Those with few values come first: of them everybody can say what could occur.
    """
    possible: dict[str, ColumnDraft] = {}
    for name, column in columns.items():
        try:
            one = draft_column(column, name, written)
        except SourceError:
            noticed[name] = ["no single values; left out"]
            continue
        if one.size == 1:
            noticed[name] = ["the same value in every row; left out"]
        elif names_rows(name, one.cells, one.declared):
            noticed[name] = ["a value of its own in nearly every row: it names rows; left out"]
        elif one.too_many:
            noticed[name] = [f"{len(one.cells):,} different values, too many to speak of; left out"]
        else:
            possible[name] = one
    sizes = {name: one.size for name, one in possible.items()}
    chosen = sorted(sizes, key=lambda name: (sizes[name] > MOST_VALUES, sizes[name]))
    for name in chosen[_MOST_ATTRIBUTES:]:
        noticed[name] = ["could be an attribute; left out, since there are enough"]
    kept = set(chosen[:_MOST_ATTRIBUTES])
    if not kept:
        raise SourceError(
            "no column could be an attribute, one that contexts speak of: none has a few values "
            "that many rows share; name one yourself if you know better"
        )
    return {name: one for name, one in possible.items() if name in kept}


def _person(column: Any, name: str, noticed: dict[str, list[str]]) -> dict[str, Any]:
    """Return what the schema says of people: the bound is the largest number of rows that occurs.

    Raises:
        SourceError: the column does not hold single values.
    """
    cells = cell_counts(column)
    counts = list(cells.values())
    most = max(counts, default=1)
    noticed[name] = [
        f"{len(counts):,} people, {sum(count > 1 for count in counts):,} of them with several rows "
        f"and none with more than {most:,}: rows_per_person, which is public. Declare what could "
        "occur; all rows of a person are then protected together, and each draw is so many times "
        'less exact. over = "keep" counts only so many rows of each person'
    ]
    if nobody := len(column) - sum(counts):
        rows = "1 row" if nobody == 1 else f"{nobody:,} rows"
        noticed[name].append(
            f"{rows} without a person, and a release refuses such a table: say whose they are, or "
            "leave them out of it"
        )
    if alike := spelled_alike(cells):
        noticed[name].append(f"{differ(alike)}; {CLEAN_PEOPLE}")
    return {"person": name, "rows_per_person": most}


def _notice_people(column: Any, name: str, noticed: dict[str, list[str]]) -> None:
    """Say where a column seems to name people who have several rows."""
    try:
        several = sum(count > 1 for count in cell_counts(column).values())
    except SourceError:
        return  # what does not hold single values names nobody
    if several:
        noticed[name] = [
            f"seems to name people, {several:,} of whom have several rows: a promise is about one "
            "row, not about all rows of a person, unless this is declared as the person (--person)"
        ]


def _that_fits(declared: dict[str, Any], noticed: dict[str, list[str]]) -> Schema:
    """Return the schema, its contexts limited to a few clauses where there would be too many."""
    schema = Schema.from_dict(declared)
    for clauses in _FEW_CLAUSES:
        if schema.drawable(ENUMERATION_LIMIT) or clauses >= len(schema.attributes):
            break
        declared["contexts"] = {"max_clauses": clauses}
        schema = Schema.from_dict(declared)
    if "contexts" in declared:
        clauses = declared["contexts"]["max_clauses"]
        said = f"so many contexts that each may restrict {clauses} attributes at most: max_clauses"
        noticed.setdefault("", []).append(said)
    return schema


# -- the file -------------------------------------------------------------------------------------


def _text(declared: Mapping[str, Any], given: Mapping[str, str]) -> str:
    """Write the schema file, with a mark on every part that was read off the data."""
    dataset, metric = declared["dataset"], declared["metric"]
    lines = [_HEADER, _title("dataset", "person" in dataset)]
    lines += [f"name = {toml_value(dataset['name'])}"]
    lines += [f"id = {toml_value(dataset['id'])}" if "id" in dataset else f"# {NO_ID}"]
    lines += _lines({key: dataset[key] for key in dataset if key not in ("name", "id")})
    lines += ['# rows = "claims"  # what sentences call the rows']
    lines += ["", _title("metric", len(metric) > 1), *_lines(metric)]
    lines += ['# unit = "dollars"  # what its numbers are followed by', _GRID]
    for name, attribute in declared["attributes"].items():
        lines += ["", _title(f"attributes.{toml_value(name)}", True), *_lines(attribute)]
    if "contexts" in declared:
        lines += ["", _title("contexts", True), *_lines(declared["contexts"]), ""]
    else:
        lines += ["", _CONTEXTS.format(most=min(_FEW_CLAUSES[0], len(declared["attributes"])))]
    lines += [_RELEASE]
    if source := declared["source"]:
        lines += [_title("source", not source.keys() <= given.keys()), *_lines(source), ""]
    return "\n".join(lines)


def _title(table: str, marked: bool) -> str:
    return f"[{table}]{f'  {REVIEW}' if marked else ''}"


def _lines(declared: Mapping[str, Any]) -> list[str]:
    """Write a table, with what else there is beside the family."""
    said = {f'contexts = "{family}"': comment for family, comment in _FAMILIES.items()}
    return [line + said.get(line, "") for line in toml_lines(declared)]
