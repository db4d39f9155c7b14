"""`pcor plan` and `pcor release`: one certificate, and what it says."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

import pcor
from pcor.public.guarantee import get_guarantee
from tests.helpers.command_line import (
    GRUBBS,
    OUTLIER,
    SCHEMA,
    START,
    Files,
    assert_certificate,
    keys_of,
    pcor_,
    people,
)

# -- plan -----------------------------------------------------------------------------------------


def test_plan_touches_no_rows(files: Files) -> None:
    """The file holds no table at all, and the plan is the same."""
    honest = pcor_("plan", *files.request, "--json")
    files.table.write_bytes(b"\x00\xff garbage")
    garbage = pcor_("plan", *files.request, "--json")
    assert honest.code == garbage.code == 0
    assert honest.json == garbage.json
    assert honest.json["possible_contexts"] == 2**4
    assert honest.json["epsilon_exact"] == "0.5"
    assert pcor_("release", *files.request).code == 2


def test_plan_says_what_will_run_and_what_each_step_costs(files: Files) -> None:
    ran = pcor_("plan", *files.request, "--search", "breadth_first", "--samples", 5)
    assert ran.code == 0
    assert "no row was looked at" in ran.out
    assert "4 x 0.1 = 0.4" in ran.out
    assert "1 x 0.1 = 0.1" in ran.out
    assert "total epsilon 0.5 (tight accounting)" in ran.out


def test_a_condition_with_tabs_and_line_breaks_is_printed_in_full_only(files: Files) -> None:
    cleaned = 'outside = "drop"\nstrip = true\nignore_case = true'
    declared = files.schema.read_text(encoding="utf-8").replace(
        "[attributes.job]", f"[attributes.job]\n{cleaned}"
    )
    files.schema.write_text(declared, encoding="utf-8")
    short = pcor_("release", *files.request, "--detector", GRUBBS)
    assert "SQL: a long condition, which --full and the certificate have\n" in short.out
    assert "\t" not in short.out
    full = pcor_("release", *files.request, "--detector", GRUBBS, "--full")
    assert "SQL: WHERE " in full.out
    assert "\t" in full.out


def test_a_release_says_where_another_detector_than_the_schemas_is_taken(files: Files) -> None:
    declared = files.schema.read_text(encoding="utf-8") + '\n[release]\ndetector = "grubbs"\n'
    files.schema.write_text(declared, encoding="utf-8")
    ran = pcor_("release", *files.request, "--guarantee", "dp")
    assert ran.code == 0
    assert "note: guarantee 'dp' does not take the schema's detector 'grubbs'" in ran.err
    named = pcor_("release", *files.request, "--guarantee", "dp", "--detector", "tail")
    assert "the schema's detector" not in named.err


def test_a_release_under_dp_says_beforehand_where_it_is_told_what_it_takes(files: Files) -> None:
    dp = ("--guarantee", "dp", "--detector", "tail")
    note = "`pcor plan` with --guarantee dp --rows N says, for free, what it takes"
    assert note in pcor_("release", *files.request, *dp).err
    assert note not in pcor_("release", *files.request, "--detector", GRUBBS).err
    planned = pcor_("plan", *files.request, *dp, "--rows", 100)
    assert (planned.code, planned.err) == (0, "")


def test_facts_are_planned_released_and_written_down(files: Files) -> None:
    planned = pcor_("plan", *files.request, "--facts", "count,rank")
    assert "Expect the count within" in planned.out
    assert "differentially private for everyone but the record" in planned.out
    how = ("--facts", "rank,count", "--facts-share", "1/2", "--detector", GRUBBS)
    released = pcor_("release", *files.request, *how, "--json").json
    assert_certificate(released)
    assert [fact["name"] for fact in released["facts"]] == ["count", "rank"]
    assert {fact["epsilon"] for fact in released["facts"]} == {"0.125"}
    assert ": about " in released["sentence"]


def test_a_quantile_without_a_grid_is_refused_with_what_to_declare(files: Files) -> None:
    ran = pcor_("release", *files.request, "--facts", "median")
    assert ran.code == 2
    assert "[metric] low, high and step" in ran.err


def test_plan_and_release_agree_on_every_public_parameter(files: Files) -> None:
    how = ("--search", "depth_first", "--samples", 4, "--detector", GRUBBS, "--accounting", "paper")
    planned = pcor_("plan", *files.request, *how, "--json").json
    released = pcor_("release", *files.request, *how, "--json").json
    shared = set(planned) & set(released) - {"record"}
    assert {"steps", "promise", "detector", "search", "utility", "selection"} <= shared
    assert {key: planned[key] for key in shared} == {key: released[key] for key in shared}


def test_an_epsilon_that_promises_hardly_anything_is_noted(files: Files) -> None:
    note = "note: epsilon above 10 promises hardly anything\n"
    for command in ("plan", "release"):
        for epsilon, said in (("10", ""), ("10.1", note)):
            words = (*files.request, "--detector", GRUBBS, "--epsilon", epsilon, "--json")
            ran = pcor_(command, *words)
            assert (ran.code, ran.err) == (0, said)


# -- release --------------------------------------------------------------------------------------


def test_a_release_without_a_ledger_says_that_nobody_adds_it_up(files: Files) -> None:
    said = "on no books: this epsilon is not added up anywhere; --ledger keeps the sum\n"
    assert pcor_("release", *files.request, "--detector", GRUBBS).err == said
    seeded = pcor_("release", *files.request, "--detector", GRUBBS, "--seed", 1)
    assert seeded.err == ""
    assert "\nNothing is promised, because of --seed. Drawn without it" in seeded.out


SEARCHES = ("auto", *pcor.search.SEARCHES)


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("accounting", ["tight", "paper"])
@pytest.mark.parametrize("selection", ["exponential", "permute_and_flip"])
def test_release_prints_one_certificate_for_every_search(
    files: Files, search: str, accounting: str, selection: str
) -> None:
    how = ("--search", search, "--accounting", accounting, "--selection", selection)
    ran = pcor_("release", *files.request, "--detector", GRUBBS, *how, "--json")
    assert (ran.code, ran.err) == (0, "")
    assert_certificate(ran.json)
    assert ran.json["private"] is True
    assert ran.json["accounting"] == accounting
    assert ran.json["selection"] == selection
    assert "cook" in ran.json["context"]["job"]
    assert ran.json["search"]["name"] == ("direct" if search == "auto" else search)


@pytest.mark.parametrize(
    ("written", "described"),
    [
        ("lof", {"name": "lof", "k": 20, "threshold": 1.5, "ties": "lower", "min_population": 21}),
        (
            "lof:k=10,threshold=2.0,ties=all",
            {"name": "lof", "k": 10, "threshold": 2.0, "ties": "all", "min_population": 21},
        ),
        (
            "grubbs:alpha=0.01,tail=upper",
            {"name": "grubbs", "alpha": 0.01, "tail": "upper", "min_population": 21},
        ),
        (
            "histogram:rare=0.05,include_maximum=true,min_population=30",
            {"name": "histogram", "rare": 0.05, "include_maximum": True, "min_population": 30},
        ),
    ],
)
def test_a_detector_takes_settings_after_a_colon(
    files: Files, written: str, described: dict[str, Any]
) -> None:
    ran = pcor_("release", *files.request, "--detector", written, "--json")
    assert ran.code == 0
    assert ran.json["detector"] == described


@pytest.mark.parametrize(
    "start",
    [
        START,
        "<010" + "01" + "11>",
        '{"job": ["cook"], "city": "Oslo", "age": ["[0, 30)", "[30, 60]"]}',
    ],
    ids=["sentence", "bits", "json"],
)
def test_a_context_is_read_as_sentence_bits_or_json(files: Files, start: str) -> None:
    """With one sample the start itself is released."""
    how = ("--detector", GRUBBS, "--search", "breadth_first", "--samples", 1, "--start", start)
    ran = pcor_("release", *files.request, *how, "--json")
    assert ran.code == 0
    assert ran.json["bits"] == "0100111"
    assert ran.json["search"]["start"] == START
    assert ran.json["steps"][0]["what"] == "the start context, given by the owner"


@pytest.mark.parametrize(
    "how",
    [
        ("--overlap-with", START),
        ("--search", "random_walk", "--start", START),
        ("--search", "uniform", "--start", START),
        ("--search", "uniform", "--overlap-with", "any job; city is Rome; any age"),
    ],
    ids=" ".join,
)
def test_overlap_is_with_the_given_context_or_the_start(files: Files, how: tuple[str, ...]) -> None:
    ran = pcor_(
        "release", *files.request, "--detector", GRUBBS, "--utility", "overlap", *how, "--json"
    )
    assert ran.code == 0
    assert ran.json["utility"]["name"] == "overlap"
    assert ran.json["utility"]["with"] == how[-1]


GUARANTEES: dict[str, tuple[str, ...]] = {
    "ocdp": ("--detector", GRUBBS),
    "dp": ("--guarantee", "dp", "--detector", "tail:share=0.1,min_population=5"),
}


@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_a_release_is_short_and_states_its_guarantee_in_full(files: Files, guarantee: str) -> None:
    ran = pcor_("release", *files.request, *GUARANTEES[guarantee])
    assert ran.code == 0
    sentence, condition, cost, claim, validity, more = ran.out.replace("\n\n", "\n").splitlines()
    stands_out = {"ocdp": "an outlier by", "dp": "unusually high in"}[guarantee]
    assert f"ecord {OUTLIER} (400.5) is {stands_out} pay" in sentence
    assert re.fullmatch(r'SQL: WHERE (TRUE|"(job|city|age)" .+)', condition)
    assert cost == "Cost: epsilon 0.5"
    assert claim == pcor.Promise(Fraction(1, 2), guarantee=get_guarantee(guarantee)).claim
    assert "an outlier" in validity
    assert more.startswith("(--full ")
    assert "NOT PRIVATE" not in ran.out


@pytest.mark.parametrize("guarantee", GUARANTEES)
@pytest.mark.parametrize("command", ["release", "plan"])
def test_the_whole_promise_and_each_step_are_printed_in_full(
    files: Files, command: str, guarantee: str
) -> None:
    asked = (command, *files.request, *GUARANTEES[guarantee])
    short, full = pcor_(*asked).out, pcor_(*asked, "--full").out
    promise = pcor_("plan", *asked[1:], "--json").json["promise"]["text"]
    assert "total epsilon 0.5 (tight accounting)" in full
    assert (promise in full, "--full" in full) == (True, False)
    assert (promise in short, promise.splitlines()[0] in short, "--full" in short) == (
        (False, True, True)
    )


def test_a_release_for_everyone_but_the_record_says_its_margin(files: Files) -> None:
    asked = (*files.request, "--guarantee", "dp", "--detector", "tail:share=0.1,min_population=5")
    ran = pcor_("release", *asked, "--json")
    assert ran.code == 0
    assert_certificate(ran.json)
    assert ran.json["guarantee"] == "dp"
    assert "rows by a margin of at least " in ran.json["sentence"]
    planned = pcor_("plan", *asked)
    assert "how many fewer rows are as unusual as the record than the share allows" in planned.out
    refused = pcor_("release", *files.request, "--guarantee", "dp", "--detector", "lof")
    assert refused.code == 2
    assert "tail, neighbourhood, rare_bin" in refused.err


def test_a_delta_goes_with_a_search_of_many_draws(files: Files) -> None:
    asked = (*files.request, "--detector", GRUBBS, "--delta", "1e-6")
    ran = pcor_("release", *asked, "--search", "breadth_first", "--json")
    assert ran.code == 0
    assert_certificate(ran.json)
    assert ran.json["delta"] == 1e-6
    refused = pcor_("release", *asked, "--search", "direct")
    assert refused.code == 2
    assert "delta pays only where many draws add up" in refused.err


def test_a_seeded_release_repeats_itself_and_says_not_private(files: Files) -> None:
    how = ("--detector", GRUBBS, "--search", "uniform", "--epsilon", "0.001", "--seed")
    seeded = [pcor_("release", *files.request, *how, seed) for seed in range(12)]
    again = [pcor_("release", *files.request, *how, seed) for seed in range(12)]
    assert seeded == again
    assert len({ran.out for ran in seeded}) > 1
    assert all("NOT PRIVATE" in ran.out.splitlines()[0] for ran in seeded)
    as_json = pcor_("release", *files.request, *how, 0, "--json").json
    assert as_json["private"] is False
    assert "NOT PRIVATE" in as_json["sentence"]
    assert "seed" not in {key for key in keys_of(as_json) if key != "sentence"}


@pytest.mark.parametrize("ending", ["json", "html"])
def test_release_writes_the_certificate_it_prints(files: Files, ending: str) -> None:
    out = files.folder / f"certificate.{ending}"
    before = files.listing()
    ran = pcor_("release", *files.request, "--detector", GRUBBS, "--out", out, "--json")
    assert ran.code == 0
    assert ran.err == f"certificate written to {out}\n"
    assert files.listing() == before | {out.name}
    text = out.read_text(encoding="utf-8")
    if ending == "html":
        assert text.startswith("<!doctype html>")
        text = text.split('id="certificate">')[1].split("</script>")[0]
    assert json.loads(text) == ran.json


def test_a_record_may_be_a_text_or_a_row_number(files: Files) -> None:
    keys = [f"p {i}" for i in range(120)]
    named = files.rewritten(key=keys)
    how = ("--schema", files.schema, "--epsilon", 1, "--detector", GRUBBS, "--json")
    assert pcor_("release", named, "--record", "p 17", *how).json["record"] == "p 17"
    numbered = files.declared(SCHEMA.replace('id = "key"\n', ""))
    how = ("--schema", numbered, "--epsilon", 1, "--detector", GRUBBS, "--json")
    assert pcor_("release", files.table, "--record", 17, *how).json["record"] == OUTLIER


def test_a_parquet_file_gives_the_same_certificate_as_its_csv_twin(files: Files) -> None:
    twin = files.folder / "pay.parquet"
    parquet.write_table(pa.table(people()), twin)
    how = (*files.request[1:], "--detector", GRUBBS, "--seed", 5, "--json")
    assert pcor_("release", twin, *how) == pcor_("release", files.table, *how)
