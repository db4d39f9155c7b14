"""Of a release with facts nothing leaves but the noisy numbers.

The noise is replaced by a number so large that no sum of it with a true number can be taken for
something private; then whatever is found beside it is a leak. Without noise the same eyes find it.
"""

from __future__ import annotations

import dataclasses
from functools import cache
from pathlib import Path

import pytest

import pcor
from pcor.releasing import fact_draws
from pcor.releasing.fact_draws import FactRows
from tests.helpers.canary import EPSILON, SCHEMA, V, leaks, pickled, private_things, world

FAR = 10**12
GRID = {"low": 6_000_000, "high": 10_000_000, "step": 40_000}
FACTS = ["count", "rank", "median", "quantile:0.9"]


@cache
def table() -> pcor.Table:
    declared = SCHEMA.to_dict()
    schema = pcor.Schema.from_dict(declared | {"metric": declared["metric"] | GRID})
    grid = schema.metric.grid
    assert grid is not None
    # What is looked for must not be public by chance.
    assert not world().forbidden & {int(grid.point(place)) for place in range(grid.size)}
    return pcor.Table(world().source, schema)


def released(monkeypatch: pytest.MonkeyPatch, noise: int) -> pcor.Release:
    monkeypatch.setattr(fact_draws, "draw_discrete_laplace", lambda *_: noise)
    return pcor.release(table(), V, EPSILON, "grubbs:tail=upper", facts=FACTS)


def views(shown: pcor.Release, folder: Path) -> dict[str, str]:
    """Return every way in which a release with facts can be looked at."""
    shown.save(folder / "certificate.html")
    return {
        "str": str(shown),
        "repr": repr(shown),
        "json": shown.to_json(),
        "html": (folder / "certificate.html").read_text(encoding="utf-8"),
        "plan": f"{shown.plan} {shown.plan!r} {shown.plan.to_dict()} {shown.plan._repr_html_()}",
        "fields": str([getattr(shown, field.name) for field in dataclasses.fields(shown)]),
        "notebook": shown._repr_html_(),
        "pickle": pickled(shown),
    }


def test_nothing_but_the_noisy_numbers_leaves(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    shown = released(monkeypatch, FAR)
    assert shown.facts[0].value > FAR
    found = {view: leaks(text) for view, text in views(shown, tmp_path).items()}
    assert {view: what for view, what in found.items() if what} == {}
    assert leaks(caplog.text) == set()
    assert private_things(shown) == []


def test_a_number_without_noise_would_be_seen(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    shown = released(monkeypatch, 0)
    found = {view for view, text in views(shown, tmp_path).items() if leaks(text)}
    assert {"str", "json", "html", "fields", "notebook", "pickle"} <= found


def test_what_facts_are_read_into_shows_nothing() -> None:
    plan = pcor.plan(table().schema, EPSILON, facts=FACTS)
    rows = FactRows.read(plan.facts, table(), table().record(V))
    assert leaks(f"{rows} {rows!r} {table().schema.metric.grid!r}") == set()


def test_a_grid_that_is_missing_is_refused_without_a_look_at_the_rows() -> None:
    with pytest.raises(pcor.PcorError) as caught:
        pcor.release(world().table, V, EPSILON, facts="median")
    assert leaks(str(caught.value)) == set()
