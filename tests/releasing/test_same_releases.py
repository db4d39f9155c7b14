"""What is drawn, charged and written down stays what it was, however code is arranged.

The file was written once, before contexts were put into the words of the schema. Sentences and SQL
conditions have changed since, by intention, so they are compared once their words are put back as
they were (``old_words``). All else is compared as it is: what is drawn, every error, every
certificate and the head of the ledger. A head is a hash over all entries, so requests are known by
the same fingerprints as before.

Answers under ``guarantee="dp"`` were written anew when margin scores began to come from a heap of
boxes: candidates arrive in another order, so that the same random bits draw another of them. Their
chances did not change (``tests/search/test_margin.py``), nor did the rest of their certificates.
"""

from __future__ import annotations

import json

import pytest

from tests.helpers.same_releases import COUNT, FILE, answers, requests


@pytest.mark.parametrize("guarantee", ["ocdp", "dp"])
def test_two_hundred_seeded_requests_are_answered_as_they_were(guarantee: str) -> None:
    before, now = json.loads(FILE.read_text())[guarantee], answers(guarantee)
    asked = {str(request["seed"]): request for request in requests()}
    assert before["answers"].keys() == now["answers"].keys()
    changed = {
        seed: (asked[seed], was, now["answers"][seed])
        for seed, was in before["answers"].items()
        if was != now["answers"][seed]
    }
    assert not changed
    assert now["head"] == before["head"]


def test_the_two_hundred_are_of_every_kind() -> None:
    """Or they would say little."""
    files = json.loads(FILE.read_text())
    said = [answer for guarantee in files.values() for answer in guarantee["answers"].values()]
    assert len(said) == COUNT
    assert sum("bits" in answer for answer in said) > COUNT / 2
    seen: dict[str, set[object]] = {}
    for request in requests():
        for name, value in (request | request["options"]).items():
            seen.setdefault(name, set()).add(str(value))
    assert {len(seen[name]) for name in ("search", "payer", "engine")} == {7, 5, 6}
    assert {"guarantee", "delta", "accounting", "selection", "steepness"} <= set(seen)
