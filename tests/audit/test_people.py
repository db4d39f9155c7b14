"""Audits by person: equal to tables rebuilt without all rows of somebody, or with a newcomer's."""

from __future__ import annotations

from collections import Counter

from tests.helpers.people_tables import RULES, check_people, random_people


def test_audits_by_person_are_those_of_rebuilt_tables() -> None:
    """A cheap sample, every rule: 300 tables were compared once, with the same function."""
    exposed: Counter[str] = Counter()
    for seed, (name, rule) in enumerate(RULES.items()):
        exposed += check_people(random_people(seed, people=5), rule, [40.0])
        exposed[name] += 1
    assert min(exposed[kind] for kind in ("removed", "added", "several rows", "own")) > 0
