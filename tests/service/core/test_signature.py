"""A service that signs: over HTTP, on the page, for the client; and where its key is not."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

import pcor
from pcor.errors import ParameterError, SignatureError
from pcor.releasing.signature import check_signature, signed
from pcor.releasing.verification import verify_content
from pcor.service.core import draw_process, questions
from pcor.service.core.service import Service
from pcor.service.core.settings import ServiceSettings
from tests.helpers.page_person import Person
from tests.helpers.service_world import (
    ANALYST,
    DATASET,
    ORDINARY,
    OUTLIER,
    World,
    prepared,
    served,
    settings_for,
    world,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("signing")


@pytest.fixture(scope="module")
def key(folder: Path) -> pcor.SigningKey:
    made = pcor.SigningKey.generate()
    made.save(folder / "owner.key")
    return made


@pytest.fixture(scope="module")
def place(folder: Path, key: pcor.SigningKey) -> Iterator[World]:
    assert key.public
    with world(str(folder / "books.db"), folder, sign=folder / "owner.key") as made:
        yield made


@pytest.fixture(scope="module")
def answered(place: World) -> dict[str, Any]:
    return place.wait(place.ask().json()["id"])


def test_the_certificate_of_an_answer_is_signed_and_the_books_have_it_as_it_was_drawn(
    place: World, key: pcor.SigningKey, answered: dict[str, Any]
) -> None:
    certificate = answered["release"]
    check_signature(certificate, key.public, "it")
    found = place.service.ledger.find(certificate)
    assert "signature" not in found.answer.content["answer"]
    again = place.send(ANALYST, "GET", f"/v1/releases/{answered['id']}").json()
    assert again["release"] == certificate


def test_the_files_of_the_page_are_signed(
    place: World, key: pcor.SigningKey, answered: dict[str, Any]
) -> None:
    analyst = Person(place, ANALYST)
    shown = f"/releases/{answered['id']}"
    for kind in ("json", "html"):
        file = analyst.get(f"{shown}/certificate.{kind}").content
        assert verify_content(file, key.public, kind) == answered["release"]
        assert analyst.get(f"{shown}/certificate.{kind}").content == file
    letter = analyst.get(f"{shown}/letter.html").content
    assert verify_content(letter, key.public, "letter") == answered["release"]
    page = analyst.get(shown).text
    assert f"signed with the key <code>{key.public}</code>" in page


def test_an_answer_that_is_no_certificate_stays_as_it_is(place: World) -> None:
    told = place.wait(place.ask(record=ORDINARY).json()["id"])
    assert told["release"] is None
    assert told["error"]["kind"] == "no_valid_context"


def test_an_answer_that_cannot_be_signed_is_given_all_the_same(
    place: World, answered: dict[str, Any]
) -> None:
    refused = patch.object(questions, "signed", side_effect=SignatureError("cannot be signed"))
    with refused:
        found = place.send(ANALYST, "GET", f"/v1/releases/{answered['id']}").json()["release"]
        assert found == {n: v for n, v in answered["release"].items() if n != "signature"}
        person, shown = Person(place, ANALYST), f"/releases/{answered['id']}"
        pages = [person.get(f"{shown}/{name}.html") for name in ("certificate", "letter")]
    assert [page.status_code for page in pages] == [200, 200]
    assert not any("pcor-page/1" in page.text for page in pages)


def test_the_public_key_is_told_to_anybody(place: World, key: pcor.SigningKey) -> None:
    told = place.send(None, "GET", "/v1/public-key").json()
    assert told == {"algorithm": "Ed25519", "key": str(key.public), "pem": key.public.pem}


def test_a_service_without_a_key_signs_nothing_and_says_so(tmp_path: Path) -> None:
    with world(str(tmp_path / "books.db"), tmp_path) as made:
        assert made.send(None, "GET", "/v1/public-key").json()["key"] is None
        done = made.wait(made.ask().json()["id"])
        assert "signature" not in done["release"]


def test_a_client_takes_only_what_its_key_has_signed(
    folder: Path, key: pcor.SigningKey, tmp_path: Path
) -> None:
    settings = settings_for(str(tmp_path / "books.db"), tmp_path, sign=folder / "owner.key")
    service, keys = prepared(settings)
    other = pcor.SigningKey.generate()
    with served(service) as at:

        def client(signed_by: pcor.PublicKey | None) -> pcor.Client:
            return pcor.Client(at.url, keys[ANALYST], signed_by=signed_by)

        assert client(None).public_key() == key.public
        released = client(key.public).release(DATASET, OUTLIER, preset="medium")
        released.save(tmp_path / "kept.json")
        assert pcor.verify(tmp_path / "kept.json", key.public) == released.to_dict()
        with pytest.raises(SignatureError, match="was signed with another key"):
            client(other.public).release(DATASET, OUTLIER, preset="medium")
        service.signing_key = None
        assert client(None).public_key() is None
        with pytest.raises(SignatureError, match="is not signed"):
            client(key.public).release(DATASET, OUTLIER, preset="medium")
        service.signing_key = key
        lying = patch.object(
            questions, "signed", lambda said, by: signed({**said, "record": 3}, by)
        )
        with lying, pytest.raises(SignatureError, match="but of another record"):
            client(key.public).release(DATASET, OUTLIER, preset="medium")
    with pytest.raises(ParameterError, match=r"signed_by must be a pcor\.PublicKey"):
        pcor.Client("http://127.0.0.1:1", "pcor_x", signed_by="12")  # type: ignore[arg-type]


def test_the_key_is_read_once_and_refused_where_others_can_read_it(
    folder: Path, tmp_path: Path
) -> None:
    settings = settings_for(str(tmp_path / "books.db"), tmp_path, sign=folder / "owner.key")
    sent = ServiceSettings.from_json(settings.to_json())
    assert sent == settings
    open_key = tmp_path / "open.key"
    open_key.write_bytes((folder / "owner.key").read_bytes())
    with pytest.raises(ParameterError, match="others can read the private key"):
        Service(replace(settings, sign=open_key), create=True)
    assert not (tmp_path / "books.db").exists()


def test_neither_settings_nor_logs_nor_drawing_processes_have_the_key(
    place: World, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    secret = (folder / "owner.key").read_text().splitlines()[1]
    with caplog.at_level(logging.DEBUG):
        place.wait(place.ask(draw=2).json()["id"])
    settings = place.service.settings
    seen = f"{settings!r} {settings.to_json()} {vars(place.service)} {caplog.text}"
    assert secret not in seen
    made = draw_process.DrawProcesses(settings.data, settings.secret_file, tables=1, processes=1)
    assert "owner.key" not in repr([vars(child) for child in made._all])
