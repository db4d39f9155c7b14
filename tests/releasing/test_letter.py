"""The letter: what its certificate says, in words; from a template that can do nothing else."""

from __future__ import annotations

import json
import random
import re
import sys
from dataclasses import fields, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import pcor
from pcor.errors import ParameterError, SignatureError, WriteError
from pcor.releasing.certificate import Receipt
from pcor.releasing.facts import Fact
from pcor.releasing.letter import LetterTemplate, LetterWords
from pcor.releasing.verification import verify_content
from pcor.testing import seeded
from tests.helpers.page_world import NARROW, browser

FACTS: list[dict[str, Any]] = [
    {"name": "count", "value": 1240, "low": 1210, "high": 1270},
    {"name": "rank", "value": 3, "low": 1, "high": 33},
    {"name": "median", "value": 800.5, "low": 750, "high": 900},
    {"name": "quantile:0.95", "value": 2150, "low": 1900, "high": 2500},
]


# Words of the table that do not stand on one line.
BROKEN_WORDS = """
[...document.querySelectorAll("th, td")].flatMap((cell) =>
  [...cell.textContent.matchAll(/\\S+/g)].filter((word) => {
    const range = document.createRange();
    range.setStart(cell.firstChild, word.index);
    range.setEnd(cell.firstChild, word.index + word[0].length);
    return range.getClientRects().length > 1;
  }).map(String))
"""


@pytest.fixture(scope="module")
def released() -> pcor.Release:
    table = pcor.Table(pcor.demo.ten_people(), pcor.demo.ten_people_schema())
    rule = pcor.Grubbs(min_population=3)
    return pcor.release(table, 8, epsilon=0.5, detector=rule, chooser=seeded(1))


@pytest.fixture(scope="module")
def told(released: pcor.Release) -> pcor.Release:
    """A release whose certificate holds facts."""
    facts = [fact | {"confidence": 0.95, "epsilon": "0.01"} for fact in FACTS]
    return replace(released, stored=released.to_dict() | {"facts": facts})


@pytest.fixture(scope="module")
def key() -> pcor.SigningKey:
    return pcor.SigningKey.generate()


def visible(letter: str) -> str:
    """Return the text that a reader sees."""
    body = re.sub(r"(?s)<(style|script|title)\b.*?</\1>", "", letter)
    return " ".join(re.sub(r"<[^>]+>", " ", body).split())


def own(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "own.html"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_letter_says_what_was_found_among_whom_and_what_is_promised(
    released: pcor.Release,
) -> None:
    said = visible(released.to_letter())
    certificate = released.to_dict()
    assert certificate["sentence"] in said
    assert "compared with all rows for which" in said
    assert "any except Medical Doctor" in said
    assert "With or without the row of any one of them" in said
    assert "by a factor of at most 1.65 (epsilon 0.5)" in said
    assert all(who in said for who in released.promise.exceptions)
    assert "without whom this record would stand out in other groups" in said
    assert "The certificate inside this file has the whole promise" in said
    assert "NOT PRIVATE" in said  # drawn with a seed
    assert "Numbers about this group" not in said
    assert "<svg" not in released.to_letter()


def test_a_letter_has_no_jargon_and_its_certificate_has_the_whole_promise(
    released: pcor.Release,
) -> None:
    said, promise = visible(released.to_letter()), released.to_dict()["promise"]
    for jargon in ("COE", "valid context", "neighbour", "stated detector", "OCDP", "queried"):
        assert jargon not in said
        assert jargon in " ".join(map(str, promise.values())) or jargon == "neighbour"
    inside = json.loads(released.to_letter().split('id="certificate">')[1].split("</script>")[0])
    assert inside["promise"] == promise


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("lof:k=3", "more room around it than the 3 values nearest to it"),
        ("grubbs", "so far from the average of the group"),
        ("grubbs:tail=lower", "so far below the average of the group"),
        ("tail:share=0.3", "less than 30 % of the group have one at least as high."),
        ("tail:share=0.3,tail=lower", "less than 30 % of the group have one at least as low."),
        (
            "neighbourhood:radius=5000,share=0.4",
            "less than 40 % of the group have one within 5,000",
        ),
        ("rare_bin:edges=0|300000,share=0.4", "less than 40 % of the group are in its range"),
        ("histogram:rare=0.2", "at most 20 % of the group."),
    ],
)
def test_a_letter_says_in_a_sentence_what_the_rule_calls_unusual(
    released: pcor.Release, rule: str, said: str
) -> None:
    plan = pcor.plan(released.plan.schema, 0.5, detector=rule)
    letter = visible(replace(released, plan=plan, stored=None).to_letter())
    begin = f"By the rule that was used ({plan.detector.name}), a value is unusual if "
    assert letter.count(begin) == 1
    assert said in letter.split(begin)[1].split(". ")[0] + "."


def test_a_rule_without_words_is_told_as_it_is_documented(released: pcor.Release) -> None:
    class Mine(pcor.Tail):
        """A value is unusual if I say so."""

    class Silent(pcor.Tail):
        pass

    for rule, said in ((Mine, "The rule that was used (tail): A value is unusual if I say so."),):
        plan = pcor.plan(released.plan.schema, 0.5, detector=rule())
        assert said in visible(replace(released, plan=plan, stored=None).to_letter())
    plan = pcor.plan(released.plan.schema, 0.5, detector=Silent())
    assert "rule that was used" not in replace(released, plan=plan, stored=None).to_letter()


def test_who_are_counted_is_said_also_where_only_a_rank_was_paid_for(told: pcor.Release) -> None:
    rank = FACTS[1] | {"confidence": 0.95, "epsilon": "0.01"}
    for counts, noun in (({}, "rows"), ({"counts": "people"}, "people")):
        stored = told.to_dict() | {"facts": [rank | counts]}
        said = visible(replace(told, stored=stored).to_letter())
        assert f"{noun} at least as high, this one included 3 1 and 33" in said
        stored["facts"] = [FACTS[0] | rank | {"name": "count"} | counts, rank | counts]
        said = visible(replace(told, stored=stored).to_letter())
        assert f"number of {noun} 3 1 and 33 of them at least as high, this" in said


def test_where_the_side_is_not_public_the_letter_says_that_it_is_not_told(
    released: pcor.Release,
) -> None:
    said = "Nor is it told whether this salary is high or low there."
    assert said in visible(released.to_letter())
    schema, sided = released.plan.schema, pcor.Grubbs(min_population=3, tail="upper")
    upper = replace(released, plan=pcor.plan(schema, 0.5, detector=sided), stored=None)
    assert said not in visible(upper.to_letter())
    cost = Fraction(1, 10)
    count, rank = Fact("count", 4, 1, 9, cost), Fact("rank", 1, 1, 5, cost)
    median = Fact("median", 300000, 290000, 310000, cost)
    for facts, told in (([count], False), ([count, rank], True), ([median], True)):
        assert (said in replace(released, facts=facts, stored=None).to_html()) != told
    hidden = replace(released, facts=[median], stored=None, metric_value=None)
    assert said in hidden.to_html()


def test_a_letter_tells_the_facts_that_were_paid_for_and_draws_the_quantiles(
    told: pcor.Release,
) -> None:
    letter = told.to_letter()
    said = visible(letter)
    for words in (
        "number of rows 1,240 1,210 and 1,270",
        "of them at least as high, this one included 3 1 and 33",
        "half are below 800.5 750 and 900",
        "95 % are below 2,150 1,900 and 2,500",
        "in at least 95 of 100 cases",
        "this record: 390,000",
    ):
        assert words in said, words
    hidden = replace(told, metric_value=None).to_letter()
    assert "this record:" not in hidden
    assert "<svg" in hidden
    numbers = {"count": 1240, "rank": 3, "median": 800.5, "quantile:0.95": 2150}
    assert {fact["name"]: fact["value"] for fact in FACTS} == numbers  # nothing else is drawn
    assert set(re.findall(r"about ([\d,.]+\d)", letter.split("<svg")[1].split("</svg>")[0])) == {
        "800.5",
        "2,150",
    }


def test_a_letter_under_dp_begins_with_the_numbers_if_one_of_them_is_a_rank() -> None:
    table = pcor.Table(pcor.demo.ten_people(), pcor.demo.ten_people_schema())
    options: dict[str, Any] = {"detector": pcor.Tail(0.4, min_population=3), "guarantee": "dp"}
    for facts, begins in (("count,rank", True), ("count", False)):
        release = pcor.release(table, 8, 9, **options, facts=facts, chooser=seeded(1))
        said = visible(release.to_letter())
        found = said.split("What was found ")[1]
        assert bool(release.comparison) == begins
        if begins:
            count, rank = release.facts
            assert found.startswith("Record 8 (390,000) was compared with ")
            assert f"about {count.value} rows ({count.low} to {count.high})" in release.comparison
            assert f"about {rank.value} ({rank.low} to {rank.high})" in release.comparison
            assert f"In full: {release}" in said
        else:
            assert found.startswith("If record 8 (390,000) ")


def test_only_under_dp_numbers_come_before_the_sentence(told: pcor.Release) -> None:
    assert told.comparison == ""


def test_a_letter_says_how_it_can_be_checked(released: pcor.Release, key: pcor.SigningKey) -> None:
    paid = replace(released, receipt=Receipt("ab" * 32, "2024-03-01"))
    said = visible(paid.to_letter(key=key))
    assert f"with the Ed25519 key {key.public} ." in said
    assert f"paid for by entry {'ab' * 32} of the sender" in said
    assert "2024-03-01" in said
    assert "This letter is not signed" in visible(released.to_letter())


def test_a_signed_letter_is_verified_and_no_byte_of_it_can_be_changed(
    told: pcor.Release, key: pcor.SigningKey, tmp_path: Path
) -> None:
    told.save(tmp_path / "letter.html", letter=True, key=key)
    assert pcor.verify(tmp_path / "letter.html", key.public) == told.to_dict(key=key)
    whole = (tmp_path / "letter.html").read_bytes()
    numbers = random.SystemRandom()
    for _ in range(300):
        place = numbers.randrange(len(whole))
        other = (whole[place] + numbers.randrange(1, 256)) % 256
        with pytest.raises(SignatureError):
            verify_content(whole[:place] + bytes([other]) + whole[place + 1 :], key.public, "it")


def test_whatever_looks_like_html_is_shown_as_it_is_written(released: pcor.Release) -> None:
    evil = "<script>alert(1)</script>{{ record }}"
    letter = replace(released, record=evil, stored=None).to_letter()
    assert "<script>alert" not in letter
    assert "&lt;script&gt;alert(1)&lt;/script&gt;{{ record }}" in letter


@pytest.mark.parametrize(
    "text",
    [
        '{% extends "letter.html" %}{% block sender %}<p>Example Insurance</p>{% endblock %}',
        "<!doctype html>\n<title>Example Insurance</title>\n<p>{{ headline }}",
        "<!doctype html>\n{% block mine %}Example Insurance{% endblock %}<p>{{ headline }}",
        '{% extends "letter.html" %}{% block sender %}{% block mine %}Example Insurance'
        "{% endblock %}{% endblock %}",
    ],
)
def test_an_owner_may_extend_our_template_or_write_another(
    released: pcor.Release, key: pcor.SigningKey, tmp_path: Path, text: str
) -> None:
    letter = released.to_letter(own(tmp_path, text), key=key)
    assert "Example Insurance" in letter
    assert released.headline in letter
    assert verify_content(letter.encode(), key.public, "it") == released.to_dict(key=key)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{% if %}", "line 1"),
        ("\n{{ record", "line 2"),
        ("{{ population }}", "'population' is undefined"),
        ("{{ record.__class__.__mro__ }}", "access to attribute '__class__' of 'str' object is un"),
        ("{% include '/etc/passwd' %}", "/etc/passwd"),
        ("{% extends '../x' %}", "../x"),
        ("{% if not facts %}{{ misspelt }}{% endif %}", "'misspelt' is undefined"),
        ("{{ record / 2 }}", "fails with a TypeError"),
        ("{{ not_protected.append(1) }}", "has no attribute 'append'"),
        (
            '{% extends "letter.html" %}\n{% block sendr %}x{% endblock %}',
            "line 2: unknown block 'sendr'; did you mean 'sender'?",
        ),
        ('{% extends "letter.html" %}{% block zzzz %}x{% endblock %}', "the blocks are: title, st"),
        ("{% for x in range(999999999) %}{% endfor %}", "fails with a OverflowError"),
    ],
)
def test_a_template_that_cannot_be_one_is_refused_before_it_is_used(
    tmp_path: Path, text: str, why: str
) -> None:
    with pytest.raises(ParameterError, match="the template") as refused:
        LetterTemplate(own(tmp_path, text))
    assert why in str(refused.value)


def test_a_template_that_is_missing_or_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(ParameterError, match="cannot be read: no such file"):
        LetterTemplate(tmp_path / "none")
    for path in (tmp_path / "binary", tmp_path):
        with pytest.raises(ParameterError, match="cannot be read: it must be a text"):
            LetterTemplate(path)


def test_a_letter_is_a_page(released: pcor.Release, tmp_path: Path) -> None:
    with pytest.raises(WriteError, match=r"the letter .* must end in \.html or \.htm"):
        released.save(tmp_path / "letter.json", letter=True)
    released.save(tmp_path / "letter.html", letter=own(tmp_path, "{{ record }}"))
    assert (tmp_path / "letter.html").read_text().startswith("8")


def test_without_jinja_a_sentence_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ParameterError, match=r"needs jinja2.*pip install 'pcor\[letter\]'"):
        LetterTemplate(own(tmp_path, "{{ record }}"))


def test_the_page_for_owners_names_all_that_a_template_may_speak_of() -> None:
    page = Path(__file__).parents[2] / "docs" / "how-to" / "letter.md"
    table = re.findall(r"^\| (`.+?`) \|", page.read_text(encoding="utf-8"), re.MULTILINE)
    named = {name.strip("` ") for row in table for name in row.split(",")}
    assert named == {field.name for field in fields(LetterWords)}


def test_a_letter_fits_a_narrow_screen_and_one_sheet_of_paper(
    told: pcor.Release, key: pcor.SigningKey
) -> None:
    paid = replace(told, receipt=Receipt("ab" * 32, "2024-03-01"))
    with browser() as started:
        page = started.new_page(viewport=NARROW)
        page.set_content(paid.to_letter(key=key))
        assert page.evaluate("document.documentElement.scrollWidth") <= NARROW["width"]
        assert page.locator("svg.bar").is_visible()
        assert page.evaluate(BROKEN_WORDS) == []
        printed = page.pdf(prefer_css_page_size=True)
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) == 1
    sheet = re.search(rb"/MediaBox\s*\[0 0 ([\d.]+) ([\d.]+)\]", printed)
    assert sheet is not None
    assert [round(float(side)) for side in sheet.groups()] == [595, 842]  # A4 in points
