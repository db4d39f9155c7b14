"""The page under attack: sessions that others know, forms from elsewhere, values that are HTML."""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser

import pyarrow as pa
import pytest
from pyarrow import parquet
from sqlalchemy import select

import pcor
from pcor.service.core import owner as owning
from pcor.service.core import tables
from pcor.service.core.keys import digest, find_key
from pcor.service.core.limits import TokenBuckets
from pcor.service.core.service import GUESSES
from pcor.service.page.sessions import COOKIE
from tests.helpers.page_person import Person
from tests.helpers.page_routes import PAGES
from tests.helpers.service_world import (
    ANALYST,
    DATASET,
    DEFAULTS,
    OUTLIER,
    World,
    columns,
    registration,
    world,
)

EVIL = ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "it's </textarea><b>"]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("page")
    with world(str(folder / "books.db"), folder) as made:
        yield made


@pytest.fixture(scope="module")
def owner(place: World) -> Person:
    return Person(place, "owner")


# -- sessions and forms ---------------------------------------------------------------------------


def test_a_session_that_an_attacker_knows_is_worth_nothing(place: World) -> None:
    victim = Person(place)
    victim.http.cookies.set(COOKIE, "known-to-the-attacker")
    signed = victim.http.post("/sign-in", data={"key": place.keys[ANALYST]})
    assert signed.cookies[COOKIE] != "known-to-the-attacker"
    attacker = Person(place)
    attacker.http.cookies.set(COOKIE, "known-to-the-attacker")
    assert attacker.get("/releases").status_code == 303


def test_signing_in_again_ends_the_session_before(place: World) -> None:
    one = Person(place, ANALYST)
    before = one.http.cookies[COOKIE]
    one.http.post("/sign-in", data={"key": place.keys[ANALYST]})
    assert one.http.cookies[COOKIE] != before
    late = Person(place)
    late.http.cookies.set(COOKIE, before)
    assert late.get("/releases").status_code == 303


def test_signing_out_ends_the_session_for_good(place: World) -> None:
    one = Person(place, ANALYST)
    cookie = one.http.cookies[COOKIE]
    assert one.post("/sign-out").headers["location"] == "/sign-in"
    late = Person(place)
    late.http.cookies.set(COOKIE, cookie)
    assert late.get("/releases").status_code == 303


def test_the_cookie_is_kept_from_scripts_and_other_sites_and_stored_as_a_hash(
    place: World,
) -> None:
    answer = Person(place).http.post("/sign-in", data={"key": place.keys[ANALYST]})
    given = answer.headers["set-cookie"].lower()
    assert "httponly" in given
    assert "samesite=strict" in given
    with place.service.ledger.database.reading() as connection:
        kept = set(connection.execute(select(tables.sessions.c.hash)).scalars())
    assert digest(answer.cookies[COOKIE]) in kept
    assert answer.cookies[COOKIE] not in kept


def test_a_wrong_key_is_refused_and_guessing_is_slowed_down(
    place: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place.service, "guesses", TokenBuckets(*GUESSES, clock=lambda: 0.0))
    statuses = [
        Person(place).http.post("/sign-in", data={"key": f"pcor_x_{n}"}).status_code
        for n in range(25)
    ]
    assert statuses == [401] * 20 + [429] * 5


@pytest.mark.parametrize(
    ("back", "goes"),
    [
        ("/releases", "/releases"),
        ("//evil.example/", "/"),
        ("https://evil.example", "/"),
        ("/\\evil.example", "/"),
        ("/a\r\nSet-Cookie: x=1", "/"),
        ("javascript:alert(1)", "/"),
    ],
)
def test_signing_in_leads_to_our_own_pages_only(place: World, back: str, goes: str) -> None:
    fields = {"key": place.keys[ANALYST], "back": back}
    answer = Person(place).http.post("/sign-in", data=fields)
    assert answer.status_code in (303, 400)
    assert answer.headers.get("location", "/") == goes


POSTS = [*(path for method, path, *_ in PAGES if method == "POST"), "/sign-out"]


@pytest.mark.parametrize("path", POSTS)
@pytest.mark.parametrize("token", [None, "", "0" * 64, "another's"])
def test_a_form_without_the_token_of_its_session_does_nothing(
    place: World, owner: Person, path: str, token: str | None
) -> None:
    if token == "another's":  # noqa: S105 (no password)
        token = Person(place, "owner").token()
    before = place.service.ledger.head()
    fields = {"name": DATASET, "epsilon": "5", "analyst": "eve", "role": "owner", "days": "9"}
    answer = owner.http.post(path, data=fields if token is None else fields | {"token": token})
    assert answer.status_code == 403
    assert place.service.ledger.head() == before
    assert owner.get("/releases").status_code == 200


@pytest.mark.parametrize("path", [*POSTS, "/sign-in"])
@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_a_form_from_another_site_is_refused_even_with_the_token(
    place: World, owner: Person, path: str, headers: dict[str, str]
) -> None:
    fields = {"token": owner.token(), "key": place.keys[ANALYST]}
    answer = owner.http.post(path, data=fields, headers=headers)
    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers


def test_the_api_takes_no_cookie_and_the_page_no_bearer(place: World, owner: Person) -> None:
    assert owner.get("/v1/keys").status_code == 401
    bearer = {"Authorization": f"Bearer {place.keys['owner']}"}
    assert Person(place).get("/keys", headers=bearer).status_code == 303


@pytest.mark.parametrize(
    "body", [b"\xff\xfe", b"token=%ff", b"a=1&" * 100, b"token=%00", b"{}", b"=&=&;"]
)
def test_a_body_that_is_not_a_form_is_refused(owner: Person, body: bytes) -> None:
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    answer = owner.http.post("/keys", content=body, headers=kind)
    assert answer.status_code in (400, 403)


# -- values that look like HTML


class Elements(HTMLParser):
    """Collects what a browser would make of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []
        self.handlers: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.handlers += [name for name, _ in attrs if name.startswith("on")]
        if tag == "script":
            assert dict(attrs).get("src", "").startswith("/static/")  # type: ignore[union-attr]


def test_values_that_look_like_html_stay_text_on_every_page(place: World, owner: Person) -> None:
    people = dict(columns())
    people["job"] = [EVIL[["clerk", "cook", "pilot"].index(job)] for job in people["job"]]
    name = '<b onclick="x()">&quot;evil&quot;'
    people[name] = people.pop("city")
    parquet.write_table(pa.table(people), place.service.settings.data / "evil.parquet")
    schema = pcor.Schema(
        metric="pay", attributes={"job": EVIL, name: ["Rome", "Oslo"]}, name="<i>evil</i>"
    )
    dataset = "<img src=x onerror=alert(2)>'\""
    body = registration(
        schema=schema.to_dict(), source="evil.parquet", description=EVIL[1], records="any"
    )
    with place.service.ledger.database.reading() as connection:
        key = find_key(connection, place.keys["owner"], place.service.now())
    assert key is not None
    owning.register(place.service, key, dataset, DEFAULTS | body)
    owning.allot(place.service, key, dataset, ANALYST, {"epsilon": "2"})
    owning.new_key(place.service, key, role="analyst", name=EVIL[0], days=1)
    owning.allot(place.service, key, dataset, EVIL[0], {"epsilon": "2"})
    records = [OUTLIER, EVIL[0]]
    asked = [place.ask(dataset=dataset, record=record).json()["id"] for record in records]
    for one in asked:
        place.wait(one)
    analyst = Person(place, ANALYST)
    pages = {
        "analyst": ["/", "/releases", *(f"/releases/{one}" for one in asked)],
        "owner": ["/", "/releases", "/keys", "/ledger", "/log", "/ledger?verify=true"],
    }
    queries: list[tuple[str, dict[str, str]]] = [
        ("/ask", {"dataset": dataset, "record": EVIL[0], "preset": "small"}),
        ("/ask", {"dataset": dataset, "record": EVIL[1], "preset": EVIL[1]}),
        ("/dataset", {"name": dataset}),
        ("/register", {"name": dataset}),
        ("/exposure", {"dataset": dataset, "record": EVIL[1]}),
        ("/dataset", {"name": EVIL[0]}),
        ("/sign-in", {"back": EVIL[1]}),
    ]
    seen = [analyst.get(path) for path in pages["analyst"]]
    seen += [owner.get(path) for path in pages["owner"]]
    seen += [owner.get(path, params=query) for path, query in queries]
    audited = owner.post("/exposure", dataset=dataset, record=str(OUTLIER), preset="small")
    seen += [audited, owner.post("/exposure", dataset=dataset, record=EVIL[1], preset="small")]
    seen += [owner.post("/register", **{"name": EVIL[0], "schema": EVIL[2]})]
    for answer in seen:
        found = Elements()
        found.feed(answer.text)
        assert not {"b", "i"} & set(found.names), answer.url
        assert found.names.count("img") <= 1  # the mark at the top
        assert found.handlers == []
        assert "alert(1)</script>" not in answer.text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in analyst.get(f"/releases/{asked[0]}").text
    taken = analyst.get(f"/releases/{asked[0]}/certificate.html")
    assert taken.headers["content-disposition"].startswith("attachment")
    assert "sandbox" in taken.headers["content-security-policy"]
