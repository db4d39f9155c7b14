"""The page's exposure report where people have several rows."""

from __future__ import annotations

from pcor.audit import exposure
from pcor.service.page.html import fragment
from tests.helpers.people_tables import EPSILON, RULES, people_table, random_people


def test_the_page_says_how_many_rows_go_with_somebody() -> None:
    table = people_table(random_people(0))
    found = exposure(table, 0, EPSILON, detector=RULES["lof"], insert=[])
    assert found.exposed
    shown = fragment("exposure_result.html", found=found, note="", most=25)
    assert '<th scope="col" class="right">Rows</th>' in shown
    assert shown.count("<tr><td") == len(found.exposed)
    assert "A person goes with all of their rows" in shown
