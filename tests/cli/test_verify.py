"""``pcor ledger keygen``, ``pcor release --sign`` and ``pcor verify`` as people use them."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

import pcor
from tests.helpers.command_line import GRUBBS, Files, Ran, assert_certificate, pcor_


@pytest.fixture
def key(tmp_path: Path) -> Path:
    path = tmp_path / "owner.key"
    assert pcor_("ledger", "keygen", path).code == 0
    return path


@pytest.fixture
def books(tmp_path: Path) -> Path:
    path = tmp_path / "books.db"
    assert pcor_("ledger", "budget", path, "pay", "--epsilon", 1).code == 0
    return path


def release(files: Files, *more: object) -> Ran:
    return pcor_("release", *files.request, "--detector", GRUBBS, *more)


def public(key: Path) -> Path:
    return key.with_name(f"{key.name}.pub")


def test_a_pair_of_keys_is_made_and_nothing_is_replaced(tmp_path: Path) -> None:
    private, shared = tmp_path / "a.key", tmp_path / "shared.pem"
    made = pcor_("ledger", "keygen", private, "--public", shared, "--json")
    assert made.code == 0, made.err
    assert made.json["key"] == str(pcor.PublicKey.load(shared))
    assert made.json["key"] == str(pcor.SigningKey.load(private).public)
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    for words in ([private], [tmp_path / "b.key", "--public", shared]):
        again = pcor_("ledger", "keygen", *words)
        assert (again.code, "exists; give another name; keys are never replaced" in again.err) == (
            2,
            True,
        )
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_the_private_key_is_in_nothing_that_is_printed(
    files: Files, key: Path, books: Path
) -> None:
    secret = key.read_text().splitlines()[1]
    out = files.folder / "c.html"
    ran = [
        pcor_("ledger", "keygen", key.with_name("other")),
        release(files, "--ledger", books, "--sign", key, "--out", out, "--full"),
        release(files, "--ledger", books, "--sign", key, "--json"),
        pcor_("verify", out, "--key", key),
        pcor_("verify", key, "--key", public(key)),
        pcor_("ledger", "export", books),
    ]
    assert all(secret not in one.out + one.err for one in ran)
    assert secret not in out.read_text()


@pytest.mark.parametrize("kind", ["json", "html"])
def test_a_signed_release_is_verified_and_found_in_its_ledger(
    files: Files, key: Path, books: Path, kind: str
) -> None:
    out = files.folder / f"certificate.{kind}"
    assert release(files, "--ledger", books, "--sign", key, "--out", out).code == 0
    again = release(files, "--ledger", books, "--sign", key, "--json")
    verified = pcor_("verify", out, "--key", public(key), "--json")
    assert verified.code == 0, verified.err
    assert verified.json["certificate"] == again.json
    assert_certificate({n: v for n, v in again.json.items() if n != "signature"})
    said = pcor_("verify", out, "--key", public(key), "--ledger", books)
    assert said.code == 0, said.err
    assert again.json["sentence"] in said.out
    assert "no byte was changed since" in said.out
    assert "it was charged by entry" in said.out


def test_what_is_printed_as_json_is_the_file(files: Files, key: Path, books: Path) -> None:
    printed = release(files, "--ledger", books, "--sign", key, "--json").out
    path = files.folder / "certificate.json"
    path.write_text(printed)
    assert pcor_("verify", path, "--key", public(key)).code == 0


def test_a_refusal_says_what_is_wrong_and_ends_with_2(
    files: Files, key: Path, books: Path, tmp_path: Path
) -> None:
    out = files.folder / "certificate.json"
    assert release(files, "--sign", key, "--out", out).code == 0  # on no books
    other = tmp_path / "other.key"
    assert pcor_("ledger", "keygen", other).code == 0
    missing = pcor_("verify", out, "--key", public(key), "--ledger", books)
    assert (missing.code, "in no entry of the ledger" in missing.err) == (2, True)
    another = pcor_("verify", out, "--key", public(other), "--json")
    assert (another.code, another.json["kind"]) == (2, "signature")
    assert "was signed with another key" in another.err
    out.write_text(out.read_text().replace("400.5", "400.6"))
    changed = pcor_("verify", out, "--key", public(key))
    assert (changed.code, "was changed after it was signed" in changed.err) == (2, True)
    assert release(files, "--out", out, "--force").code == 0
    unsigned = pcor_("verify", out, "--key", public(key))
    assert (unsigned.code, "is not signed" in unsigned.err) == (2, True)


def test_a_key_that_cannot_sign_is_refused_before_anything_is_charged(
    files: Files, key: Path, books: Path, tmp_path: Path
) -> None:
    key.chmod(0o644)
    out = files.folder / "certificate.json"
    for words, why in {
        ("--sign", key, "--out", out): "others can read the private key",
        ("--sign", public(key), "--out", out): "holds a public key, and no private one",
        ("--sign", tmp_path / "none", "--out", out): "cannot be read",
        ("--sign", key): "--sign signs a file: give --out or --letter too, or --json",
    }.items():
        refused = release(files, "--ledger", books, *words)
        assert (refused.code, why in refused.err) == (2, True), refused.err
    assert pcor_("ledger", "show", books, "--json").json["datasets"][0]["left"] == "1"
    listed = files.folder / "list.txt"
    listed.write_text("17\n")
    lines = ("--records", listed, "--out", files.folder / "answers.jsonl", "--sign", key)
    many = pcor_("release", *files.table_and_schema, "--epsilon", "0.5", *lines)
    assert (many.code, "--letter and --sign go with --record" in many.err) == (2, True)


def test_a_letter_is_written_beside_the_certificate_and_signed_like_it(
    files: Files, key: Path, books: Path
) -> None:
    out, letter = files.folder / "c.json", files.folder / "letter.html"
    words = ("--out", out, "--letter", letter, "--sign", key, "--ledger", books)
    assert release(files, *words).code == 0
    told = pcor_("verify", letter, "--key", public(key), "--ledger", books, "--json")
    assert told.json["certificate"] == pcor.verify(out, pcor.PublicKey.load(public(key)))
    own = files.folder / "own.txt"
    own.write_text("<!doctype html>About {{ record }}, from us")
    assert release(files, *words, "--letter-template", own, "--force").code == 0
    assert letter.read_text().startswith("<!doctype html>About 17, from us<script")
    assert pcor_("verify", letter, "--key", public(key)).code == 0


def test_a_letter_that_cannot_be_written_is_refused_before_anything_is_charged(
    files: Files, books: Path
) -> None:
    out, own = files.folder / "letter.html", files.folder / "own.html"
    own.write_text("{{ misspelt }}")
    for words, why in {
        ("--letter", out, "--letter-template", own): "'misspelt' is undefined",
        ("--letter", out.with_suffix(".json")): "must end in .html or .htm",
        ("--letter", out, "--out", out): "--letter and --out name the same file",
        ("--letter-template", own): "--letter-template goes with --letter",
    }.items():
        refused = release(files, "--ledger", books, *words)
        assert (refused.code, why in refused.err) == (2, True), refused.err
    assert pcor_("ledger", "show", books, "--json").json["datasets"][0]["left"] == "1"
    assert not out.exists()
