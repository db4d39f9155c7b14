"""What is drawn, charged and written down stays what it was, however code is arranged.

The file was written once, before contexts were put into the words of the schema, and is never
written again. Sentences and SQL conditions have changed since, by intention, so their texts and the
pages that show them are not compared. All else is: what is drawn, every error, every certificate
and the head of the ledger, once their words are put back as they were (``old_words``). A head is a
hash over all entries, so requests are known by the same fingerprints as before.
"""

from __future__ import annotations

import json

from tests.helpers.same_releases import COUNT, FILE, answers, requests


def test_two_hundred_seeded_requests_are_answered_as_they_were() -> None:
    before, now = json.loads(FILE.read_text()), answers()
    changed = {
        request["seed"]: (request, was, said)
        for request, was, said in zip(requests(), before["answers"], now["answers"], strict=True)
        if {key: was[key] for key in was if key not in ("html", "text")} != said
    }
    assert not changed
    assert now["head"] == before["head"]


def test_the_two_hundred_are_of_every_kind() -> None:
    """Or they would say little."""
    before = json.loads(FILE.read_text())["answers"]
    assert len(before) == COUNT
    assert sum("bits" in said for said in before) > COUNT / 2
    seen: dict[str, set[object]] = {}
    for request in requests():
        for name, value in (request | request["options"]).items():
            seen.setdefault(name, set()).add(str(value))
    assert {len(seen[name]) for name in ("search", "payer", "engine")} == {7, 5, 6}
    assert {"guarantee", "delta", "accounting", "selection", "steepness"} <= set(seen)
