"""What a plan says of its detector before anybody is asked about."""

from __future__ import annotations

import html
import re

import pytest

import pcor
from pcor.detectors.lof import LOW_BAR

PLAIN = pcor.Schema(metric="pay", attributes={"job": ["cook", "clerk"]}, id="who")
CHOSEN = pcor.Schema(
    metric="pay",
    attributes={"job": ["cook", "clerk"]},
    id="who",
    release={"detector": "grubbs"},
)


@pytest.mark.parametrize("detector", [None, "lof", "lof:k=5", "lof:threshold=1.2", "lof:ties=all"])
def test_a_plan_says_how_low_the_bar_of_lof_is(detector: str | None) -> None:
    plan = pcor.plan(PLAIN, 1, detector=detector)
    assert str(plan).endswith(f"\nNote: {LOW_BAR}.")
    assert plan.to_dict()["note"] == plan.note == LOW_BAR
    seen = html.unescape(re.sub("<[^>]+>", "", plan._repr_html_()))
    assert f"Note: {LOW_BAR}." in seen


@pytest.mark.parametrize(
    ("schema", "detector"),
    [(CHOSEN, None), (PLAIN, "grubbs"), (PLAIN, "lof:threshold=2"), (PLAIN, "tail")],
)
def test_of_another_rule_or_a_higher_bar_nothing_is_said(
    schema: pcor.Schema, detector: str | None
) -> None:
    plan = pcor.plan(schema, 1, detector=detector)
    assert plan.note == ""
    assert "note" not in plan.to_dict()
    for text in (str(plan), plan._repr_html_()):
        assert "Note" not in text


def test_the_note_is_for_whoever_plans_and_in_no_certificate() -> None:
    plan = pcor.plan(PLAIN, 1)
    released = pcor.Release(1, pcor.Context.full(PLAIN), plan, private=True)
    for text in (str(released), released.to_json(), released.to_html(), released.explain()):
        assert "low bar" not in text
