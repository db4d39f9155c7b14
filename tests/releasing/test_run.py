"""A release: order of checks and charges, what comes out, and the certificate in all its forms."""

from __future__ import annotations

import html
import json
import re
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from unittest.mock import patch

import jsonschema
import pyarrow as pa
import pytest

import pcor
from pcor.errors import (
    BudgetExceeded,
    NoValidContext,
    ParameterError,
    RecordError,
    SourceError,
    StartError,
)
from pcor.mechanism.selection import SystemRandomSource
from pcor.releasing.certificate import JSON_SCHEMA
from tests.helpers.neighbours import DETECTORS, SCHEMA, small
from tests.helpers.small_tables import LARGE, NEARLY_EQUAL

GRUBBS = pcor.Grubbs(min_population=3)
VALIDATOR = jsonschema.Draft202012Validator(json.loads(JSON_SCHEMA.read_text(encoding="utf-8")))


@pytest.fixture(scope="module")
def ten() -> pcor.Table:
    return pcor.Table(pcor.demo.ten_people(), pcor.demo.ten_people_schema())


@pytest.fixture(scope="module")
def released(ten: pcor.Table) -> pcor.Release:
    return pcor.release(ten, record=8, epsilon=0.2, detector=GRUBBS)


# -- what comes out --------------------------------------------------------------------------------


def test_a_release_reads_as_a_sentence(released: pcor.Release) -> None:
    assert re.fullmatch(
        r"Record 8 \(390,000\) is an outlier by salary \(grubbs\) among rows where .+\.",
        str(released),
    )


def test_what_you_type_is_what_is_spent(released: pcor.Release) -> None:
    assert released.epsilon == 0.2
    assert released.to_dict()["epsilon"] == 0.2
    assert released.promise.to_dict()["epsilon"] == "0.2"


def test_the_guarantee_is_named_in_full_and_never_as_plain_differential_privacy(
    released: pcor.Release,
) -> None:
    for text in (str(released.promise), released.to_json(), released.to_html()):
        assert "OCDP" in text
        # "differential privacy" only ever stands behind the words that relax it.
        for found in re.finditer("differential(ly)? priva", text):
            assert text[: found.start()].endswith("output constrained ")


def test_explain_numbers_the_steps_and_their_costs(ten: pcor.Table) -> None:
    release = pcor.release(ten, 8, 0.2, GRUBBS, "breadth_first", samples=3)
    assert release.explain().splitlines() == [
        "1. the start context, found by validity alone: 0 (free)",
        "2. choices of the next context, by utility, at most: 2 x 0.08 = 0.16",
        "3. the final draw among the candidates, by utility: 1 x 0.04 = 0.04",
        "total epsilon 0.2 (tight accounting)",
    ]


class Watched(SystemRandomSource):
    """Keeps by which mechanism every paid draw is made."""

    def __init__(self) -> None:
        self.mechanisms: list[str] = []

    def select(self, scores: Sequence[int], *, eta: Fraction, mechanism: str) -> int:
        self.mechanisms.append(mechanism)
        return super().select(scores, eta=eta, mechanism=mechanism)


@pytest.mark.parametrize("search", ["depth_first", "breadth_first"])
@pytest.mark.parametrize(
    ("options", "mechanism"),
    [
        ({}, "permute_and_flip"),
        ({"selection": "exponential"}, "exponential"),
        ({"delta": 1e-6}, "exponential"),  # composed by its bounded range
        ({"accounting": "paper"}, "exponential"),
        ({"accounting": "paper", "selection": "permute_and_flip"}, "permute_and_flip"),
    ],
)
def test_every_paid_draw_of_a_steered_search_is_by_the_mechanism_of_its_certificate(
    ten: pcor.Table, search: str, options: dict[str, Any], mechanism: str
) -> None:
    watched = Watched()
    release = pcor.release(ten, 8, 0.5, GRUBBS, search, samples=3, chooser=watched, **options)
    assert watched.mechanisms == [mechanism] * 3  # two steps and the final draw
    assert release.to_dict()["selection"] == mechanism


REQUESTS: list[dict[str, Any]] = [
    {},
    {"search": "uniform", "samples": 3},
    {"search": "random_walk", "samples": 3, "selection": "permute_and_flip"},
    {"search": "depth_first", "samples": 2, "accounting": "paper"},
    {"search": "breadth_first", "samples": 2, "utility": "overlap"},
    {"utility": pcor.Overlap(pcor.Context.full(pcor.demo.ten_people_schema()))},
    {"epsilon": "1/3"},
    {"detector": pcor.LOF(k=2, threshold=1.1, min_population=3)},
    {"detector": pcor.Estimator(lambda values: values > 300_000, min_population=1)},
    {"chooser": pcor.testing.seeded(1)},
]


@pytest.mark.parametrize("request_", REQUESTS)
def test_every_certificate_fits_its_json_schema_in_json_and_in_html(
    ten: pcor.Table, request_: dict[str, Any]
) -> None:
    defaults: dict[str, Any] = {"epsilon": 0.5, "detector": GRUBBS}
    release = pcor.release(ten, 8, **(defaults | request_))
    VALIDATOR.validate(json.loads(release.to_json()))
    VALIDATOR.validate(embedded(release.to_html()))
    assert embedded(release.to_html()) == release.to_dict() == json.loads(release.to_json())


@pytest.mark.parametrize("leak", ["population", "utility_value", "seconds", "valid_contexts"])
def test_the_json_schema_refuses_anything_that_must_not_come_out(
    released: pcor.Release, leak: str
) -> None:
    with pytest.raises(jsonschema.ValidationError):
        VALIDATOR.validate(released.to_dict() | {leak: 17})


def test_a_seeded_release_repeats_itself_and_says_not_private(ten: pcor.Table) -> None:
    one, two = (pcor.release(ten, 8, 0.1, GRUBBS, chooser=pcor.testing.seeded(3)) for _ in range(2))
    assert one.context == two.context
    assert one.to_dict()["private"] is False
    for text in (str(one), repr(one), one.to_html(), one.to_json()):
        assert "NOT PRIVATE" in text


def test_a_real_release_is_private_and_draws_anew(ten: pcor.Table, released: pcor.Release) -> None:
    assert released.private
    assert "NOT PRIVATE" not in released.to_html()
    # At a tiny epsilon 26 contexts are nearly equally likely: 40 equal draws have chance 1e-55.
    drawn = {pcor.release(ten, 8, 0.001, GRUBBS).context for _ in range(40)}
    assert len(drawn) > 1


def test_certificates_are_written_whole(released: pcor.Release, tmp_path: Path) -> None:
    released.save(tmp_path / "c.json")
    released.save(str(tmp_path / "c.html"))
    assert json.loads((tmp_path / "c.json").read_text(encoding="utf-8")) == released.to_dict()
    assert embedded((tmp_path / "c.html").read_text(encoding="utf-8")) == released.to_dict()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c.html", "c.json"]


def test_a_certificate_is_read_again_with_its_plan(released: pcor.Release) -> None:
    again = pcor.Release.from_dict(released.to_dict(), released.plan)
    assert again == released
    with pytest.raises(ParameterError, match="also give the plan of the release"):
        pcor.Release.from_dict(released.to_dict())
    for other in ({}, {"format": "pcor-error/1"}, released.to_json()):
        with pytest.raises(ParameterError, match="no certificate of a release"):
            pcor.Release.from_dict(other, released.plan)  # type: ignore[arg-type]


def test_a_certificate_that_no_ledger_paid_for_has_the_date_of_its_page(
    released: pcor.Release,
) -> None:
    before = datetime.now(UTC).date()
    page = released.to_html()
    assert "ledger entry" not in page
    assert any(
        f"<td>{day.isoformat()} (when this page was written)</td>" in page
        for day in (before, datetime.now(UTC).date())
    )


def test_the_page_needs_nothing_from_elsewhere_and_no_value_can_break_out_of_it() -> None:
    nasty = "</script><script>alert('x')</script>"
    schema = pcor.Schema(metric='m"<&', attributes={nasty: [nasty, "b"]}, name=nasty)
    columns = {'m"<&': [1.0, 2.0, 1.0, 2.0, 1.0, 50.0], nasty: [nasty, "b"] * 3}
    page = pcor.release(pcor.Table(pa.table(columns), schema), 5, 1, GRUBBS).to_html()
    seen = _Page(page)
    assert seen.tags.count("script") == 1
    assert not {"link", "img", "iframe"} & set(seen.tags)
    assert "http" not in page.replace("application/json", "")
    assert embedded(page)["dataset"] == nasty


def seen_text(release: pcor.Release) -> str:
    return " ".join(re.sub("<[^>]+>", " ", html.unescape(release._repr_html_())).split())


def test_a_record_that_stands_out_everywhere_does_so_among_all_rows() -> None:
    table = pcor.Table(
        pa.table({"pay": [1.0, 2.0, 1.0, 2.0, 1.0, 50.0], "city": ["Oslo"] * 6}),
        pcor.Schema(metric="pay", attributes={"city": ["Oslo", "Rome"]}),
    )
    # Without Rome there are as many people, so either context may be drawn.
    said = {str(pcor.release(table, 5, 1, GRUBBS)) for _ in range(60)}
    assert said == {
        "Record 5 (50) is an outlier by pay (grubbs) among all rows.",
        "Record 5 (50) is an outlier by pay (grubbs) among rows where city is Oslo.",
    }


def test_a_certificate_says_in_plain_words_what_it_proves_and_what_not(ten: pcor.Table) -> None:
    said = seen_text(pcor.release(ten, 8, 1, GRUBBS))
    assert "In plain words: compared with the others in this group, the salary of this" in said
    assert "does not mean that anything is wrong with it" in said
    likely = seen_text(pcor.release(ten, 8, 1, pcor.Tail(0.4, min_population=3), guarantee="dp"))
    assert (
        "it likely is, compared with the others in this one; if not, this group says nothing"
        in likely
    )


def test_a_certificate_explains_its_bins_its_rule_and_its_epsilon() -> None:
    table = pcor.Table(
        pa.table({"pay": [1.0, 2.0, 1.0, 2.0, 1.0, 50.0], "age": [20, 21, 30, 40, 41, 42]}),
        pcor.Schema(metric="pay", attributes={"age": {"edges": [18, 30, 65]}}),
    )
    said = seen_text(pcor.release(table, 5, "0.5", pcor.Tail(0.3, min_population=3)))
    assert "age 18 to under 30 30 to 65" in said
    assert "tail is the rule that decides what is unusual: A value is an outlier if less " in said
    assert "than 0.3 of the population lies as far out." in said
    assert "at most exp(epsilon), here at most 1.65." in said


def test_a_rule_that_nobody_documented_is_not_explained(ten: pcor.Table) -> None:
    rule = pcor.Estimator(lambda values: values > 300_000, min_population=1)
    assert "is the rule that decides" not in seen_text(pcor.release(ten, 8, 1, rule))


# -- order of checks and charges -------------------------------------------------------------------


def test_a_release_is_charged_before_it_is_drawn(ten: pcor.Table) -> None:
    events: list[str] = []

    class Purse(pcor.Budget):
        def spend(self, epsilon: Fraction, delta: Fraction = Fraction(0)) -> None:
            assert delta == 0
            events.append(f"charge {epsilon}")

    class RandomSource(pcor.testing.SeededRandomSource):
        def uniform(self, count: int) -> int:
            events.append("draw")
            return super().uniform(count)

    pcor.release(ten, 8, 1, GRUBBS, budget=Purse(1), chooser=RandomSource(0))
    assert events[:2] == ["charge 1", "draw"]


def test_a_refused_release_spends_and_draws_nothing(ten: pcor.Table) -> None:
    budget = pcor.Budget(0.3)
    pcor.release(ten, 8, 0.2, GRUBBS, budget=budget)
    with pytest.raises(BudgetExceeded, match=r"short by 0\.1;"):
        pcor.release(ten, 8, 0.2, GRUBBS, budget=budget)
    assert budget.left == Fraction(1, 10)


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"epsilon": -1}, ParameterError),
        ({"record": 99}, RecordError),
        ({"detector": "lofty"}, ParameterError),
        ({"utility": object()}, ParameterError),
        ({"samples": 0, "search": "uniform"}, ParameterError),
        ({"selection": "best"}, ParameterError),
        ({"utility": "overlap"}, ParameterError),
        ({"utility": pcor.Overlap(pcor.Context.full(SCHEMA))}, ParameterError),
        ({"search": pcor.RandomWalk(start=pcor.Context.full(SCHEMA))}, ParameterError),
    ],
)
def test_bad_input_is_refused_before_anything_is_spent(
    ten: pcor.Table, wrong: dict[str, Any], error: type[Exception]
) -> None:
    budget = pcor.Budget(1)
    request: dict[str, Any] = {"record": 8, "epsilon": 0.2, "detector": GRUBBS}
    with pytest.raises(error):
        pcor.release(ten, budget=budget, **(request | wrong))
    assert budget.spent == 0


def test_what_is_no_table_and_no_budget_is_refused_in_our_words(ten: pcor.Table) -> None:
    for ask in (
        lambda it: pcor.release(it, 8, 0.2, GRUBBS),
        lambda it: pcor.release_many(it, [8], 0.2, detector=GRUBBS),
        lambda it: pcor.matching_contexts(it, 8, GRUBBS),
        lambda it: pcor.is_outlier(it, 8, "all rows", GRUBBS),
        lambda it: pcor.outliers(it, detector=GRUBBS),
        lambda it: pcor.audit.exposure(it, 8, 0.2, detector=GRUBBS),
    ):
        with pytest.raises(ParameterError, match=r"table must be a pcor\.Table; a file"):
            ask("claims.csv")
    with pytest.raises(ParameterError, match=r"budget must be a pcor\.Budget"):
        pcor.release(ten, 8, 0.2, GRUBBS, budget=1)  # type: ignore[arg-type]


def test_a_budget_stays_charged_when_the_source_fails_and_says_so(ten: pcor.Table) -> None:
    budget = pcor.Budget(1)
    lost = SourceError("the line dropped")
    with (
        patch.object(sys.modules["pcor.releasing.run"], "draw", side_effect=lost),
        pytest.raises(SourceError, match="There is no answer, but the charge stays"),
    ):
        pcor.release(ten, 8, 0.2, GRUBBS, budget=budget)
    assert budget.left == Fraction(4, 5)


def test_none_is_an_answer_and_stays_charged(ten: pcor.Table) -> None:
    budget = pcor.Budget(1)
    with pytest.raises(NoValidContext, match="paid for like any other"):
        pcor.release(ten, 2, 0.2, GRUBBS, budget=budget)
    assert budget.left == Fraction(4, 5)


def test_a_detector_that_fails_after_the_charge_says_that_it_is_paid_for(ten: pcor.Table) -> None:
    failing = pcor.Estimator(lambda numbers: 1 / 0 * numbers, min_population=2)
    with pytest.raises(ParameterError, match=r"ZeroDivisionError.*\. This answer is paid for like"):
        pcor.release(ten, 8, 0.2, failing, budget=pcor.Budget(1))


def test_an_answer_that_nobody_pays_for_does_not_say_that_it_is_charged(ten: pcor.Table) -> None:
    with pytest.raises(NoValidContext) as none:
        pcor.release(ten, 2, 0.2, GRUBBS)
    assert "charged" not in str(none.value)


def test_whether_a_start_is_valid_is_looked_up_after_the_charge() -> None:
    detector = DETECTORS["lof"]
    here = small(LARGE, detector)
    everything = (pcor.Context.from_mask(SCHEMA, m) for m in here.table.record(0).space.masks())
    invalid = next(context for context in everything if context not in here.coe)
    budget = pcor.Budget(1)
    with pytest.raises(StartError, match="not an outlier"):
        pcor.release(here.table, 0, 1, detector, "random_walk", start=invalid, budget=budget)
    assert budget.left == 0


# -- utilities in a release ------------------------------------------------------------------------


def test_overlap_with_a_chosen_context_prefers_contexts_that_share_its_people() -> None:
    detector = DETECTORS["lof"]
    here = small(NEARLY_EQUAL, detector)
    chosen = min(here.coe, key=lambda c: c.mask)
    chances = pcor.audit.exact_distribution(
        here.table, 0, 50, detector=detector, search="direct", utility=pcor.Overlap(chosen)
    )
    shared = {
        c: int(here.table.populations([c.mask & chosen.mask])[0]) for c in sorted(here.coe, key=str)
    }
    best = max(shared.values())
    assert sum(p for c, p in chances.items() if shared[c] == best) > 0.99


def test_overlap_with_the_start_uses_the_start_that_was_given() -> None:
    detector = DETECTORS["lof"]
    here = small(LARGE, detector)
    begin = min(here.coe, key=lambda c: c.mask)
    by_name, by_hand = (
        pcor.audit.exact_distribution(
            here.table,
            0,
            1,
            detector=detector,
            search=pcor.BreadthFirst(samples=2, start=begin),
            utility=utility,
        )
        for utility in ("overlap", pcor.Overlap(begin))
    )
    assert by_name == by_hand


def test_a_plan_is_the_same_for_tables_of_very_different_sizes(ten: pcor.Table) -> None:
    one_row = pcor.Table(pcor.demo.ten_people().slice(7, 1), pcor.demo.ten_people_schema())
    assert pcor.plan(ten.schema, 0.2).to_dict() == pcor.plan(one_row.schema, 0.2).to_dict()


class _Page(HTMLParser):
    """Collects the tags of a page and the text of its script."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.script = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: Any) -> None:  # noqa: ARG002 (the base's name)
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        if self.tags[-1:] == ["script"]:
            self.script += data


def embedded(page: str) -> Any:
    """Return the certificate that an HTML page carries."""
    return json.loads(_Page(page).script)
