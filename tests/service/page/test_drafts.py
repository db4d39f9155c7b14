"""From a file in the data folder to a registered dataset, by forms alone."""

from __future__ import annotations

import html
import json
import logging
from collections.abc import Iterator

import pytest

from pcor.audit.schema_draft import draft
from pcor.service.core import inspection
from pcor.service.page.schema_form import schema_of
from tests.helpers.page_forms import ID, MESSY, METRIC, RECORD, all_reviewed, fields_in, write_messy
from tests.helpers.page_person import Person
from tests.helpers.service_world import SOURCE, World, world
from tests.helpers.waiting import DEADLINE

INSIDE = "not-for-the-page"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("page")
    with world(str(folder / "books.db"), folder) as made:
        data = made.service.settings.data
        write_messy(data)
        (data / "year").mkdir()
        (data / "year" / "small.csv").write_text("a,b\n1,x\n2,y\n")
        (data / ".hidden.csv").write_text(f"{INSIDE}\n1\n")
        (data / ".folder").mkdir()
        (data / ".folder" / "inside.csv").write_text(f"{INSIDE}\n1\n")
        (data / "notes.txt").write_text(INSIDE)
        (folder / "outside.csv").write_text(f"{INSIDE}\n1\n")
        (data / "link.csv").symlink_to(folder / "outside.csv")
        (data / "round").symlink_to(data, target_is_directory=True)
        yield made


@pytest.fixture(scope="module")
def owner(place: World) -> Person:
    return Person(place, "owner")


@pytest.fixture(scope="module")
def drafted(owner: Person) -> dict[str, str]:
    """The fields of the draft of the messy file."""
    answer = owner.post("/draft", source=MESSY, metric=METRIC, id=ID)
    assert answer.status_code == 200, answer.text
    return fields_in(answer.text)


def shown(text: str) -> str:
    """Return a page as it is read."""
    return html.unescape(text)


# -- which files ----------------------------------------------------------------------------------


def test_the_tables_in_the_data_folder_are_offered_and_nothing_else(owner: Person) -> None:
    page = owner.get("/draft").text
    assert [name in page for name in (MESSY, SOURCE, "year/small.csv")] == [True] * 3
    for other in (".hidden", "inside.csv", "notes", "link.csv", "outside", "secret", "round"):
        assert other not in page, other


@pytest.mark.parametrize(
    "source",
    [
        "../outside.csv",
        "year/../../outside.csv",
        "/etc/x.csv",
        "link.csv",
        ".hidden.csv",
        ".folder/inside.csv",
        "notes.txt",
        "nothing.csv",
        "*.csv",
        "year",
        ".",
    ],
)
def test_no_other_file_is_looked_into(owner: Person, source: str) -> None:
    for answer in (
        owner.get("/draft", params={"source": source}),
        owner.post("/draft", source=source, metric="a"),
        owner.post("/register/check", source=source, schema='metric = { column = "a" }'),
    ):
        assert answer.status_code == 422
        assert INSIDE not in answer.text


def test_the_columns_of_a_file_are_offered_as_metric_and_id(owner: Person) -> None:
    page = owner.get("/draft", params={"source": MESSY}).text
    for column in ("key", "job", "size", "age", "pay"):
        assert page.count(f'<option value="{column}"') == 2


def test_a_file_that_is_no_table_is_told_in_a_sentence_without_its_path(
    place: World, owner: Person
) -> None:
    (place.service.settings.data / "broken.parquet").write_bytes(b"PAR1 nonsense")
    answer = owner.get("/draft", params={"source": "broken.parquet"})
    assert answer.status_code == 422
    assert "the file 'broken.parquet' cannot be read" in shown(answer.text).lower()
    assert str(place.service.settings.data) not in answer.text


# -- a draft --------------------------------------------------------------------------------------


def test_the_fields_of_a_draft_are_the_draft(place: World, drafted: dict[str, str]) -> None:
    found = draft(place.service.settings.data / MESSY, metric=METRIC, id_column=ID)
    schema = schema_of(drafted)
    assert schema == found.schema
    assert set(schema.unreviewed) == set(found.schema.unreviewed)


def test_each_part_shows_what_was_noticed_and_a_mark(owner: Person) -> None:
    page = shown(owner.post("/draft", source=MESSY, metric=METRIC, id=ID).text)
    for said in ("OWNER ONLY", "blanks at the ends of some cells", "differ by case alone"):
        assert said.lower() in page.lower()
    assert "many numbers, in bins with round edges" in page.lower()
    # Three attributes, the metric with its words for no value, and how the file is written.
    assert page.count("read off the data</span>") == 5
    assert page.count('.reviewed" value="yes">') == 5
    assert "5 parts wait for your review" in page


def test_a_metric_must_be_chosen_and_is_said_at_its_field(owner: Person) -> None:
    answer = owner.post("/draft", source=MESSY, id=ID)
    assert answer.status_code == 422
    field = answer.text[answer.text.index('id="metric"') :][:60]
    assert 'aria-invalid="true"' in field
    assert fields_in(answer.text)["id"] == ID


def test_a_metric_of_words_is_refused_with_the_owners_details(owner: Person) -> None:
    answer = owner.post("/draft", source=MESSY, metric="job")
    said = shown(answer.text)
    assert answer.status_code == 422
    assert "the metric 'job' is not numeric" in said.lower()
    assert "in row 0" in said  # where, which nobody but the owner is told
    assert 'aria-invalid="true"' in answer.text


def test_a_column_that_was_left_out_can_be_drafted_too(place: World, owner: Person) -> None:
    rows = [f"{n},{n % 3},{n % 2},{n % 70}" for n in range(140)]
    lines = ["pay,a,b, many ", *(f"{row}x" for row in rows)]
    (place.service.settings.data / "left.csv").write_text("\n".join(lines))
    first = fields_in(owner.post("/draft", source="left.csv", metric="pay").text)
    assert first["left.0.name"] == '" many "'  # a form would lose the blanks
    nothing = owner.post("/draft/add", **first)
    assert (nothing.status_code, "tick the columns" in nothing.text.lower()) == (422, True)
    kept = first | {"0.values": "0\n1\n2\n3", "left.0.add": "yes"}
    added = fields_in(owner.post("/draft/add", **kept).text)
    assert "left.0.name" not in added
    assert added["0.values"] == "0\n1\n2\n3"
    assert [one.name for one in schema_of(added).attributes] == ["a", "b", " many "]


def test_names_that_look_like_html_are_shown_as_they_are(place: World, owner: Person) -> None:
    evil = "<script>alert(1)</script>"
    text = f'pay,"{evil}"\n' + "".join(f"{n},{evil if n % 2 else 'b'}\n" for n in range(60))
    (place.service.settings.data / "evil.csv").write_text(text)
    page = owner.post("/draft", source="evil.csv", metric="pay").text
    assert evil not in page
    assert schema_of(fields_in(page)).attributes[0].name == evil


def test_one_file_is_read_at_a_time_and_the_form_is_kept(
    owner: Person, drafted: dict[str, str]
) -> None:
    assert inspection._busy.acquire(timeout=DEADLINE)
    try:
        answers = [
            owner.post("/draft", source=MESSY, metric=METRIC, id=ID),
            owner.post("/draft/check", **drafted),
        ]
    finally:
        inspection._busy.release()
    assert [answer.status_code for answer in answers] == [429, 429]
    assert all("another file is being read" in one.text.lower() for one in answers)
    assert fields_in(answers[1].text) == drafted


def test_no_draft_is_made_of_a_file_that_is_too_large(
    owner: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inspection, "LARGEST_DRAFTED", 100)
    answer = owner.post("/draft", source=MESSY, metric=METRIC)
    assert answer.status_code == 422
    assert "pcor schema init" in answer.text


# -- fields that are wrong ------------------------------------------------------------------------

# Of the draft: 0 is job, 1 is size, 2 is age.
WRONG = [
    ("2.edges", "10, young", "'young' is neither a number nor a date", "2.edges"),
    ("2.edges", "30, 20", "bins overlap", ""),
    ("1.values", "small", "'small' is not a number", "1.values"),
    ("1.values", "", "declare what can occur", "1.values"),
    ("0.aliases", "baker", "write each as: spelling = value", "0.aliases"),
    ("0.aliases", "baker = Nobody", "which is none of its values", ""),
    ("0.outside", "other", "name the value that such rows count as", "0.other"),
    ("contexts.max_clauses", "few", "give a whole number", "contexts.max_clauses"),
    ("contexts.max_clauses", "9", "from 0 to 3", ""),
    ("written.encoding", "klingon", "is not known", ""),
    ("written.decimal", "-", "decimal must be one of", ""),
]


@pytest.mark.parametrize(("field", "text", "said", "at"), WRONG)
def test_a_wrong_field_is_told_where_it_stands_and_all_fields_are_kept(
    owner: Person, drafted: dict[str, str], field: str, text: str, said: str, at: str
) -> None:
    given = drafted | {field: text, "name": "a name of my own"}
    for path in ("/draft/check", "/draft/done"):
        answer = owner.post(path, **given)
        assert answer.status_code == 422
        assert said in shown(answer.text).lower()
        assert fields_in(answer.text) == given
        assert not at or f'id="wrong-{at}"' in answer.text


def test_a_schema_without_attributes_is_refused(owner: Person, drafted: dict[str, str]) -> None:
    none = {name: text for name, text in drafted.items() if not name.endswith(".included")}
    answer = owner.post("/draft/check", **none)
    assert answer.status_code == 422
    assert "at least one attribute" in answer.text


# -- the check ------------------------------------------------------------------------------------


def test_a_check_says_that_the_file_fits_and_what_the_size_allows(
    owner: Person, drafted: dict[str, str]
) -> None:
    answer = owner.post("/draft/check", **drafted)
    assert answer.status_code == 200
    schema = schema_of(drafted)
    assert "The file fits this schema." in answer.text
    assert f"up to {schema.most_contexts:,} contexts" in answer.text
    assert "Few enough for everything" in answer.text
    assert fields_in(answer.text) == drafted


def test_what_does_not_fit_is_said_at_its_column_and_is_in_no_log(
    place: World, owner: Person, drafted: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    fewer = drafted | {"0.values": "Bäcker\nCafé; Bar"}
    with caplog.at_level(logging.DEBUG):
        answer = owner.post("/draft/check", **fewer)
    page = shown(answer.text)
    assert "One thing in the file does not fit this schema." in page
    at = page.index('class="misfits"')
    assert page.index('id="about-0"') < at < page.index('id="about-1"')
    assert 'says "hi"' in page[at : at + 300]
    assert "says" not in caplog.text
    events = place.send("owner", "GET", "/v1/audit").json()["events"]
    assert (events[-1]["kind"], events[-1]["body"]) == ("schema_checked", {})
    assert MESSY not in json.dumps(events)


def test_a_schema_that_does_not_fit_or_is_not_reviewed_goes_no_further(
    owner: Person, drafted: dict[str, str]
) -> None:
    waiting = owner.post("/draft/done", **drafted)
    assert waiting.status_code == 422
    assert shown(waiting.text).count("Read this part and tick it") == 5
    all_but_one = all_reviewed(drafted)
    del all_but_one["1.reviewed"]
    assert shown(owner.post("/draft/done", **all_but_one).text).count("Read this part") == 1
    fewer = all_reviewed(drafted) | {"0.values": "Bäcker"}
    unfit = owner.post("/draft/done", **fewer)
    assert unfit.status_code == 422
    assert "does not fit this schema" in unfit.text


def test_a_part_that_is_left_out_needs_no_review(owner: Person, drafted: dict[str, str]) -> None:
    fields = all_reviewed(drafted)
    del fields["0.reviewed"], fields["0.included"]
    answer = owner.post("/draft/done", **fields)
    assert answer.status_code == 200
    assert "[attributes.job]" not in shown(answer.text)


# -- registering ----------------------------------------------------------------------------------


def test_a_reviewed_draft_is_registered_and_a_taken_name_is_asked_about(
    place: World, owner: Person, drafted: dict[str, str]
) -> None:
    done = owner.post("/draft/done", **all_reviewed(drafted) | {"name": "wages"})
    assert done.status_code == 200, done.text
    form = fields_in(done.text)
    assert (form["name"], form["source"]) == ("wages", MESSY)
    saved = owner.post("/register", **form | {"records": str(RECORD), "budget": "3"})
    assert saved.headers.get("location") == "/dataset?name=wages", saved.text
    assert place.service.registration("wages").schema == schema_of(drafted | {"name": "wages"})
    # Once more under the same name, described otherwise: nothing is overwritten.
    again = fields_in(owner.post("/draft/done", **all_reviewed(drafted) | {"name": "wages"}).text)
    again |= {"records": str(RECORD), "description": "again"}
    asked = owner.post("/register", **again)
    assert asked.status_code == 409
    assert "is registered already, as version 1" in shown(asked.text)
    assert place.service.registration("wages").version == 1
    confirmed = owner.post("/register", **fields_in(asked.text))
    assert confirmed.status_code == 303
    assert place.service.registration("wages").version == 2


def test_a_schema_written_by_hand_is_checked_before_it_is_saved(owner: Person) -> None:
    schema = '[metric]\ncolumn = "a"\n[attributes.b]\nvalues = ["x"]'
    fields = {"name": "small", "source": "year/small.csv", "schema": schema}
    answer = owner.post("/register/check", **fields)
    said = shown(answer.text)
    assert answer.status_code == 200
    assert "column 'b': outside the declared domain in 1 row, for example 'y'" in said.lower()
    assert fields_in(answer.text).items() >= fields.items()
    fits = owner.post("/register/check", **fields | {"schema": schema.replace('"x"', '"x", "y"')})
    assert "The file fits this schema." in fits.text
