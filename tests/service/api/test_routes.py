"""The service over HTTP: asking, repeating, refusing; who may do what."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from pcor.public import wording
from pcor.releasing.certificate import JSON_SCHEMA
from pcor.service.core.limits import TokenBuckets
from pcor.service.core.service import GUESSES
from tests.helpers.postgres import postgres
from tests.helpers.service_routes import ROUTES
from tests.helpers.service_world import (
    ABSENT,
    ANALYST,
    CLOSED,
    DATASET,
    ORDINARY,
    OTHER,
    OUTLIER,
    SCHEMA,
    World,
    registration,
    world,
)


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def place(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("service")
    url = str(folder / "books.db")
    if request.param == "postgresql":
        url = postgres().new_database()
    with world(url, folder) as made:
        yield made


@pytest.fixture(scope="module")
def one_place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("service")
    with world(str(folder / "books.db"), folder) as made:
        yield made


# -- asking ---------------------------------------------------------------------------------------


def test_a_release_is_accepted_and_its_certificate_appears(place: World) -> None:
    asked = place.ask(draw=1)
    assert asked.status_code == 202
    assert asked.json()["state"] == "running"
    assert asked.headers["location"] == f"/v1/releases/{asked.json()['id']}"
    done = place.wait(asked.json()["id"])
    jsonschema.validate(done["release"], json.loads(JSON_SCHEMA.read_text()))
    assert done["release"]["record"] == OUTLIER
    assert done["release"]["private"] is True


def test_the_value_of_a_record_is_told_only_where_the_owner_says_so(place: World) -> None:
    by_default = place.wait(place.ask(draw=4).json()["id"])["release"]
    assert "metric_value" not in by_default
    assert f"Record {OUTLIER} is an outlier by pay" in by_default["sentence"]
    body = registration(show_metric=True, budget={"epsilon": "2"})
    assert place.send("owner", "PUT", "/v1/datasets/shown", json=body).status_code == 200
    share = f"/v1/datasets/shown/allotments/{ANALYST}"
    assert place.send("owner", "PUT", share, json={"epsilon": "1"}).status_code == 200
    told = place.wait(place.ask(dataset="shown").json()["id"])["release"]
    value = wording.amount(told["metric_value"], None)
    assert f"Record {OUTLIER} ({value}) is an outlier by pay" in told["sentence"]
    assert (
        place.send(
            "owner", "PUT", "/v1/datasets/odd", json=body | {"show_metric": "yes"}
        ).status_code
        == 422
    )


def test_the_same_key_and_body_give_the_stored_answer(place: World) -> None:
    first = place.ask(call="repeat", draw=2)
    done = place.wait(first.json()["id"])
    left = place.service.ledger.left(DATASET, ANALYST)
    for _ in range(3):
        again = place.ask(call="repeat", draw=2)
        assert (again.status_code, again.json()) == (200, done)
    assert place.service.ledger.left(DATASET, ANALYST) == left


def test_a_quoted_key_is_the_same_key(place: World) -> None:
    done = place.wait(place.ask(call="quoted", draw=3).json()["id"])
    assert place.ask(call='"quoted"', draw=3).json() == done


def test_the_same_key_with_another_body_is_refused(place: World) -> None:
    place.wait(place.ask(call="bound", draw=4).json()["id"])
    for changed in ({"draw": 5}, {"preset": "small"}, {"record": ORDINARY}, {"dataset": "other"}):
        refused = place.ask(call="bound", **{"draw": 4} | changed)
        assert (refused.status_code, refused.json()["kind"]) == (422, "key_conflict")


def test_the_same_key_while_it_runs_is_told_so(place: World) -> None:
    first = place.ask(call="running", draw=6)
    second = place.ask(call="running", draw=6)
    assert (second.status_code, second.json()["kind"]) == (409, "still_running")
    assert second.json()["release"] == first.json()["id"]
    assert int(second.headers["retry-after"]) >= 1


@pytest.mark.parametrize("key", [None, "", "  ", '""', "x" * 201, "tab\there", "\xe9"])
def test_a_missing_or_odd_key_is_refused(place: World, key: str | None) -> None:
    headers = {} if key is None else {"Idempotency-Key": key.encode("latin-1")}
    body = {"dataset": DATASET, "record": OUTLIER, "preset": "small"}
    refused = place.send(ANALYST, "POST", "/v1/releases", json=body, headers=headers)
    assert (refused.status_code, refused.json()["kind"]) == (400, "idempotency_key")


def test_the_same_question_under_another_key_is_free_and_the_same(place: World) -> None:
    first = place.wait(place.ask(draw=7).json()["id"])
    left = place.service.ledger.left(DATASET, ANALYST)
    again = place.ask(draw=7)
    assert (again.status_code, again.json()) == (200, first)
    assert place.service.ledger.left(DATASET, ANALYST) == left


def test_the_spelling_of_a_question_does_not_matter(place: World) -> None:
    first = place.wait(place.ask(draw=8, preset="small").json()["id"])
    for spelled in ({"epsilon": "1/20"}, {"epsilon": 0.05}, {"record": str(OUTLIER)}):
        cost = {"preset": None} if "epsilon" in spelled else {"preset": "small"}
        assert place.ask(draw=8, **cost | spelled).json() == first


def test_each_analyst_pays_and_draws_alone(place: World) -> None:
    mine = place.wait(place.ask(draw=9).json()["id"])
    theirs = place.wait(place.ask(OTHER, draw=9).json()["id"], OTHER)
    assert mine["id"] != theirs["id"]


def test_the_keys_of_two_analysts_do_not_meet(place: World) -> None:
    mine = place.ask(call="shared", draw=10)
    theirs = place.ask(OTHER, call="shared", draw=11)
    assert (mine.status_code, theirs.status_code) == (202, 202)


# -- records --------------------------------------------------------------------------------------


@pytest.mark.parametrize("search", ["direct", "uniform", "breadth_first", "widest_first"])
def test_an_absent_record_is_answered_like_one_that_is_an_outlier_nowhere(
    place: World, search: str
) -> None:
    name = f"open-{search}"
    samples = None if search == "direct" else 5
    place.send(
        "owner",
        "PUT",
        f"/v1/datasets/{name}",
        json=registration(records="any", budget={"epsilon": "2"}, search=search, samples=samples),
    )
    place.send("owner", "PUT", f"/v1/datasets/{name}/allotments/{ANALYST}", json={"epsilon": "2"})
    answers = []
    for record in (ABSENT, ORDINARY, "nobody"):
        asked = place.ask(dataset=name, record=record)
        assert asked.status_code == 202
        done = place.wait(asked.json()["id"])
        assert done["release"] is None
        answers.append(done["error"])
    assert answers[0] == answers[1] == answers[2]
    assert answers[0]["kind"] == "no_valid_context"
    assert "paid for" in answers[0]["detail"]


def test_a_closed_record_and_one_that_does_not_exist_are_refused_alike(place: World) -> None:
    closed, missing = place.ask(record=CLOSED), place.ask(record=77_777)
    assert closed.status_code == 404
    assert closed.content == missing.content


# -- the budget -----------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", ["0.0499999", "1e-30"])
def test_an_analyst_cannot_buy_more_releases_than_the_smallest_preset_allows(
    place: World, epsilon: str
) -> None:
    # Each release names a valid context, and the relaxed guarantee does not count that in epsilon.
    refused = place.ask(preset=None, epsilon=epsilon, draw=21)
    assert refused.status_code == 422
    assert "from 0.05 to 0.2" in refused.json()["detail"]
    assert place.ask("owner", preset=None, epsilon=epsilon, draw=21).status_code == 202


def test_an_analyst_cannot_go_above_the_largest_preset(place: World) -> None:
    refused = place.ask(preset=None, epsilon="0.2000001")
    assert refused.status_code == 422
    assert "0.2" in refused.json()["detail"]
    assert place.ask(preset=None, epsilon="0.2", draw=20).status_code == 202


def test_a_refusal_says_asked_left_and_short_by(place: World) -> None:
    body = registration(budget={"epsilon": "0.25"})
    assert place.send("owner", "PUT", "/v1/datasets/poor", json=body).status_code == 200
    place.send("owner", "PUT", f"/v1/datasets/poor/allotments/{ANALYST}", json={"epsilon": "1"})
    assert place.ask(dataset="poor", preset="large").status_code == 202
    refused = place.ask(dataset="poor", call="poor", preset="medium")
    assert refused.status_code == 403
    said = refused.json()
    assert (said["asked"], said["left"], said["short_by"]) == ("0.1", "0.05", "0.05")
    place.send("owner", "PUT", "/v1/datasets/poor/budget", json={"epsilon": "1"})
    assert place.ask(dataset="poor", call="poor", preset="medium").status_code == 202


def _refused_for_now(place: World, name: str) -> None:
    """Register a dataset that cannot pay, and ask under the key ``early-NAME``."""
    body = registration(budget={"epsilon": "0.01"})
    place.send("owner", "PUT", f"/v1/datasets/{name}", json=body)
    place.send("owner", "PUT", f"/v1/datasets/{name}/allotments/{ANALYST}", json={"epsilon": "2"})
    assert place.ask(dataset=name, call=f"early-{name}", preset="large").status_code == 403


@pytest.mark.parametrize(
    ("name", "stricter", "status"),
    [
        ("closed-since", {"records": [ORDINARY]}, 404),
        ("dearer-since", {"presets": {"small": "0.05", "medium": "0.06", "large": "0.07"}}, 422),
    ],
)
def test_what_was_refused_is_judged_by_the_newest_registration(
    place: World, name: str, stricter: dict[str, Any], status: int
) -> None:
    _refused_for_now(place, name)
    newer = registration(budget={"epsilon": "2"}, **stricter)
    assert place.send("owner", "PUT", f"/v1/datasets/{name}", json=newer).status_code == 200
    late = place.ask(dataset=name, call=f"early-{name}", preset="large")
    assert late.status_code == status
    assert place.service.ledger.left(name) == 2


@pytest.mark.parametrize("call", ["the same", "another"])
def test_what_was_refused_long_ago_is_answered_as_soon_as_anything_else(
    place: World, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"raised-{call}"
    _refused_for_now(place, name)
    place.send("owner", "PUT", f"/v1/datasets/{name}/budget", json={"epsilon": "2"})
    now = place.service.now
    monkeypatch.setattr(place.service, "now", lambda: now() + 50_000_000)  # 14 hours later
    again = place.ask(dataset=name, call=f"early-{name}" if call == "the same" else None)
    assert again.status_code == (422 if call == "the same" else 202)  # it was another preset
    given = {"call": f"early-{name}"} if call == "the same" else {}
    again = place.ask(dataset=name, preset="large", **given)
    assert again.status_code == 202
    assert int(again.headers["retry-after"]) <= place.service.settings.delay + 1


def test_only_who_could_pay_hears_what_is_left_of_the_budget_of_all(place: World) -> None:
    place.send("owner", "PUT", "/v1/datasets/shared", json=registration(budget={"epsilon": "0.15"}))
    for name, share in ((ANALYST, "0.06"), (OTHER, "1")):
        path = f"/v1/datasets/shared/allotments/{name}"
        place.send("owner", "PUT", path, json={"epsilon": share})
    for name, left in ((ANALYST, "0.06"), (OTHER, "0.15")):
        refused = place.ask(name, dataset="shared", preset="large")
        assert (refused.status_code, refused.json()["left"]) == (403, left)


def test_a_name_that_no_dataset_can_have_is_unknown_on_either_database(place: World) -> None:
    for name in ("a\x00b", "\x00", "line\nbreak"):
        assert place.ask(dataset=name).status_code == 404


def test_bytes_that_are_no_text_name_no_dataset(place: World) -> None:
    body = registration(budget={"epsilon": "2"})
    refused = place.send("owner", "PUT", "/v1/datasets/%ED%A0%80", json=body)
    assert refused.status_code == 422


def test_the_plan_is_free_and_says_what_is_left(place: World) -> None:
    before = place.service.ledger.left(DATASET, ANALYST)
    body = {"dataset": DATASET, "record": OUTLIER, "preset": "large"}
    planned = place.send(ANALYST, "POST", "/v1/plans", json=body).json()
    assert planned["epsilon_exact"] == "0.2"
    assert "Relaxed guarantee" in planned["promise"]["text"]
    assert planned["budget"]["about_releases_left"]["large"] >= 1
    assert place.service.ledger.left(DATASET, ANALYST) == before


def test_an_analyst_sees_what_is_left_and_no_more_of_the_books(place: World) -> None:
    seen = place.send(ANALYST, "GET", f"/v1/datasets/{DATASET}/budget").json()
    assert set(seen) == {"dataset", "left", "about_releases_left"}


# -- what is not told -----------------------------------------------------------------------------


FORBIDDEN = ("population", "count", "utility_value", "elapsed", "duration", "took", "shown", "rows")


def names(content: Any) -> Iterator[str]:
    """Yield every name in a JSON value."""
    if isinstance(content, dict):
        for name, value in content.items():
            yield name
            yield from names(value)
    elif isinstance(content, list):
        for value in content:
            yield from names(value)


def test_nothing_an_analyst_can_read_has_a_count_or_a_time_of_a_search(place: World) -> None:
    done = place.wait(place.ask(draw=30).json()["id"])
    paths = ["/v1/releases", "/v1/datasets", f"/v1/datasets/{DATASET}", "/v1/me"]
    seen = [done, *(place.send(ANALYST, "GET", path).json() for path in paths)]
    for content in seen:
        assert not set(names(content)) & set(FORBIDDEN)
    assert "source" not in seen[3]


def test_another_analysts_release_is_as_if_it_were_not(place: World) -> None:
    name = place.ask(draw=31).json()["id"]
    hidden = place.send(OTHER, "GET", f"/v1/releases/{name}")
    missing = place.send(OTHER, "GET", "/v1/releases/AAAAAAAAAAAAAAAAAAAA")
    assert hidden.status_code == 404
    assert hidden.content == missing.content


def test_history_is_ones_own(place: World) -> None:
    for who in (ANALYST, OTHER):
        place.wait(place.ask(who, draw=32).json()["id"], who)
    whose = {
        who: {one["analyst"] for one in place.send(who, "GET", "/v1/releases").json()["releases"]}
        for who in (ANALYST, OTHER, "owner")
    }
    assert whose[ANALYST] == {ANALYST}
    assert whose[OTHER] == {OTHER}
    assert whose["owner"] >= {ANALYST, OTHER}


def test_a_dataset_without_an_allotment_is_as_if_it_were_not(place: World) -> None:
    place.send("owner", "PUT", "/v1/datasets/secret", json=registration())
    for name in ("secret", "no-such"):
        assert place.send(OTHER, "GET", f"/v1/datasets/{name}").status_code == 404
    hidden, missing = place.ask(OTHER, dataset="secret"), place.ask(OTHER, dataset="no-such")
    assert hidden.status_code == 404
    assert hidden.content == missing.content
    listed = place.send(OTHER, "GET", "/v1/datasets").json()["datasets"]
    assert "secret" not in {one["name"] for one in listed}


# -- role x route ---------------------------------------------------------------------------------

WHO = {"owner": "owner", "analyst": ANALYST, "auditor": "auditor", "nobody": None}


def test_every_route_is_in_the_table(one_place: World) -> None:
    document = one_place.api.get("/openapi.json").json()
    described = {
        (method.upper(), path) for path, methods in document["paths"].items() for method in methods
    }
    assert {(method, path) for method, path, *_ in ROUTES} == {
        one for one in described if one[1].startswith("/v1")
    }


@pytest.mark.parametrize("role", WHO)
@pytest.mark.parametrize(
    ("method", "path", "body", "allowed"), ROUTES, ids=lambda value: str(value)[:40]
)
def test_a_role_reaches_its_routes_and_no_other(
    one_place: World, role: str, method: str, path: str, body: Any, allowed: str
) -> None:
    if "{name}" in path:
        names_ = {"keys": "000000000000", "releases": "AAAAAAAAAAAAAAAAAAAA"}
        path = path.replace("{name}", names_.get(path.split("/")[2], DATASET))
    path = path.replace("{analyst}", OTHER)  # who asks nothing in this table
    given = {} if body is None else {"json": body}
    one_place.service.guesses = TokenBuckets(*GUESSES)
    answer = one_place.send(
        WHO[role], method, path, headers={"Idempotency-Key": f"role-{role}"}, **given
    )
    if role in allowed.split():
        # An id that does not exist is not found, which only those who may ask are told.
        assert answer.status_code in ((404,) if "AAAA" in path or "0000" in path else SUCCESS)
    else:
        assert answer.status_code == (401 if role == "nobody" else 403)
        assert answer.headers["content-type"] == "application/problem+json"


SUCCESS = (200, 201, 202)


# -- keys -----------------------------------------------------------------------------------------


def test_a_key_is_shown_once_and_kept_as_a_hash(place: World) -> None:
    made = place.send("owner", "POST", "/v1/keys", json={"role": "analyst", "name": "cy"}).json()
    listed = place.send("owner", "GET", "/v1/keys")
    assert made["key"] not in listed.text
    assert made["id"] in listed.text
    secret = made["key"].split("_", 2)[2]
    entries = place.send("owner", "GET", "/v1/audit?limit=1000").text
    assert secret not in entries


def test_a_revoked_key_opens_nothing_from_then_on(place: World) -> None:
    made = place.send("owner", "POST", "/v1/keys", json={"role": "owner", "name": "di"}).json()
    place.keys["di"] = made["key"]
    assert place.send("di", "GET", "/v1/keys").status_code == 200
    assert place.send("owner", "DELETE", f"/v1/keys/{made['id']}").json()["revoked"]
    assert place.send("di", "GET", "/v1/keys").status_code == 401


@pytest.mark.parametrize(
    "token", ["", "pcor", "pcor_", "pcor__", "pcor_x_y", "x" * 5000, "pcor_' OR 1=1 --_x"]
)
def test_what_is_not_a_key_gets_one_answer(place: World, token: str) -> None:
    place.service.guesses = TokenBuckets(*GUESSES)
    header = {"Authorization": f"Bearer {token}"}
    answer = place.api.get("/v1/me", headers=header)
    assert (answer.status_code, answer.json()["kind"]) == (401, "not_authenticated")
    assert answer.headers["www-authenticate"] == "Bearer"


def test_a_wrong_secret_with_a_real_id_is_refused(place: World) -> None:
    place.service.guesses = TokenBuckets(*GUESSES)
    token = place.keys[ANALYST][:-1] + ("A" if place.keys[ANALYST][-1] != "A" else "B")
    assert place.api.get("/v1/me", headers={"Authorization": f"Bearer {token}"}).status_code == 401


def test_nobody_else_can_be_called_owner(place: World) -> None:
    body = {"role": "analyst", "name": "owner"}
    assert place.send("owner", "POST", "/v1/keys", json=body).status_code == 422


# -- books ----------------------------------------------------------------------------------------


def test_the_books_and_the_audit_log_verify(place: World) -> None:
    for path in ("/v1/ledger/verification", "/v1/audit/verification"):
        assert place.send("auditor", "GET", path).json()["ok"] is True


def test_the_export_is_the_whole_ledger(place: World) -> None:
    exported = place.send("auditor", "GET", "/v1/ledger/export").text.splitlines()
    assert [json.loads(line) for line in exported] == [
        entry.to_dict() for entry in place.service.ledger.entries()
    ]


def test_metrics_count_and_time_nothing(place: World) -> None:
    place.wait(place.ask(call="counted").json()["id"])
    text = place.send("auditor", "GET", "/v1/metrics").text
    assert 'pcor_ledger_entries_total{kind="charge"}' in text
    assert not any(word in text for word in ("seconds", "duration", "latency", "bucket"))


def test_a_dataset_too_large_for_dp_is_registered_with_a_larger_limit(place: World) -> None:
    declared = SCHEMA.to_dict()
    name = next(iter(declared["attributes"]))
    declared["attributes"][name]["values"] += [f"more {n}" for n in range(40)]
    declared["dataset"]["positions"] = "public"
    body = registration(schema=declared, detector="tail", guarantee="dp", budget=None)
    refused = place.send("owner", "PUT", "/v1/datasets/wide", json=body)
    assert refused.json()["kind"] == "too_large"
    assert "register it with a larger limit" in refused.json()["detail"]
    assert not any(word in refused.json()["detail"] for word in ("limit=", "--limit", "widest"))
    taken = place.send("owner", "PUT", "/v1/datasets/wide", json=body | {"limit": 1 << 50})
    assert taken.status_code == 200
    assert taken.json()["options"]["limit"] == 1 << 50


def test_registering_the_same_again_changes_nothing(place: World) -> None:
    first = place.send("owner", "PUT", f"/v1/datasets/{DATASET}", json=registration()).json()
    again = place.send("owner", "PUT", f"/v1/datasets/{DATASET}", json=registration()).json()
    assert first == again


def test_a_new_version_keeps_the_budget_and_old_answers(place: World, tmp_path: Path) -> None:
    del tmp_path
    body = registration(budget={"epsilon": "2"})
    place.send("owner", "PUT", "/v1/datasets/aging", json=body)
    place.send("owner", "PUT", f"/v1/datasets/aging/allotments/{ANALYST}", json={"epsilon": "2"})
    first = place.wait(place.ask(dataset="aging", call="old").json()["id"])
    left = place.service.ledger.left("aging")
    newer = registration(budget=None, detector="grubbs:min_population=6")
    assert place.send("owner", "PUT", "/v1/datasets/aging", json=newer).json()["version"] == 2
    assert place.service.ledger.left("aging") == left
    assert place.ask(dataset="aging", call="old").json() == first
    renewed = place.wait(place.ask(dataset="aging").json()["id"])
    assert renewed["version"] == 2
    assert renewed["release"]["detector"]["min_population"] == 6
