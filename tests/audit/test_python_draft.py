"""``pcor.Schema.draft`` and ``check``: from a frame to a schema, and how schemas are shown."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import pcor
from pcor.errors import SchemaError
from pcor.public.schema import REVIEW

CANARY = 99


def frame() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "pay": [float(i) for i in range(CANARY)] + [5000.0],
            "job": ["cook", "Clerk "] * 50,
            "city": ["Rome", "Oslo", "?", "Bern"] * 25,
            "key": range(100),
        }
    )


def drafted() -> pcor.Schema:
    asked: dict[str, Any] = {
        "metric": "pay",
        "attributes": ["job", "city"],
        "id": "key",
        "name": "people",
    }
    return pcor.Schema.draft(frame(), **asked)


def test_a_draft_is_a_schema_that_fits_its_frame_and_is_marked() -> None:
    schema = drafted()
    cities = ("Bern", "Oslo", "Rome", "unknown")  # which "?" counts as
    assert schema.domains == {"job": ("Clerk", "cook"), "city": cities}
    assert schema.check(frame()) == []
    assert schema.unreviewed == ("attributes.job", "attributes.city")
    assert schema.to_toml().count(REVIEW) == 2


def test_a_draft_says_what_it_noticed_to_whoever_made_it() -> None:
    schema = drafted()
    assert "job: blanks at the ends of some cells: strip = true" in schema.notes
    assert "<li>job: blanks at the ends" in schema._repr_html_()
    assert "blanks" not in repr(schema)
    copies = (schema.reviewed(), pickle.loads(pickle.dumps(schema)))  # noqa: S301 (our own)
    assert [one.notes for one in copies] == [(), ()]


def test_a_draft_is_still_one_when_it_is_made_anew_from_what_it_declares() -> None:
    """A release refuses it; reviewed, it is the schema that it was, with the same fingerprint."""
    draft = drafted()
    declared = draft.to_dict()
    assert declared["unreviewed"] == ["attributes.job", "attributes.city"]
    again = pcor.Schema.from_dict(declared)
    with pytest.raises(SchemaError, match="is a draft"):
        pcor.release(pcor.Table(frame(), again), 99, epsilon=1)
    assert again == draft == again.reviewed()
    assert "unreviewed" not in again.reviewed().to_dict()
    assert pcor.Schema.from_dict(again.reviewed().to_dict()).unreviewed == ()
    with pytest.raises(SchemaError, match="unreviewed must list parts of a draft"):
        pcor.Schema.from_dict(declared | {"unreviewed": "job"})


def test_a_draft_is_told_how_its_file_is_written(tmp_path: Path) -> None:
    """What is given is not guessed and not marked; 1,234 is above one, or a thousand and more."""
    lines = [f"{job};1,23{number}" for number in range(9) for job in ("cook", "clerk")]
    (tmp_path / "pay.csv").write_text("\n".join(["job;pay", *lines]), encoding="utf-8")

    def draft(**source: str) -> pcor.Schema:
        path = tmp_path / "pay.csv"
        return pcor.Schema.draft(path, metric="pay", attributes=["job"], source=source)

    assert draft(separator=";").source.decimal == ","
    assert "source" in draft(separator=";").unreviewed
    told = draft(separator=";", decimal=".", thousands=",", encoding="utf-8")
    assert (told.source.decimal, told.source.thousands) == (".", ",")
    assert "source" not in told.unreviewed
    with pytest.raises(SchemaError, match="unknown key 'delimiter'"):
        draft(delimiter=";")


def test_a_draft_says_what_does_not_fit_another_frame() -> None:
    (misfit,) = drafted().check(frame().assign(job="pilot"))
    assert "'pilot' (100)" in str(misfit)


def test_a_release_refuses_a_draft_before_anything_is_charged_and_takes_it_reviewed() -> None:
    schema, budget = drafted(), pcor.Budget(1)
    table = pcor.Table(frame(), schema)
    with pytest.raises(SchemaError, match=r"attributes\.job, attributes\.city were read off"):
        pcor.release(table, CANARY, 1, budget=budget)
    assert budget.spent == 0
    assert len(pcor.matching_contexts(table, CANARY)) > 0  # the owner may look
    reviewed = schema.reviewed()
    assert reviewed == schema  # the same declarations, and so the same fingerprint
    assert pcor.release(pcor.Table(frame(), reviewed), CANARY, 1, budget=budget)
    assert budget.spent == 1


def test_a_ledger_and_a_batch_refuse_a_draft_too(tmp_path: Path) -> None:
    table = pcor.Table(frame(), drafted())
    ledger = pcor.Ledger(tmp_path / "books.db")
    ledger.set_budget("people", 5)
    with pytest.raises(SchemaError, match="is a draft"):
        pcor.release(table, CANARY, 1, budget=ledger)
    assert ledger.left("people") == 5
    ledger.close()
    with pytest.raises(SchemaError, match="is a draft"):
        pcor.release_many(table, [CANARY], 1)


def test_marks_outlive_a_file_a_copy_and_options(tmp_path: Path) -> None:
    path = tmp_path / "draft.toml"
    path.write_text(drafted().to_toml(), encoding="utf-8")
    with pytest.raises(SchemaError, match="is a draft"):
        pcor.Schema.from_file(path)
    read = pcor.Schema.from_file(path, draft=True)
    copied = pickle.loads(pickle.dumps(read))  # noqa: S301 (our own)
    for one in (read, copied, read.written(decimal=",")):
        assert one.unreviewed == drafted().unreviewed
    path.write_text(read.reviewed().to_toml(), encoding="utf-8")
    assert pcor.Schema.from_file(path).unreviewed == ()


def test_a_mark_in_the_middle_of_a_table_counts_for_all_of_it(tmp_path: Path) -> None:
    path = tmp_path / "draft.toml"
    text = drafted().reviewed().to_toml()
    path.write_text(text.replace('values = ["Clerk"', f'values = [  {REVIEW}\n  "Clerk"'))
    assert pcor.Schema.from_file(path, draft=True).unreviewed == ("attributes.job",)


def test_a_schema_is_shown_in_a_line_and_as_a_table() -> None:
    schema = drafted()
    assert repr(schema).startswith("<DRAFT, Schema 'people': pay by job (2), city (4); 4 contexts")
    assert repr(schema.reviewed()).startswith("<Schema 'people': pay by job (2)")
    shown = schema._repr_html_()
    assert (
        "<td>city (to review)</td><td>Bern, Oslo, Rome, unknown</td><td>one, or all</td>" in shown
    )
    assert "to review" not in schema.reviewed()._repr_html_()


def test_what_a_schema_says_is_escaped_where_it_is_shown() -> None:
    schema = pcor.Schema(metric="<b>", attributes={"<i>": ["<u>", "&"]}, name="<s>")
    shown = schema._repr_html_()
    assert all(f"<{tag}>" not in shown for tag in "bius")
    assert "&lt;u&gt;, &amp;" in shown


def test_long_domains_are_shown_in_part() -> None:
    schema = pcor.Schema(metric="m", attributes={"a": [f"v{i:02}" for i in range(40)]})
    assert "v11 and 28 more" in schema._repr_html_()


def test_matching_contexts_come_as_a_frame() -> None:
    table = pcor.Table(frame(), drafted().reviewed())
    found = pcor.matching_contexts(table, CANARY)
    shown = found.to_pandas()
    assert list(shown.columns) == ["context", "population", "job", "city"]
    assert shown["context"].tolist() == list(map(str, found.contexts))
    assert shown["population"].tolist() == found.populations.tolist()
    for context, job in zip(found.contexts, found.to_arrow()["job"].to_pylist(), strict=True):
        assert job == (None if len(context.values["job"]) == 2 else context.values["job"])


def test_an_attribute_called_like_a_column_of_ours_stays_one() -> None:
    rows = pa.table({"m": [1.0] * 30 + [99.0], "population": ["a"] * 31, "context": ["b"] * 31})
    schema = pcor.Schema(metric="m", attributes={"population": ["a", "z"], "context": ["b", "c"]})
    found = pcor.matching_contexts(pcor.Table(rows, schema), 30, "grubbs")
    assert found.to_arrow().column_names == ["context", "population", "population", "context"]


# -- people with several rows ----------------------------------------------------------------------


def careers() -> pd.DataFrame:
    return frame().assign(who=[f"E{number // 7}" for number in range(100)])


def of_people(most: int, over: str = "error") -> pcor.Schema:
    declared = drafted().to_dict()
    declared["dataset"] |= {"person": "who", "rows_per_person": most, "over": over}
    return pcor.Schema.from_dict(declared)


def test_a_draft_proposes_the_most_rows_that_a_person_has_for_review() -> None:
    schema = pcor.Schema.draft(
        careers(), metric="pay", attributes=["job", "city"], id="key", person="who"
    )
    assert (schema.person, schema.rows_per_person, schema.over) == ("who", 7, "error")
    assert "dataset" in schema.unreviewed
    assert f"[dataset]  {REVIEW}" in schema.to_toml()
    noticed = pcor.audit.draft_schema(
        careers(), metric="pay", attributes=["job"], person="who"
    ).noticed
    assert "15 people, 15 of them with several rows and none with more than 7" in noticed["who"][0]
    with pytest.raises(pcor.errors.SourceError, match="'key' is named twice"):
        pcor.Schema.draft(careers(), metric="pay", attributes=["job"], id="key", person="key")


def test_a_check_tells_the_owner_who_has_too_many_rows() -> None:
    assert of_people(7).check(careers()) == []
    (misfit,) = of_people(3).check(careers())
    assert "more than rows_per_person = 3 rows of each of 14 people" in str(misfit)
    assert 'declare up to 7, or over = "keep" under [dataset], which leaves 56 rows out' in str(
        misfit
    )
    assert of_people(3, "keep").check(careers()) == []
    (misfit,) = of_people(9).check(careers().assign(who=[None, *["E"] * 9, *map(str, range(90))]))
    assert "nobody's rows in 1 row" in str(misfit)


def test_people_who_differ_by_blanks_or_case_alone_are_noted_and_not_refused() -> None:
    """A release cannot know whether they are one; with other names nothing is said."""
    who = ["E1", "e1", "E1 ", "E2", None, *(f"P{number}" for number in range(95))]
    rows = careers().assign(who=who)
    notes = pcor.Schema.draft(rows, metric="pay", attributes=["job"], person="who").notes
    (nobody,) = [note for note in notes if "without a person" in note]
    (alike,) = [note for note in notes if "alone" in note]
    assert nobody.startswith("who: 1 row without a person, and a release refuses")
    assert alike.startswith("who: 2 people differ from another by blanks or case alone")
    (found,) = of_people(7).check(rows.assign(who=[*who[:4], "E3", *who[5:]]))
    assert not found.refused
    assert "clean the column, unless they are different people" in str(found)
