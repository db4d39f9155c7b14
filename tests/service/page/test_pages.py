"""The page over HTTP: who may open what, asking and owning by forms, what leaves."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import pcor
from pcor.detectors.lof import LOW_BAR
from pcor.service.app import create_app
from pcor.service.core import questions
from pcor.service.page import routes_exposure
from pcor.service.page.routes_files import FOLDER, TYPES
from tests.helpers.page_person import Person
from tests.helpers.page_routes import PAGES
from tests.helpers.service_world import (
    ANALYST,
    DATASET,
    ORDINARY,
    OTHER,
    OUTLIER,
    World,
    registration,
    world,
)
from tests.helpers.waiting import DEADLINE, until


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("page")
    with world(str(folder / "books.db"), folder) as made:
        yield made


@pytest.fixture(scope="module")
def analyst(place: World) -> Person:
    return Person(place, ANALYST)


@pytest.fixture(scope="module")
def owner(place: World) -> Person:
    return Person(place, "owner")


# -- who may open what ----------------------------------------------------------------------------

OPEN = {("GET", "/static/{name}"), ("GET", "/sign-in"), ("POST", "/sign-in"), ("POST", "/sign-out")}
ROLES = {"owner": "owner", "analyst": ANALYST, "auditor": "auditor"}


def routes(place: World) -> set[tuple[str, str]]:
    """Return every route of the page."""
    found = set()
    todo = [(route, "") for route in place.api.app.routes]  # type: ignore[attr-defined]
    while todo:
        route, _ = todo.pop()
        inner = getattr(route, "original_router", None)
        if inner is not None:
            todo += [(one, "") for one in inner.routes]
        elif not route.path.startswith(("/v1", "/openapi")):
            found |= {(method, route.path) for method in route.methods - {"HEAD"}}
    return found


def test_every_page_is_in_the_table(place: World) -> None:
    named = {(method, path.partition("?")[0]) for method, path, *_ in PAGES}
    assert named | OPEN == routes(place)


@pytest.mark.parametrize("role", [*ROLES, "nobody"])
@pytest.mark.parametrize(("method", "path", "fields", "allowed"), PAGES)
def test_a_role_opens_its_pages_and_no_other(
    place: World, role: str, method: str, path: str, fields: dict[str, str], allowed: str
) -> None:
    who = Person(place, ROLES.get(role))
    path = path.replace("{name}", "AAAAAAAAAAAAAAAAAAAA")
    if method == "POST":
        answer = who.post(path, **fields) if role != "nobody" else who.http.post(path, data=fields)
    else:
        answer = who.get(path)
    if role == "nobody":
        assert (answer.status_code, answer.headers["location"][:8]) == (303, "/sign-in")
    elif role in allowed.split():
        assert answer.status_code in (200, 303, 404, 422)
    else:
        assert answer.status_code == 403
        assert "Not for this key" in answer.text
    assert answer.status_code < 500


def test_a_part_of_a_page_is_not_replaced_by_the_way_in(place: World) -> None:
    answer = Person(place).get("/releases", headers={"HX-Request": "true"})
    assert answer.headers["hx-redirect"] == "/sign-in"
    assert answer.text == ""


def test_another_analysts_answer_is_as_if_it_were_not(place: World, analyst: Person) -> None:
    name = place.ask(draw=40).json()["id"]
    place.wait(name)
    assert analyst.get(f"/releases/{name}").status_code == 200
    other = Person(place, OTHER)
    for path in (f"/releases/{name}", f"/releases/{name}/certificate.json"):
        hidden, missing = other.get(path), other.get(path.replace(name, "A" * 20))
        assert hidden.status_code == missing.status_code == 404
        assert hidden.text == missing.text
    assert name not in other.get("/releases").text


def test_a_downloaded_certificate_names_the_day_and_the_entry_of_its_charge(
    place: World, analyst: Person
) -> None:
    name = place.ask(draw=47).json()["id"]
    place.wait(name)
    page = analyst.get(f"/releases/{name}/certificate.html").text
    charges = [e for e in place.service.ledger.entries(DATASET, ANALYST) if e.kind == "charge"]
    assert f"<td>{charges[-1].hash}</td>" in page
    assert f"<td>{charges[-1].at[:10]}</td>" in page
    assert charges[-1].at[10:] not in page


def test_a_plan_is_free_and_the_same_for_closed_and_missing_records(
    place: World, analyst: Person
) -> None:
    left = place.service.ledger.left(DATASET, ANALYST)
    said = []
    for record in ("3", "77777"):
        text = analyst.get(f"/ask?dataset={DATASET}&record={record}").text
        assert "Confirm and spend" not in text
        said.append(re.sub(rf'value="{record}"', "", text))
    assert said[0] == said[1]
    assert place.service.ledger.left(DATASET, ANALYST) == left


def test_confirming_twice_pays_once(place: World, analyst: Person) -> None:
    page = analyst.get(f"/ask?dataset={DATASET}&record={OUTLIER}&preset=small&draw=41").text
    fields = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', page))
    left = place.service.ledger.left(DATASET, ANALYST)
    sent = [analyst.http.post("/ask", data=fields) for _ in range(3)]
    assert {answer.status_code for answer in sent} == {303}
    assert len({answer.headers["location"] for answer in sent}) == 1
    assert left - place.service.ledger.left(DATASET, ANALYST) == pcor.public.accounting.exact(
        "0.05"
    )


def test_a_refusal_of_the_budget_is_a_page_that_says_by_how_much(place: World) -> None:
    place.send("owner", "PUT", "/v1/datasets/poor", json=registration(budget={"epsilon": "0.25"}))
    place.send("owner", "PUT", f"/v1/datasets/poor/allotments/{OTHER}", json={"epsilon": "0.12"})
    other = Person(place, OTHER)
    planned = other.get(f"/ask?dataset=poor&record={OUTLIER}&preset=large").text
    assert "short by 0.08" in planned
    assert "Confirm and spend" not in planned
    refused = other.post(
        "/ask", dataset="poor", record=str(OUTLIER), preset="large", draw="1", call="x"
    )
    assert refused.status_code == 403
    assert "short by 0.08" in refused.text


def test_the_plan_says_which_kind_of_promise_it_is(place: World, owner: Person) -> None:
    body = registration(detector="tail:share=0.05", guarantee="dp")
    refused = place.send("owner", "PUT", "/v1/datasets/pure", json=body)
    assert (refused.status_code, "needs a schema with an id" in refused.text) == (422, True)
    body["schema"]["dataset"]["positions"] = "public"
    assert place.send("owner", "PUT", "/v1/datasets/pure", json=body).status_code == 200
    pure = owner.get(f"/ask?dataset=pure&record={OUTLIER}").text
    assert "This is differential privacy for everyone but the record" in pure
    assert "OCDP" not in pure
    relaxed = owner.get(f"/ask?dataset={DATASET}&record={OUTLIER}&draw=50").text
    assert "relaxed guarantee OCDP, weaker than differential privacy" in relaxed
    name = place.ask("owner", dataset="pure").json()["id"]
    place.wait(name, "owner")
    assert (
        "(if not, this says nothing), then with a chance of at least 0.99"
        in owner.get(f"/releases/{name}").text
    )


def test_an_analyst_cannot_choose_an_epsilon_of_their_own(analyst: Person) -> None:
    fields = {"dataset": DATASET, "record": str(OUTLIER), "draw": "1", "call": "y"}
    refused = analyst.post("/ask", **fields, preset="huge", epsilon="3")
    assert refused.status_code == 422


# -- what leaves ----------------------------------------------------------------------------------


def test_every_page_carries_the_policy_that_runs_only_our_files(owner: Person) -> None:
    for _, path, *_ in [one for one in PAGES if one[0] == "GET" and "export" not in one[1]]:
        answer = owner.get(path.replace("{name}", "A" * 20))
        policy = answer.headers.get("content-security-policy", "")
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_no_page_has_a_script_or_a_style_of_its_own_or_names_another_host() -> None:
    for template in (FOLDER.parent / "templates").glob("*.html"):
        text = template.read_text()
        assert not re.search(r"<script(?! src=\"\{\{ address)|<style|\sstyle=|\son\w+=", text)
        assert not re.search(r"https?://|//\w", text)
        assert "| safe" not in text
        assert "|safe" not in text
    for name in ("page.css", "page.js", "pcor.svg"):
        text = (FOLDER / name).read_text().replace("http://www.w3.org/2000/svg", "")
        assert "http" not in text
        assert "@import" not in text


def test_our_files_are_served_and_nothing_beside_them(place: World) -> None:
    for name, kind in TYPES.items():
        answer = place.api.get(f"/static/{name}")
        assert (answer.status_code, answer.headers["content-type"]) == (200, kind)
        assert "immutable" in answer.headers["cache-control"]
    for name in ("../app.py", "..%2Fapp.py", "page.css/..", "%2e%2e/app.py", "nothing"):
        assert place.api.get(f"/static/{name}").status_code == 404


def test_an_answer_cannot_be_seen_on_the_page_before_its_moment(tmp_path: Path) -> None:
    now = [1_700_000_000.0]
    with world(
        str(tmp_path / "books.db"), tmp_path, clock=lambda: now[0], delay=100.0, tick=1.0
    ) as place:
        name = place.ask().json()["id"]
        one = Person(place, ANALYST)
        before = one.get(f"/releases/{name}")
        assert "is being looked at" in before.text
        assert "outlier" not in before.text
        assert one.get(f"/releases/{name}/certificate.json").status_code == 404
        until(lambda: place.moment(name) is not None)
        assert "is being looked at" in one.get(f"/releases/{name}").text
        now[0] += 101
        assert f"Record {OUTLIER} is an outlier" in one.get(f"/releases/{name}").text


def test_what_an_analyst_reads_is_made_without_looking_at_a_row(
    place: World, analyst: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = place.wait(place.ask(draw=45).json()["id"])

    def looked(*_: object) -> None:
        raise AssertionError("a page looked at the rows")

    monkeypatch.setattr(place.service.tables, "get", looked)
    question = f"/ask?dataset={DATASET}&record={OUTLIER}&preset=large"
    for path in ("/", "/releases", f"/releases/{done['id']}", question):
        answer = analyst.get(path)
        assert answer.status_code == 200
        assert "people.parquet" not in answer.text


def test_an_unexpected_failure_is_a_page_with_a_number_and_nothing_else(
    owner: Person, monkeypatch: pytest.MonkeyPatch
) -> None:

    def broken(*_: object) -> None:
        raise RuntimeError("row 17 has pay 400.5")

    monkeypatch.setattr(questions, "history", broken)
    answer = owner.get("/releases")
    assert answer.status_code == 500
    assert "400.5" not in answer.text
    assert re.search(r"<code>[0-9a-f]{16}</code>", answer.text)


def test_the_page_is_not_in_the_document_for_programs(place: World) -> None:
    paths = place.api.get("/openapi.json").json()["paths"]
    assert all(path.startswith("/v1") for path in paths)


def test_a_new_key_is_shown_once_and_opens_the_page(place: World, owner: Person) -> None:
    made = owner.post("/keys", name="once", role="auditor", days="2")
    token = re.search(r"pcor_[0-9a-f]{12}_[\w-]{43}", made.text)
    assert token is not None
    assert token[0] not in owner.get("/keys").text
    place.keys["once"] = token[0]
    assert Person(place, "once").get("/").headers["location"] == "/ledger"


def test_registering_by_the_form_is_what_the_api_would_have_registered(
    place: World, owner: Person
) -> None:
    form = owner.get(f"/register?name={DATASET}")
    assert form.status_code == 200
    body = registration()
    done = owner.post(
        "/register",
        name="formed",
        source=body["source"],
        schema=pcor.Schema.from_dict(body["schema"]).to_toml(),
        records=f"{OUTLIER}\n{ORDINARY}\n",
        detector=body["detector"],
        budget="5",
        search="auto",
        utility="population",
        accounting="tight",
        guarantee="ocdp",
        **body["presets"],
    )
    assert done.headers.get("location") == "/dataset?name=formed", done.text
    by_form = place.send("owner", "GET", "/v1/datasets/formed").json()
    by_api = place.send("owner", "GET", f"/v1/datasets/{DATASET}").json()
    assert by_form | {"name": DATASET} == by_api


@pytest.mark.parametrize(
    ("field", "text", "said"),
    [
        ("name", "a/b", "without /"),
        ("name", "", "give the dataset a name"),
        ("schema", "x = ", "not TOML"),
        ("source", "../secret.parquet", "inside the data folder"),
        ("small", "9", "presets must rise"),
        ("samples", "many", "whole number"),
        ("detector", "nobody", "unknown detector"),
        ("guarantee", "none", "guarantee"),
    ],
)
def test_what_is_wrong_with_a_registration_is_said_above_the_form(
    owner: Person, field: str, text: str, said: str
) -> None:
    body = registration()
    fields = {
        "name": "wrong",
        "source": body["source"],
        "schema": pcor.Schema.from_dict(body["schema"]).to_toml(),
        "records": "any",
        "detector": "lof",
        "search": "auto",
        "utility": "population",
        "accounting": "tight",
        "guarantee": "ocdp",
        **body["presets"],
    }
    answer = owner.post("/register", **fields | {field: text})
    assert answer.status_code == 422
    assert said in answer.text


def test_one_audit_at_a_time_and_it_is_written_to_the_log(place: World, owner: Person) -> None:
    fields = {"dataset": DATASET, "record": str(OUTLIER), "preset": "small"}
    assert routes_exposure._busy.acquire(timeout=DEADLINE)
    try:
        assert owner.post("/exposure", **fields).status_code == 429
    finally:
        routes_exposure._busy.release()
    before = json.dumps(place.send("owner", "GET", "/v1/audit").json())
    answer = owner.post("/exposure", **fields)
    assert "For record 17, a release under OCDP" in answer.text
    after = place.send("owner", "GET", "/v1/audit").json()["events"]
    assert before.count("exposure_audit") + 1 == json.dumps(after).count("exposure_audit")
    assert after[-1]["body"]["record"] == str(OUTLIER)


def test_an_abandoned_audit_ends(place: World) -> None:
    found = place.service.registration(DATASET)
    audit = routes_exposure.Audit(place.service, found, str(OUTLIER), "small")
    audit.abandoned.set()
    assert routes_exposure._busy.acquire(timeout=DEADLINE)
    audit.start()
    audit.join(DEADLINE)
    assert isinstance(audit.outcome, routes_exposure.AuditCancelled)
    assert routes_exposure._busy.acquire(blocking=False)
    routes_exposure._busy.release()


def test_a_fresh_application_serves_the_way_in(place: World) -> None:
    with type(place.api)(create_app(place.service.settings)) as api:
        assert "Your key" in api.get("/").text


# -- the record's own value -----------------------------------------------------------------------


def test_a_stored_answer_tells_no_value_once_the_owner_hides_it(place: World) -> None:
    """In JSON, on the page, in both certificates; under the old question and the same one anew."""
    told = registration(show_metric=True, budget={"epsilon": "2"})
    path = "/v1/datasets/hushed"
    assert place.send("owner", "PUT", path, json=told).status_code == 200
    share = {"epsilon": "1"}
    place.send("owner", "PUT", f"{path}/allotments/{ANALYST}", json=share)
    first = place.ask(dataset="hushed", call="told").json()["id"]
    assert place.wait(first)["release"]["metric_value"] == 400.5
    someone = Person(place, ANALYST)
    assert "400.5" in someone.get(f"/releases/{first}").text
    left = place.service.ledger.left("hushed", ANALYST)

    hidden = told | {"show_metric": False, "budget": None}
    assert place.send("owner", "PUT", path, json=hidden).status_code == 200
    again = place.ask(dataset="hushed", call="anew").json()["id"]
    assert place.wait(again)["release"]["record"] == OUTLIER
    assert place.service.ledger.left("hushed", ANALYST) == left  # answered from the store
    for name in {first, again}:
        seen = [
            place.send(ANALYST, "GET", f"/v1/releases/{name}").text,
            place.ask(dataset="hushed", call="told").text,
            *(
                someone.get(f"/releases/{name}{part}").text
                for part in ("", "/certificate.json", "/certificate.html")
            ),
        ]
        for text in seen:
            assert f"Record {OUTLIER} is an outlier by pay" in text
            assert "400.5" not in text
            assert "metric_value" not in text


def test_a_plan_says_how_low_the_bar_of_lof_is(place: World, owner: Person) -> None:
    body = registration(detector="lof", budget={"epsilon": "1"})
    assert place.send("owner", "PUT", "/v1/datasets/low", json=body).status_code == 200
    asked = {"dataset": "low", "record": OUTLIER, "preset": "small"}
    planned = place.send("owner", "POST", "/v1/plans", json=asked).json()
    assert planned["note"] == LOW_BAR
    assert LOW_BAR in planned["text"]
    page = owner.get("/ask", params=asked).text
    assert f"{LOW_BAR}." in html.unescape(page)
    other = owner.get("/ask", params=asked | {"dataset": DATASET}).text
    assert "low bar" not in other
