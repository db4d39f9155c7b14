"""What a release says of its record: its own value and side, and nothing that rows decide."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pyarrow as pa
import pytest

import pcor
from pcor.errors import ParameterError
from pcor.releasing.certificate import JSON_SCHEMA
from pcor.releasing.request import Request

GRUBBS = "grubbs:min_population=3"
VALIDATOR = jsonschema.Draft202012Validator(json.loads(JSON_SCHEMA.read_text(encoding="utf-8")))

WORDED = pcor.Schema(
    metric={"column": "hours", "label": "working time", "unit": "hours a week"},
    attributes={"job": ["cook", "clerk", "judge"]},
    rows="people",
)


def worded(hours: float, **options: Any) -> pcor.Release:
    """Release the one who works so many hours, among others who work about forty."""
    columns = {"hours": [38.0, 39.0, 40.0, 41.0, 42.0, 40.0, hours], "job": ["cook"] * 7}
    chosen: dict[str, Any] = {"detector": GRUBBS} | options
    return pcor.release(pcor.Table(pa.table(columns), WORDED), 6, 1, **chosen)


def seen_text(release: pcor.Release) -> str:
    """Return what a notebook shows of a release."""
    return " ".join(re.sub("<[^>]+>", " ", html.unescape(release._repr_html_())).split())


@pytest.mark.parametrize(
    ("hours", "detector", "said"),
    [
        (99.0, GRUBBS, "is an outlier by working time (grubbs)"),
        (1.5, GRUBBS, "is an outlier by working time (grubbs)"),
        (99.0, f"{GRUBBS},tail=upper", "is unusually high in working time (grubbs)"),
        (1.5, f"{GRUBBS},tail=lower", "is unusually low in working time (grubbs)"),
        (99.0, "tail:share=0.3,min_population=3", "is unusually high in working time (tail)"),
        (99.0, "lof:k=2,min_population=3", "is an outlier by working time (lof)"),
        (
            99.0,
            "neighbourhood:radius=3,share=0.3,min_population=3",
            "is an outlier by working time (neighbourhood)",
        ),
    ],
)
def test_the_sentence_tells_the_value_and_the_side_that_the_detector_looks_at(
    hours: float, detector: str, said: str
) -> None:
    released = worded(hours, detector=detector)
    value = f"{hours:g} hours a week"
    assert str(released).startswith(f"Record 6 ({value}) {said} among ")
    assert re.search(r" among (all people|people where .+)\.$", str(released))
    assert released.to_dict()["metric_value"] == hours
    VALIDATOR.validate(released.to_dict())


@pytest.mark.parametrize("detector", [GRUBBS, f"{GRUBBS},tail=upper", "lof:k=2,min_population=3"])
def test_no_row_is_needed_to_write_a_sentence(detector: str) -> None:
    """So it tells nothing but the record, its value, the context drawn and the settings."""
    released = worded(99.0, detector=detector)
    plan = pcor.plan(WORDED, 1, detector=detector)
    context = pcor.Context.from_bits(WORDED, released.to_dict()["bits"])
    alone = pcor.Release(6, context, plan, private=True, metric_value=99.0)
    assert (str(alone), alone.headline) == (str(released), released.headline)
    assert seen_text(replace(alone, engine=released.engine)) == seen_text(released)


def test_a_value_that_is_not_shown_is_nowhere() -> None:
    hidden = worded(9137.25, detector=f"{GRUBBS},tail=upper", show_metric=False)
    assert str(hidden).startswith("Record 6 is an outlier by working time (grubbs) among ")
    for text in (str(hidden), repr(hidden), hidden.to_json(), hidden.to_html(), seen_text(hidden)):
        assert not re.search("9,?137|unusually high", text)
    assert "metric_value" not in hidden.to_dict()
    assert hidden.metric_value is None


def test_whether_the_value_is_shown_is_no_part_of_the_question() -> None:
    shown, hidden = (pcor.plan(WORDED, 1, show_metric=show) for show in (True, False))
    one, other = (Request.of(plan, 6, dataset="d", analyst="a") for plan in (shown, hidden))
    assert one == other
    with pytest.raises(ParameterError, match="show_metric must be True or False"):
        pcor.plan(WORDED, 1, show_metric="yes")  # type: ignore[arg-type]


def test_a_repeated_answer_keeps_its_words() -> None:
    released = worded(99.0)
    stored = released.to_dict() | {"sentence": "What was said then."}
    again = pcor.Release.from_dict(stored, released.plan)
    assert (str(again), again.metric_value) == ("What was said then.", 99.0)
    assert again.headline == str(released)
    assert "<summary>The whole sentence</summary><p>What was said then.</p>" in again.to_html()


@pytest.mark.parametrize("first", [True, False], ids=["told first", "never told"])
def test_an_answer_from_a_ledger_tells_no_value_that_is_not_shown(
    first: bool, tmp_path: Path
) -> None:
    """Though it was stored with its value: what is asked is the same, and free."""
    columns = {"hours": [38.0, 39.0, 40.0, 41.0, 42.0, 40.0, 9137.25], "job": ["cook"] * 7}
    table = pcor.Table(pa.table(columns), WORDED)
    how: dict[str, Any] = {"dataset": "d", "detector": f"{GRUBBS},tail=upper"}
    books = pcor.Ledger(tmp_path / "books.db")
    books.set_budget("d", 3)
    drawn = books.release(table, 6, 1, **how, show_metric=first)
    assert ("9,137" in str(drawn)) is first
    again = books.release(table, 6, 1, **how, show_metric=False)
    listed = pcor.release_many(table, [6], 1, **how, show_metric=False, ledger=books)
    assert books.left("d") == 2
    assert again.context == drawn.context
    for hidden in (again, *listed.releases):
        for text in (
            *(str(hidden), repr(hidden), hidden.headline, hidden.to_json()),
            *(hidden.to_html(), seen_text(hidden), json.dumps(listed.to_dict())),
        ):
            assert "6 is an outlier by working time" in text
            assert not re.search("9,?137|unusually high|metric_value", text)


def test_a_page_folds_a_long_list_and_keeps_all_of_it() -> None:
    schema = pcor.Schema("pay", {"x": [f"v{number:02}" for number in range(40)]})
    context = pcor.Context(schema, {"x": [f"v{number:02}" for number in range(0, 40, 2)]})
    long = pcor.Release(1, context, pcor.plan(schema, 1), private=True)
    assert long.headline.endswith("v12 or v14 ... and 12 more.")
    assert str(long).endswith("v36 or v38.")
    for page in (long.to_html(), long._repr_html_()):
        assert html.escape(long.headline) in page
        assert f"<details><summary>The whole sentence</summary><p>{long}</p></details>" in page
    short = pcor.Release(1, pcor.Context.full(schema), long.plan, private=True)
    assert "<details>" not in short.to_html()
