"""What an owner registers, sets and takes back: checked before it is done, by either interface."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.page_person import Person
from tests.helpers.service_world import (
    ABSENT,
    ANALYST,
    CLOSED,
    DATASET,
    ORDINARY,
    OUTLIER,
    SCHEMA,
    World,
    registration,
    world,
)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[World]:
    with world(str(tmp_path / "books.db"), tmp_path) as made:
        yield made


@pytest.fixture
def owner(place: World) -> Person:
    return Person(place, "owner")


def put(place: World, name: str, **changes: Any) -> Any:
    """Register over HTTP."""
    return place.send("owner", "PUT", f"/v1/datasets/{name}", json=registration(**changes))


def form(**changes: str) -> dict[str, str]:
    """Return the fields of the page's form, as it is filled in for a new dataset."""
    body = registration()
    return {
        "name": DATASET,
        "source": body["source"],
        "schema": SCHEMA.to_toml(),
        "records": f"{OUTLIER}",
        "detector": body["detector"],
        "search": "auto",
        "utility": "population",
        "accounting": "tight",
        "guarantee": "ocdp",
        "replaces": "",
        **body["presets"],
    } | changes


def version(place: World) -> int:
    """Return the newest version of the dataset."""
    return int(place.send("owner", "GET", f"/v1/datasets/{DATASET}").json()["version"])


def budget(place: World, name: str = DATASET) -> dict[str, Any]:
    """Return the books of a dataset."""
    found: dict[str, Any] = place.send("owner", "GET", f"/v1/datasets/{name}/budget").json()
    return found


# -- a name that is taken -------------------------------------------------------------------------


def test_registering_a_name_that_is_taken_is_said_and_confirmed_first(
    place: World, owner: Person
) -> None:
    asked = owner.post("/register", **form())
    assert asked.status_code == 409
    assert "is registered already" in asked.text
    assert "version 2" in asked.text
    assert version(place) == 1
    replaces = re.search(r'name="replaces" value="([0-9]*)"', asked.text)
    assert replaces is not None
    done = owner.post("/register", **form(replaces=replaces[1]))
    assert done.headers.get("location") == f"/dataset?name={DATASET}", done.text
    assert version(place) == 2


def test_a_confirmation_holds_for_the_version_that_was_confirmed(
    place: World, owner: Person
) -> None:
    put(place, DATASET, description="by somebody else, meanwhile")
    assert owner.post("/register", **form(replaces="1")).status_code == 409
    assert version(place) == 2


def test_the_form_for_a_new_version_needs_no_second_look(place: World, owner: Person) -> None:
    shown = owner.get(f"/register?name={DATASET}").text
    assert 'name="replaces" value="1"' in shown
    done = owner.post("/register", **form(replaces="1", known="yes"))
    assert done.status_code == 303
    assert version(place) == 2


def test_over_http_a_registration_may_say_what_it_replaces(place: World) -> None:
    for replaces, status in ((0, 422), (1, 200), (1, 422)):
        answer = put(place, DATASET, replaces=replaces, description=f"after {version(place)}")
        assert answer.status_code == status, answer.text
    assert "version 2" in answer.json()["detail"]
    assert put(place, "brand-new", replaces=0).status_code == 200


# -- the cap --------------------------------------------------------------------------------------


@pytest.mark.parametrize("interface", ["page", "api"])
def test_a_new_version_keeps_the_cap_and_the_delta_unless_they_are_named(
    place: World, owner: Person, interface: str
) -> None:
    ceiling = {"epsilon": "5", "cap": "0.5", "delta": "0.001"}
    place.send("owner", "PUT", f"/v1/datasets/{DATASET}/budget", json=ceiling)
    if interface == "page":
        done = owner.post("/register", **form(replaces="1", budget="4", cap=""))
    else:
        done = put(place, DATASET, budget={"epsilon": "4"}, description="new")
    assert done.status_code in (200, 303), done.text
    books = budget(place)
    assert (books["epsilon"], books["cap"], books["delta"]) == ("4", "0.5", "0.001")


def test_a_cap_without_a_budget_is_not_passed_over(place: World, owner: Person) -> None:
    refused = owner.post("/register", **form(replaces="1", cap="0.5"))
    assert refused.status_code == 422
    assert "epsilon of the budget" in refused.text
    assert version(place) == 1


def test_a_cap_ends_when_that_is_said(place: World, owner: Person) -> None:
    path = f"/v1/datasets/{DATASET}/budget"
    for _ in range(2):
        place.send("owner", "PUT", path, json={"epsilon": "5", "cap": "0.5"})
        assert place.send("owner", "PUT", path, json={"epsilon": "4"}).json()["cap"] == "0.5"
        gone = place.send("owner", "PUT", path, json={"epsilon": "4", "cap": None})
        assert gone.json()["cap"] is None
    place.send("owner", "PUT", path, json={"epsilon": "5", "cap": "0.5"})
    # On the page the field holds the cap; who empties it means it.
    assert owner.post("/dataset/budget", name=DATASET, epsilon="4", cap="").status_code == 303
    assert budget(place)["cap"] is None


def test_an_allotment_keeps_its_delta_unless_it_is_named(place: World) -> None:
    path = f"/v1/datasets/{DATASET}/allotments/{ANALYST}"
    place.send("owner", "PUT", path, json={"epsilon": "1", "delta": "0.001"})
    (own,) = (
        one
        for one in place.send("owner", "PUT", path, json={"epsilon": "2"}).json()["allotments"]
        if one["analyst"] == ANALYST
    )
    assert (own["epsilon"], own["delta"]) == ("2", "0.001")


@pytest.mark.parametrize("interface", ["page", "api"])
def test_a_preset_above_the_cap_is_refused(place: World, owner: Person, interface: str) -> None:
    if interface == "page":
        done = owner.post("/register", **form(name="capped", budget="5", cap="0.15"))
    else:
        done = put(place, "capped", budget={"epsilon": "5", "cap": "0.15"})
    assert done.status_code == 422
    assert "preset large costs 0.2, above the cap of 0.15 on one release" in done.text
    assert place.send("owner", "GET", "/v1/datasets/capped").status_code == 404


def test_a_preset_above_the_cap_that_stays_is_refused(place: World) -> None:
    path = f"/v1/datasets/{DATASET}/budget"
    place.send("owner", "PUT", path, json={"epsilon": "5", "cap": "0.2"})
    presets = {"small": "0.1", "medium": "0.3", "large": "0.4"}
    refused = place.send(
        "owner", "PUT", f"/v1/datasets/{DATASET}", json=_without_budget(presets=presets)
    )
    assert refused.status_code == 422
    assert "preset medium costs 0.3" in refused.json()["detail"]


def test_a_cap_below_a_preset_is_refused(place: World) -> None:
    refused = place.send(
        "owner", "PUT", f"/v1/datasets/{DATASET}/budget", json={"epsilon": "5", "cap": "0.07"}
    )
    assert refused.status_code == 422
    assert "preset medium costs 0.1" in refused.json()["detail"]
    assert budget(place)["cap"] is None


def _without_budget(**changes: Any) -> dict[str, Any]:
    body = registration(**changes)
    del body["budget"]
    return body


# -- open records ---------------------------------------------------------------------------------


@pytest.mark.parametrize("interface", ["page", "api"])
def test_open_records_that_are_not_in_the_file_are_refused(
    place: World, owner: Person, interface: str
) -> None:
    records = [OUTLIER, ABSENT, "C-17", ORDINARY]
    if interface == "page":
        lines = "\n".join(map(str, records))
        done = owner.post("/register", **form(name="missing", records=lines))
    else:
        done = put(place, "missing", records=records)
    assert done.status_code == 422
    assert "9999, C-17" in done.text
    assert place.send("owner", "GET", "/v1/datasets/missing").status_code == 404


def test_an_id_that_names_two_rows_cannot_be_opened(place: World) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    from tests.helpers.service_world import columns

    ids = [f"p{number // 2 if number < 4 else number}" for number in range(120)]
    folder = place.service.settings.data
    parquet.write_table(pa.table(columns() | {"who": ids}), folder / "twice.parquet")
    schema = SCHEMA.to_dict() | {"dataset": {"name": DATASET, "id": "who"}}
    given = {"schema": schema, "source": "twice.parquet"}
    refused = put(place, "twice", records=["p0", "p17"], **given)
    assert refused.status_code == 422
    assert "p0" in refused.json()["detail"]
    assert put(place, "twice", records=["p17", "p119"], **given).status_code == 200


def test_what_an_analyst_may_ask_does_not_say_which_records_exist(place: World) -> None:
    closed, missing = place.ask(record=CLOSED), place.ask(record=ABSENT)
    assert closed.status_code == 404
    assert closed.content == missing.content


# -- keys -----------------------------------------------------------------------------------------


def test_taking_back_a_key_is_asked_first(place: World, owner: Person) -> None:
    (ana,) = (one for one in keys(place) if one["name"] == ANALYST)
    listed = owner.get("/keys").text
    assert 'action="/keys/revoke"' not in listed
    assert f"/keys/revoke?id={ana['id']}" in listed
    asked = owner.get(f"/keys/revoke?id={ana['id']}")
    assert asked.status_code == 200
    assert "Take back the key of ana" in asked.text
    assert f'name="id" value="{ana["id"]}"' in asked.text
    assert place.send(ANALYST, "GET", "/v1/me").status_code == 200  # looking does nothing
    assert owner.post("/keys/revoke", id=ana["id"]).status_code == 303
    assert place.send(ANALYST, "GET", "/v1/me").status_code == 401


def test_a_key_that_does_not_exist_cannot_be_taken_back(owner: Person) -> None:
    assert owner.get("/keys/revoke?id=000000000000").status_code == 404


def keys(place: World) -> list[dict[str, Any]]:
    """Return what is known of all keys."""
    found: list[dict[str, Any]] = place.send("owner", "GET", "/v1/keys").json()["keys"]
    return found


def test_a_key_that_was_taken_back_leads_to_the_way_in_and_says_why(place: World) -> None:
    ana = Person(place, ANALYST)
    (known,) = (one for one in keys(place) if one["name"] == ANALYST)
    place.send("owner", "DELETE", f"/v1/keys/{known['id']}")
    gone = ana.get("/releases")
    assert (gone.status_code, gone.headers["location"]) == (303, "/sign-in?back=%2Freleases")
    assert "was taken back" in ana.get(gone.headers["location"]).text


def test_a_key_that_expired_and_a_session_that_ended_say_so(
    place: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    ana = Person(place, ANALYST)
    now, hour = place.service.now, 3_600_000
    monkeypatch.setattr(place.service, "now", lambda: now() + 9 * hour)
    assert "session ended after 8 hours" in ana.get("/sign-in").text
    monkeypatch.setattr(place.service, "now", lambda: now() + 20 * hour)
    again = Person(place, ANALYST)
    monkeypatch.setattr(place.service, "now", lambda: now() + 25 * hour)  # keys are for a day
    assert "has expired" in again.get("/sign-in").text


def test_who_was_never_signed_in_is_told_nothing(place: World) -> None:
    nobody = Person(place)
    assert "notice" not in nobody.get("/sign-in").text
    nobody.http.cookies.set("pcor_session", "made-up")
    assert "notice" not in nobody.get("/sign-in").text


# -- addresses that are none ----------------------------------------------------------------------

BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}


def test_an_unknown_address_is_a_page_for_a_browser(place: World) -> None:
    for who in (None, ANALYST):
        found = Person(place, who).get("/nothing-here", headers=BROWSER)
        assert found.status_code == 404
        assert found.headers["content-type"].startswith("text/html")
        assert "default-src 'none'" in found.headers["content-security-policy"]
        assert "There is nothing at this address" in found.text
    wrong = place.api.delete("/keys", headers=BROWSER)
    assert (wrong.status_code, wrong.headers["content-type"][:9]) == (405, "text/html")


@pytest.mark.parametrize(
    ("path", "headers"),
    [("/nothing-here", {}), ("/nothing-here", {"Accept": "application/json"}), ("/v1/x", BROWSER)],
)
def test_an_unknown_address_is_a_problem_for_a_program(
    place: World, path: str, headers: dict[str, str]
) -> None:
    found = place.api.get(path, headers=headers)
    assert found.status_code == 404
    assert found.headers["content-type"] == "application/problem+json"
    assert found.json()["kind"] == "not_found"


def test_a_draft_is_not_registered(place: World) -> None:
    """Its schema was read off the data, also where it is sent as what a draft declares."""
    refused = put(place, "drafted", schema=SCHEMA.marked(["attributes.job"]).to_dict())
    assert refused.status_code == 422
    assert "is a draft: attributes.job were read off the data" in refused.text
