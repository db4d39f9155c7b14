"""Facts at the service: registered by the owner, planned, paid, shown on the page, over HTTP."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

import pcor
from pcor.client import Client
from pcor.service.core import owner as owning
from pcor.service.core.keys import find_key
from tests.helpers.page_world import NARROW, Site, browser, site, visit
from tests.helpers.service_world import ANALYST, DEFAULTS, OTHER, OUTLIER, SCHEMA, registration

PAID = "people with numbers"
FACTS = "count,rank,median"
GRID = {"low": 0, "high": 500, "step": 10}


def declared() -> dict[str, Any]:
    schema = SCHEMA.to_dict()
    return schema | {"metric": schema["metric"] | GRID}


@pytest.fixture(scope="module")
def where(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with site(tmp_path_factory.mktemp("facts")) as made:
        with made.service.ledger.database.reading() as connection:
            owner = find_key(connection, made.keys["owner"], made.service.now())
        assert owner is not None
        presets = {"small": "1", "medium": "3", "large": "6"}
        given = {
            "schema": declared(),
            "facts": FACTS,
            "presets": presets,
            "budget": {"epsilon": 99},
        }
        owning.register(made.service, owner, PAID, DEFAULTS | registration(**given))
        for name in (ANALYST, OTHER):
            owning.allot(made.service, owner, PAID, name, {"epsilon": "40"})
        yield made


@pytest.fixture(scope="module")
def chrome() -> Iterator[Browser]:
    with browser() as started:
        yield started


def test_a_client_plans_and_gets_the_facts(where: Site) -> None:
    client = Client(where.url, where.keys[ANALYST])
    planned = client.plan(PAID, OUTLIER, preset="medium")
    assert [fact.name for fact in planned.facts] == FACTS.split(",")
    first = client.release(PAID, OUTLIER, preset="medium")
    assert [fact.name for fact in first.facts] == FACTS.split(",")
    assert sum(fact.epsilon for fact in first.facts) == 1
    left = client.left(PAID)
    assert client.release(PAID, OUTLIER, preset="medium").facts == first.facts
    assert client.left(PAID) == left


def test_a_registration_with_facts_that_cannot_be_had_is_refused(where: Site) -> None:
    with where.service.ledger.database.reading() as connection:
        owner = find_key(connection, where.keys["owner"], where.service.now())
    assert owner is not None
    given = DEFAULTS | registration(facts="median")
    with pytest.raises(pcor.PcorError, match="low, high and step"):
        owning.register(where.service, owner, "no grid", given)


def test_the_answer_with_facts_on_the_page(chrome: Browser, where: Site) -> None:
    with visit(chrome, where) as one:
        one.sign_in(OTHER)
        one.go(f"/ask?dataset={PAID}&record={OUTLIER}&preset=large")
        plan = one.page.locator("#plan")
        expect(plan).to_contain_text("With it come numbers about the group: the count within")
        one.picture("30-plan-with-facts")
        one.page.get_by_role("button", name="Confirm and spend epsilon 6").click()
        sentence = one.page.locator("h1.sentence")
        expect(sentence).to_contain_text(
            re.compile("half are below about|median could not be told")
        )
        expect(one.page.get_by_role("heading", name="Numbers about the group")).to_be_visible()
        with one.page.expect_download() as downloading:
            one.page.get_by_role("link", name="Download as JSON").click()
        certificate = json.loads(Path(downloading.value.path()).read_text())
        for fact in certificate["facts"]:
            expect(one.page.locator("article")).to_contain_text(f"{fact['value']:,}")
        expect(one.page.locator("article")).to_contain_text("is first rounded to steps of")
        one.picture("31-answer-with-facts")
        one.page.set_viewport_size(NARROW)
        wide = "document.documentElement.scrollWidth <= window.innerWidth"
        assert one.page.evaluate(wide)
        one.picture("32-answer-with-facts-narrow")
        assert one.said == []
