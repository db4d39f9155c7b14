"""`pcor schema`: drafted, reviewed, checked against the rows."""

from __future__ import annotations

import re

from pcor.cli.output import OWNER_ONLY
from pcor.detectors.lof import LOW_BAR
from tests.helpers.command_line import (
    GRUBBS,
    JOBS,
    LARGE,
    OUTLIER,
    SCHEMA,
    Files,
    changed,
    pcor_,
    people,
)


def test_init_drafts_a_schema_that_check_accepts_once_reviewed(files: Files) -> None:
    out = files.folder / "draft.toml"
    asked = ("--metric", "pay", "--attributes", "job, city,age", "--id", "key", "--out", out)
    ran = pcor_("schema", "init", files.table, *asked)
    assert ran.code == 0
    marks = out.read_text(encoding="utf-8").count("# REVIEW:")
    assert f"{marks} parts are marked REVIEW" in ran.out
    check = pcor_("schema", "check", files.table, "--schema", out)
    assert check.code == 0
    assert check.out.startswith(f"{OWNER_ONLY}\nthe table fits the schema\n")
    assert "contexts can contain a record" in check.out
    assert "contexts can contain a record" in ran.out
    assert f"{marks} parts of the schema are still marked REVIEW" in check.err
    request = ("--schema", out, "--record", OUTLIER, "--epsilon", 1, "--detector", GRUBBS)
    draft = pcor_("release", files.table, *request)
    assert (draft.code, draft.out) == (2, "")
    assert "parts marked REVIEW were read off the data" in draft.err
    assert "a release would refuse it" in pcor_("plan", files.table, *request).err
    out.write_text(re.sub(r" *# REVIEW:.*", "", out.read_text(encoding="utf-8")), encoding="utf-8")
    assert pcor_("release", files.table, *request).code == 0


def test_init_and_check_say_what_it_means_to_have_no_id(files: Files) -> None:
    drafted = files.folder / "numbered.toml"
    asked = (files.table, "--metric", "pay", "--attributes", "job,city", "--out", drafted)
    ran = pcor_("schema", "init", *asked)
    assert "nothing is promised to whoever stands before it" in ran.err
    assert "# no id column: a record is its row number" in drafted.read_text(encoding="utf-8")
    assert "no id column" in pcor_("schema", "check", files.table, "--schema", drafted).err
    assert "no id column" not in pcor_("schema", "init", *asked, "--id", "key", "--force").err
    declared = drafted.read_text(encoding="utf-8").replace('id = "key"', 'positions = "public"')
    drafted.write_text(declared, encoding="utf-8")
    assert "no id column" not in pcor_("schema", "check", files.table, "--schema", drafted).err


def test_a_schema_says_what_its_size_rules_out_before_anybody_is_refused(files: Files) -> None:
    large = files.folder / "large.toml"
    large.write_text(SCHEMA.replace(JOBS, LARGE), encoding="utf-8")
    ran = pcor_("schema", "check", files.table, "--schema", large)
    assert "2,147,483,648 contexts can contain a record" in ran.out
    asked = ("--schema", large, "--record", OUTLIER, "--epsilon", 1, "--detector", "tail")
    told = pcor_("plan", files.table, *asked)
    for text in (ran.out, told.out):
        assert "--guarantee dp, --search direct, pcor tradeoff, pcor audit" in text
        assert "need a larger --limit" in text
    noted = pcor_("plan", files.table, *asked, "--json").json["note"]
    assert noted in told.out


def test_a_plan_by_lof_says_how_low_its_bar_is_and_what_else_there_is_to_say(files: Files) -> None:
    large = files.declared(SCHEMA.replace(JOBS, LARGE))
    asked = ("plan", files.table, "--record", OUTLIER, "--epsilon", 1)
    for schema, notes in ((files.schema, [LOW_BAR]), (large, [LOW_BAR, "need a larger --limit"])):
        told = pcor_(*asked, "--schema", schema).out
        noted = pcor_(*asked, "--schema", schema, "--json").json["note"]
        for note in notes:
            assert note in " ".join(told.split())
            assert note in noted
    assert noted[: len(LOW_BAR)] == LOW_BAR
    grubbs = pcor_(*asked, "--schema", files.schema, "--detector", GRUBBS, "--json").json
    assert "note" not in grubbs


def test_the_command_line_gives_dp_the_limit_that_its_refusal_names(files: Files) -> None:
    large = files.folder / "large.toml"
    large.write_text(SCHEMA.replace(JOBS, LARGE), encoding="utf-8")
    asked = ("--schema", large, "--record", OUTLIER, "--epsilon", 1, "--detector", "tail")
    refused = pcor_("plan", files.table, *asked, "--guarantee", "dp")
    assert refused.code == 2
    assert "raise --limit" in refused.err
    assert "limit=" not in refused.err
    told = pcor_("plan", files.table, *asked, "--guarantee", "dp", "--limit", 1 << 31)
    assert told.code == 0


def test_init_as_json(files: Files) -> None:
    out = files.folder / "draft.toml"
    asked = ("--metric", "pay", "--attributes", "job", "--out", out, "--json")
    assert pcor_("schema", "init", files.table, *asked).json == {
        "owner_only": OWNER_ONLY,
        "schema": str(out),
        "to_review": 1,
        "noticed": {},
        "possible_contexts": 2,
    }


def test_init_shows_the_owner_which_cells_of_the_metric_are_not_numbers(files: Files) -> None:
    """There is no schema yet for ``pcor schema check`` to show them by."""
    pay = ["ca. 4" if i in (3, 5) else "none" if i == 9 else str(i) for i in range(120)]
    asked = ("--metric", "pay", "--attributes", "job", "--out", files.folder / "draft.toml")
    ran = pcor_("schema", "init", files.rewritten(pay=pay), *asked)
    assert (ran.code, ran.out) == (2, "")
    assert f"; {OWNER_ONLY} 3 not numbers, first 'ca. 4' in row 3, 'none' in row 9 (" in ran.err
    assert 'correct them, or empty them and set missing = "drop"' in ran.err
    assert "schema check" not in ran.err
    assert not (files.folder / "draft.toml").exists()


def test_init_takes_a_few_words_among_numbers_for_no_value(files: Files) -> None:
    pay = [f"{i}.235,{i % 10}8" for i in range(1, 121)]
    pay[7] = pay[30] = "offen"
    pay[9] = "k.A."
    out = files.folder / "draft.toml"
    asked = ("--metric", "pay", "--attributes", "job", "--out", out)
    ran = pcor_("schema", "init", files.rewritten(pay=pay), *asked)
    assert ran.code == 0
    assert "taken for no value, in missing_values: 'k.A.' in 1 row, 'offen' in 2 rows" in ran.out
    metric = out.read_text(encoding="utf-8").partition("[metric]")[2].partition("[attr")[0]
    assert metric.startswith("  # REVIEW")
    assert 'missing = "drop"\nmissing_values = ["k.A.", "offen"]\n' in metric
    assert pcor_("schema", "check", files.folder / "changed.csv", "--schema", out).code == 0


def test_init_replaces_a_file_only_when_told_to(files: Files) -> None:
    asked = ("--metric", "pay", "--attributes", "job", "--out", files.schema)
    refused = pcor_("schema", "init", files.table, *asked)
    assert refused.code == 2
    assert "--force" in refused.err
    assert files.schema.read_text(encoding="utf-8") == SCHEMA
    assert pcor_("schema", "init", files.table, *asked, "--force").code == 0
    assert files.schema.read_text(encoding="utf-8") != SCHEMA


def test_check_shows_the_owner_what_does_not_fit(files: Files) -> None:
    table = files.rewritten(job=["astronaut"] * 3 + people()["job"][3:])
    ran = pcor_("schema", "check", table, "--schema", files.schema)
    assert ran.code == 2
    assert ran.out.splitlines() == [
        OWNER_ONLY,
        "- column 'job': outside the declared domain in 3 rows, for example 'astronaut' (3); "
        "declare what could occur, or other = ... counts them as one value, "
        'outside = "drop" leaves such rows out',
        "the table does not fit the schema",
        "7 values of 3 attributes: 16 contexts can contain a record (4 values may come or go).",
    ]


def test_check_as_json(files: Files) -> None:
    table = changed("pay", 0, "lots")(files)
    ran = pcor_("schema", "check", table, "--schema", files.schema, "--json")
    assert ran.code == 2
    assert ran.json == {
        "owner_only": OWNER_ONLY,
        "fits": False,
        "to_review": 0,
        "misfits": [
            {
                "column": "pay",
                "problem": "not a number",
                "rows": 1,
                "examples": ["'lots' (1)"],
                "remedy": "correct them or [source], or name them in missing_values and set "
                'missing = "drop" under [metric]',
                "refused": True,
            }
        ],
        "possible_contexts": 16,
    }


def test_init_and_check_speak_of_people_with_several_rows(files: Files) -> None:
    """The plan of a reviewed draft names the unit, and a lower bound is refused without a name."""
    rows = files.folder / "careers.csv"
    lines = [f"{key},E{key // 4},{'clerk' if key % 3 else 'cook'},{key}" for key in range(40)]
    rows.write_text("\n".join(["key,who,job,pay", *lines]), encoding="utf-8")
    out = files.folder / "careers.toml"
    asked = ("--metric", "pay", "--attributes", "job", "--id", "key", "--person", "who")
    ran = pcor_("schema", "init", rows, *asked, "--out", out)
    assert "10 people, 10 of them with several rows and none with more than 4" in ran.out
    draft = re.sub(r" *# REVIEW:.*", "", out.read_text(encoding="utf-8"))
    out.write_text(draft, encoding="utf-8")
    check = pcor_("schema", "check", rows, "--schema", out)
    assert "nobody more than 4; rows_per_person is 4." in check.out
    request = (rows, "--schema", out, "--record", 3, "--epsilon", 1)
    assert "a person by 'who', with up to 4 rows together" in pcor_("plan", *request).out
    out.write_text(draft.replace("rows_per_person = 4", "rows_per_person = 3"), encoding="utf-8")
    refused = pcor_("release", *request)
    assert refused.code == 2
    assert "more rows than rows_per_person = 3 allows" in refused.err
    kept = draft.replace("rows_per_person = 4", 'rows_per_person = 3\nover = "keep"')
    out.write_text(kept, encoding="utf-8")
    check = pcor_("schema", "check", rows, "--schema", out)
    assert "10 rows of 10 people are not counted." in check.out
    rows.write_text(rows.read_text(encoding="utf-8").replace("3,E0,", "3,e0,"), encoding="utf-8")
    check = pcor_("schema", "check", rows, "--schema", out)
    assert check.code == 0
    assert "1 person differs from another by blanks or case alone" in check.out
    assert "the table fits the schema" in check.out
