"""Who is protected: what a schema may declare of people, and what is said of it."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import jsonschema
import pytest

import pcor
from pcor.errors import SchemaError
from pcor.public.guarantee import GUARANTEES, Promise
from pcor.public.unit import ROW, PrivacyUnit
from pcor.releasing.certificate import JSON_SCHEMA
from pcor.service.page.words import protects
from tests.helpers.people import ATTRIBUTES, BULK, declared, encoded

PLAIN = pcor.Schema(metric="pay", attributes=ATTRIBUTES, id="id")


def test_a_schema_without_a_person_is_as_it_was() -> None:
    assert PLAIN.unit == ROW
    assert PLAIN.columns == ("pay", "job", "city", "id")
    assert set(PLAIN.to_dict()["dataset"]) == {"name", "id"}
    assert "unit" not in pcor.plan(PLAIN, 1).to_dict()
    explicit = pcor.Schema(metric="pay", attributes=ATTRIBUTES, id="id", over="error")
    assert explicit.sha256 == PLAIN.sha256


@pytest.mark.parametrize("over", ["error", "keep"])
def test_what_is_declared_of_people_outlives_a_file(over: str, tmp_path: Any) -> None:
    schema = declared(over, 8)
    (tmp_path / "s.toml").write_text(schema.to_toml())
    again = pcor.Schema.from_file(tmp_path / "s.toml")
    assert again == schema
    assert again.unit == PrivacyUnit("who", 8, over)
    assert again.columns[-1] == "who"
    assert repr(again).endswith("can contain a record; up to 8 rows of a person, by who>")
    assert len({PLAIN.sha256, declared("error", 8).sha256, declared("keep", 8).sha256}) == 3


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"person": "who"}, "go together"),
        ({"rows_per_person": 3}, "go together"),
        ({"over": "keep"}, "go together"),
        ({"person": "who", "rows_per_person": 0}, "whole number from 1 to 1,000,000, not 0"),
        ({"person": "who", "rows_per_person": True}, "whole number from 1"),
        ({"person": "who", "rows_per_person": 2.5}, "whole number from 1"),
        ({"person": "who", "rows_per_person": 3, "over": "drop"}, "over must be"),
        ({"person": "", "rows_per_person": 3}, "the person column must be named"),
        ({"person": "id", "rows_per_person": 3}, "'id' is declared twice"),
        ({"person": "job", "rows_per_person": 3}, "'job' is declared twice"),
    ],
)
def test_half_a_declaration_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        pcor.Schema(metric="pay", attributes=ATTRIBUTES, id="id", **given)


@pytest.mark.parametrize("guarantee", GUARANTEES.values(), ids=str)
@pytest.mark.parametrize("over", ["error", "keep"])
@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1, 1000)])
def test_a_promise_speaks_of_a_person(guarantee: Any, over: str, delta: Fraction) -> None:
    said = Promise(Fraction(1), delta, guarantee, unit=PrivacyUnit("who", 8, over))
    assert "differ by all rows of one person, at most 8" in said.claim
    assert ("of which are counted" in said.claim) == (over == "keep")
    assert "for the record's own person: all of their other rows" in said.neighbours
    whole = str(said)
    assert "other rows of its person are protected like another person's" in whole
    assert "somebody who is several people by the column 'who'" in whole
    assert "a person with several rows" not in whole
    assert "one added or removed row" not in whole
    assert ("grows faster than their number" in whole) == (delta > 0)


@pytest.mark.parametrize("over", ["error", "keep"])
def test_plan_certificate_and_page_name_the_unit(over: str) -> None:
    table = encoded(BULK, declared(over))
    released = pcor.release(table, 0, 1, "grubbs:min_population=4")
    certificate = json.loads(released.to_json())
    jsonschema.validate(certificate, json.loads(JSON_SCHEMA.read_text()))
    assert certificate["unit"] == {
        "protects": "person",
        "person": "who",
        "rows_per_person": 3,
        "over": over,
    }
    assert "Protected: a person by 'who', with up to 3 rows together" in str(released.plan)
    page = released.to_html()
    assert "a person by &#x27;who&#x27;, with up to 3 rows together" in page
    assert "With or without the rows of somebody" in page
    assert "With or without the rows of any one of them" in released.to_letter()
    assert "any one person changes" in protects(released.plan, 0)
    assert "(up to 3)" in protects(released.plan, 0)
