"""Sessions of the page: made at sign-in, tied to their key, safe from other sites."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import pytest
from fastapi import APIRouter, Depends, FastAPI, Request, Response

from pcor.service.page import sessions
from pcor.service.page.access import read_form
from tests.helpers.service_world import ANALYST, World, world

Fields = Annotated[dict[str, str], Depends(read_form)]

router = APIRouter()


@router.post("/in")
def sign_in(request: Request, response: Response, form: Fields) -> str:
    sessions.check_origin(request)
    return sessions.sign_in(request, response, form["key"]).name


@router.get("/who")
def who(request: Request) -> list[str | None]:
    key = sessions.signed_in(request)
    return [None if key is None else key.name, sessions.form_token(request)]


@router.post("/act")
def act(request: Request, form: Fields) -> str:
    sessions.check_form(request, form.get("token", ""))
    return "done"


@router.post("/out")
def sign_out(request: Request, response: Response) -> None:
    sessions.sign_out(request, response)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[World]:
    with world(str(tmp_path / "books.db"), tmp_path) as made:
        assert isinstance(made.api.app, FastAPI)
        made.api.app.include_router(router)
        yield made


def enter(place: World, who: str = ANALYST) -> str:
    answer = place.api.post("/in", data={"key": place.keys[who]})
    assert answer.status_code == 200
    return str(place.api.cookies[sessions.COOKIE])


def test_a_key_opens_a_session_with_a_strict_cookie(place: World) -> None:
    answer = place.api.post("/in", data={"key": place.keys[ANALYST]})
    cookie = answer.headers["set-cookie"].lower()
    assert all(word in cookie for word in ("httponly", "samesite=strict", "path=/"))
    assert place.keys[ANALYST].split("_", 2)[2].lower() not in cookie
    assert place.api.get("/who").json()[0] == ANALYST


def test_a_session_that_was_known_before_sign_in_is_not_the_one_after(place: World) -> None:
    planted = "known-to-the-attacker"
    place.api.cookies.set(sessions.COOKIE, planted)
    assert place.api.get("/who").json()[0] is None
    place.api.cookies.clear()
    answer = place.api.post(
        "/in",
        data={"key": place.keys[ANALYST]},
        headers={"Cookie": f"{sessions.COOKIE}={planted}"},
    )
    assert planted not in answer.headers["set-cookie"]
    place.api.cookies.clear()
    place.api.cookies.set(sessions.COOKIE, planted)
    assert place.api.get("/who").json()[0] is None


def test_signing_in_again_ends_the_session_before(place: World) -> None:
    first = enter(place)
    second = enter(place)
    assert first != second
    place.api.cookies.clear()
    place.api.cookies.set(sessions.COOKIE, first)
    assert place.api.get("/who").json()[0] is None


def test_a_wrong_key_opens_nothing(place: World) -> None:
    answer = place.api.post("/in", data={"key": "pcor_a_b"})
    assert answer.status_code == 401
    assert "set-cookie" not in answer.headers


def test_a_session_ends_with_sign_out(place: World) -> None:
    cookie = enter(place)
    place.api.post("/out")
    place.api.cookies.set(sessions.COOKIE, cookie)
    assert place.api.get("/who").json()[0] is None


def test_a_session_ends_with_its_key(place: World) -> None:
    enter(place)
    name = place.keys[ANALYST].split("_")[1]
    place.send("owner", "DELETE", f"/v1/keys/{name}")
    assert place.api.get("/who").json()[0] is None


def test_a_form_needs_the_token_of_its_session(place: World) -> None:
    enter(place)
    token = place.api.get("/who").json()[1]
    assert place.api.post("/act", data={"token": token}).status_code == 200
    for wrong in ("", "x", token[:-1], "é"):
        assert place.api.post("/act", data={"token": wrong}).status_code == 403
    enter(place)
    assert place.api.post("/act", data={"token": token}).status_code == 403


def test_without_a_session_no_token_helps(place: World) -> None:
    token = place.api.get("/who").json()[1]
    assert place.api.post("/act", data={"token": token}).status_code == 403


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_another_site_cannot_send_a_form(place: World, headers: dict[str, str]) -> None:
    enter(place)
    token = place.api.get("/who").json()[1]
    assert place.api.post("/act", data={"token": token}, headers=headers).status_code == 403
    refused = place.api.post("/in", data={"key": place.keys[ANALYST]}, headers=headers)
    assert refused.status_code == 403


def test_the_api_does_not_look_at_the_cookie(place: World) -> None:
    enter(place, "owner")
    assert place.api.get("/v1/keys").status_code == 401


def test_the_database_holds_no_cookie(place: World) -> None:
    cookie = enter(place)
    stored = (place.service.settings.data.parent / "books.db").read_bytes()
    wal = place.service.settings.data.parent / "books.db-wal"
    stored += wal.read_bytes() if wal.exists() else b""
    assert cookie.encode() not in stored
    assert place.keys[ANALYST].split("_", 2)[2].encode() not in stored
