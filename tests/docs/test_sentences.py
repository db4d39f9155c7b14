"""Every context that a page shows as an answer is one: the record is an outlier there.

Contexts are drawn, so the test that runs the pages accepts any of them. This one asks the table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import pytest

import pcor
from pcor.public import wording

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

# "... among claims where a is b; c is d." to the end of its line, which may break after "where"
# or ";".
SENTENCE = re.compile(
    r"\bRecord\s+(?P<record>\w+) \((?P<value>[\d,.]+(?: dollars)?)\)"
    r" is (?:an outlier by|unusually high in) (?P<metric>\w+) \((?P<detector>\w+)\)"
    r"(?: in some context of at least [^()\n]+ \(if not, this says nothing\), then with a chance of"
    r" at least 0\.99 also)? among (?:all \w+"
    r"|\w+ where\s+(?!\.\.\.)(?P<context>(?:[^\n]|(?<=;)\n)+?))\.[ \t]*$",
    re.MULTILINE | re.IGNORECASE,
)

# What pages use instead of a detector as it comes.
SETTINGS: dict[tuple[str, str], pcor.Detector] = {
    ("README.md", "grubbs"): pcor.Grubbs(min_population=3),
    ("docs/how-to/audit.md", "tail"): pcor.Tail(0.02),
    ("docs/how-to/ocdp-or-dp.md", "tail"): pcor.Tail(0.02),
}


def _ten_people() -> pcor.Table:
    return pcor.Table(pcor.demo.ten_people(), pcor.demo.ten_people_schema())


_SALARIES = cache(partial(pcor.demo.salary_table, any_set=True))
# Which table a sentence is about, by its metric and how many digits its record has. Any set of
# values is a context of it: pages have families of their own.
TABLES: dict[tuple[str, int], Callable[[], pcor.Table]] = {
    ("amount", 6): cache(partial(pcor.demo.claims_table, any_set=True)),
    ("salary", 5): _SALARIES,
    ("salary", 2): _SALARIES,
    ("salary", 1): cache(_ten_people),
}


@dataclass(frozen=True)
class Shown:
    """A sentence of a page: which record stands out by which rule, and among whom."""

    record: str
    value: str
    metric: str
    detector: str
    context: str


def shown(text: str) -> Iterator[Shown]:
    """Yield the sentences of a page that name a context."""
    for found in SENTENCE.finditer(text):
        context = found["context"] or "all rows"
        words = {name: found[name] for name in ("record", "value", "metric", "detector")}
        yield Shown(**words, context=" ".join(context.split()))


def is_true(one: Shown, page: str) -> bool:
    """Ask the table; an attribute that a page leaves out of its schema may take any value."""
    table = TABLES[one.metric, len(one.record)]()
    full = pcor.Context.full(table.schema).values
    context = full | wording.read_sentence(table.schema, one.context)
    rule = SETTINGS.get((page, one.detector), one.detector)
    value = table.record(int(one.record)).value
    if one.value not in (wording.amount(value, unit) for unit in (None, table.schema.metric.unit)):
        return False
    return pcor.is_outlier(table, int(one.record), context, rule)


SAID = sorted(
    {
        (str(page.relative_to(ROOT)), one)
        for page in PAGES
        for one in shown(page.read_text(encoding="utf-8"))
    },
    key=str,
)


@pytest.mark.parametrize(("page", "one"), SAID, ids=lambda value: getattr(value, "record", value))
def test_the_record_of_a_shown_sentence_is_an_outlier_in_its_context(page: str, one: Shown) -> None:
    assert is_true(one, page)


def test_sentences_are_found_in_the_pages_that_have_one() -> None:
    assert {page for page, _ in SAID} >= {"README.md", "docs/index.md", "docs/tutorial/index.md"}
    assert {page for page, _ in SETTINGS} <= {page for page, _ in SAID}


@pytest.mark.parametrize(
    ("value", "context", "true"),
    [
        ("390,001", "rows where any job_title except CEO;\nany district except Historic", False),
        ("390,000", "rows where any job_title except CEO;\nany district except Historic", True),
        (
            "390,000",
            "rows where job_title is Lawyer; city is Ottawa; district is Diplomatic",
            False,
        ),
        ("390,000", "all rows", False),
    ],
)
def test_a_context_that_cannot_occur_is_found(value: str, context: str, true: bool) -> None:
    said = f"Record 8 ({value}) is an outlier by salary (grubbs) among {context}."
    [one] = shown(f"It is said:\n{said}\nOr so.")
    assert is_true(one, "README.md") is true


def test_a_context_that_is_left_open_says_nothing() -> None:
    assert list(shown("Record 8 (5) is an outlier by salary (lof) among rows where ...\n")) == []
