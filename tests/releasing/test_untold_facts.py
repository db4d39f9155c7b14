"""Quantiles that epsilon was too small for: said in words, never as a number, and never drawn."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

import pcor
from pcor.cli.output import tell_untold
from pcor.public.grid import MetricGrid
from pcor.releasing.facts import Fact, in_words, plausible, spans, untold
from pcor.testing import seeded

COST = Fraction(1, 10)
GRID = MetricGrid(0, 500000, 10000)
SCHEMA = pcor.Schema.from_dict(
    pcor.demo.ten_people_schema().to_dict()
    | {"metric": {"column": "salary", "low": 0, "high": 500000, "step": 10000}}
)
COUNT = Fact("count", 12, 8, 16, COST)
MEDIAN = Fact("median", 330000, 0, 500000, COST)
TOLD = Fact("quantile:0.95", 380000, 350000, 400000, COST)
UNTOLD = Fact("quantile:0.99", 500000, 0, 500000, COST)


@pytest.fixture(scope="module")
def drawn() -> pcor.Release:
    table = pcor.Table(pcor.demo.ten_people(), SCHEMA)
    rule = pcor.Grubbs(min_population=3)
    return pcor.release(table, 8, 9, detector=rule, facts="count", chooser=seeded(1))


def with_facts(drawn: pcor.Release, *facts: Fact) -> pcor.Release:
    return replace(drawn, facts=list(facts), stored=None)


def test_only_an_interval_with_the_whole_grid_in_it_says_nothing() -> None:
    assert spans(MEDIAN, GRID)
    assert not spans(replace(MEDIAN, low=10000), GRID)
    assert not spans(replace(MEDIAN, high=490000), GRID)
    assert not spans(MEDIAN, None)
    assert not spans(replace(COUNT, low=0, high=500000), GRID)  # no quantile


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ([MEDIAN], "the median could not be told at this epsilon"),
        (
            [COUNT, MEDIAN, TOLD],
            "about 12 rows (8 to 16); 95 % are below about 380,000 (350,000 to 400,000); "
            "the median could not be told at this epsilon",
        ),
        (
            [MEDIAN, UNTOLD],
            "the median and the 99 % quantile could not be told at this epsilon",
        ),
    ],
)
def test_a_sentence_names_no_number_for_it_and_can_be_read_again(
    drawn: pcor.Release, facts: list[Fact], said: str
) -> None:
    assert in_words(facts, SCHEMA, pcor.LOF()) == said
    sentence = str(with_facts(drawn, *facts)).partition(" [")[0]
    assert sentence.endswith(f": {said}.")
    assert pcor.Context.parse(SCHEMA, sentence[sentence.index("among ") :]) == drawn.context


def test_the_certificate_keeps_its_numbers_and_the_page_says_what_they_mean(
    drawn: pcor.Release,
) -> None:
    release = with_facts(drawn, COUNT, MEDIAN)
    assert release.to_dict()["facts"][1] == MEDIAN.to_dict()
    said = "The median could not be told at this epsilon: the interval rules nothing out."
    assert said in release.to_html()
    assert "330,000" in release.to_html()
    assert said not in with_facts(drawn, COUNT, TOLD).to_html()


def test_a_letter_says_so_and_draws_only_what_could_be_told(drawn: pcor.Release) -> None:
    letter = with_facts(drawn, MEDIAN, TOLD).to_letter().partition("<script")[0]
    assert '<th scope="row">half are below</th><td colspan="2">could not be told</td>' in letter
    assert "330,000" not in letter
    picture = letter.partition("<svg")[2].partition("</svg>")[0]
    assert "half are below" not in picture
    assert len(re.findall(r"v22", picture)) == 1  # a tick for each quantile
    assert "<svg" not in with_facts(drawn, MEDIAN).to_letter()


def test_an_older_certificate_is_told_in_the_same_words(drawn: pcor.Release) -> None:
    """Its sentence stays as it was written; letter and page know what its numbers mean."""
    facts: list[dict[str, Any]] = [MEDIAN.to_dict()]
    old = replace(drawn, facts=[MEDIAN], stored=drawn.to_dict() | {"facts": facts})
    assert str(old) == drawn.to_dict()["sentence"]
    assert "the median could not be told" in old.headline
    assert "330,000" not in old.to_letter().partition("<script")[0]


def test_an_older_sentence_without_its_metric_keeps_its_words(drawn: pcor.Release) -> None:
    """A ledger finds it by them."""
    plan = pcor.plan(SCHEMA, 9, detector=drawn.plan.detector, facts="count", show_metric=False)
    old = "among all rows: about 12 rows (8 to 16) in words of before."
    told = f"Record 8 (390,000) is an outlier by salary (grubbs) {old}"
    hidden = pcor.Release.from_dict(drawn.to_dict() | {"sentence": told}, plan)
    assert str(hidden) == f"Record 8 is an outlier by salary (grubbs) {old}"


def test_what_says_nothing_moves_no_other_quantile() -> None:
    high = replace(MEDIAN, value=490000)
    assert [one.value for one in plausible([high, TOLD], GRID)] == [380000, 380000]
    low = replace(UNTOLD, value=0)
    quarter = Fact("quantile:0.25", 90000, 80000, 95000, COST)
    made = plausible([quarter, low, replace(high, name="quantile:0.995"), TOLD], GRID)
    assert [one.value for one in made] == [90000, 90000, 380000, 380000]
    assert [one.value for one in plausible([replace(high), low], GRID)] == [0, 490000]
    for one in made:
        assert one.low <= one.value <= one.high
    # Without a grid, and where all say something, they are sorted as ever.
    assert [one.value for one in plausible([replace(TOLD, name="median"), quarter], GRID)] == [
        90000,
        380000,
    ]


def test_the_owner_is_told_what_to_do(
    drawn: pcor.Release, capsys: pytest.CaptureFixture[str]
) -> None:
    one, other = with_facts(drawn, MEDIAN), with_facts(drawn, TOLD)
    assert untold(other.facts, SCHEMA) == ""
    tell_untold([other])
    assert capsys.readouterr().err == ""
    tell_untold([one])
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("note: the median could not be told at this epsilon: its interval")
    for way in ("--epsilon", "--facts-share", "fewer --facts", "coarser grid"):
        assert way in said.err
    tell_untold([one, other])
    assert "(1 of 2 records)" in capsys.readouterr().err
