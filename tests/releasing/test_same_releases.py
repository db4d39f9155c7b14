"""What users see stays what it was, byte for byte but for versions, however code is arranged."""

from __future__ import annotations

import json

from tests.helpers.same_releases import COUNT, FILE, answers, requests


def test_two_hundred_seeded_requests_are_answered_as_they_were() -> None:
    before, now = json.loads(FILE.read_text()), answers()
    changed = {
        request["seed"]: (request, was, said)
        for request, was, said in zip(requests(), before["answers"], now["answers"], strict=True)
        if was != said
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
