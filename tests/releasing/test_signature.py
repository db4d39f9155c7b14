"""Signed certificates: no byte can be changed, and nothing changes for those that are not."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import pcor
from pcor.errors import ParameterError, SignatureError, SourceError
from pcor.releasing.certificate import JSON_SCHEMA
from pcor.releasing.signature import canonical, check_signature, read, signed, written
from pcor.releasing.verification import verify_content
from pcor.testing import seeded
from tests.helpers.openssl import accepts, needs_openssl

CHANGES = 1_000
CHANGED = "was changed after it was signed"


@pytest.fixture(scope="module")
def key() -> pcor.SigningKey:
    return pcor.SigningKey.generate()


@pytest.fixture(scope="module")
def released() -> pcor.Release:
    table = pcor.Table(pcor.demo.ten_people(), pcor.demo.ten_people_schema())
    rule = pcor.Grubbs(min_population=3)
    return pcor.release(table, 8, epsilon=1, detector=rule, chooser=seeded(1))


def saying(released: pcor.Release, **members: object) -> pcor.Release:
    """Return a release whose certificate says something else."""
    return replace(released, stored=released.to_dict() | members)


def files(released: pcor.Release, key: pcor.SigningKey | None) -> dict[str, bytes]:
    """Return the two files of a certificate."""
    return {
        "json": (released.to_json(key=key) + "\n").encode(),
        "html": released.to_html(key=key).encode(),
    }


def refusal(content: bytes, key: pcor.PublicKey) -> str:
    """Return why a file is refused, or nothing where it is not."""
    try:
        verify_content(content, key, "it")
    except SignatureError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("kind", ["json", "html"])
def test_a_signed_file_gives_back_its_certificate(
    released: pcor.Release, key: pcor.SigningKey, kind: str, tmp_path: Path
) -> None:
    path = tmp_path / f"certificate.{kind}"
    released.save(path, key=key)
    assert path.read_bytes() == files(released, key)[kind]
    certificate = pcor.verify(path, key.public)
    unsigned = {name: value for name, value in certificate.items() if name != "signature"}
    assert unsigned == released.to_dict()
    jsonschema.validate(certificate, json.loads(JSON_SCHEMA.read_text(encoding="utf-8")))


@pytest.mark.parametrize("kind", ["json", "html"])
def test_every_changed_byte_is_refused(
    released: pcor.Release, key: pcor.SigningKey, kind: str
) -> None:
    whole = files(released, key)[kind]
    numbers = random.SystemRandom()  # other ones each time: all of them must be refused
    for _ in range(CHANGES):
        place = numbers.randrange(len(whole))
        other = (whole[place] + numbers.randrange(1, 256)) % 256
        assert refusal(whole[:place] + bytes([other]) + whole[place + 1 :], key.public), place


@pytest.mark.parametrize("kind", ["json", "html"])
def test_the_bytes_of_the_signature_and_the_ends_of_a_file_are_no_exception(
    released: pcor.Release, key: pcor.SigningKey, kind: str
) -> None:
    whole = files(released, key)[kind]
    value = released.to_dict(key=key)["signature"]["value"]
    if kind == "html":
        value = whole.decode().split()[-2]
    start = whole.index(value.encode())
    for place in range(start, start + len(value), 7):
        digit = b"0" if whole[place : place + 1] != b"0" else b"1"
        assert CHANGED in refusal(whole[:place] + digit + whole[place + 1 :], key.public)
    for other in (whole[:-1], whole + b"\n", whole + b" ", b" " + whole, b"\xef\xbb\xbf" + whole):
        assert refusal(other, key.public)
    if kind == "html":  # cut off, or with something behind its end
        for other in (whole[:-3], whole[:-100], whole + b"\n", whole + b"x", whole + b"\n\n<p>"):
            assert CHANGED in refusal(other, key.public)


def test_each_refusal_has_a_sentence_of_its_own(
    released: pcor.Release, key: pcor.SigningKey
) -> None:
    other = pcor.SigningKey.generate().public
    for kind, whole in files(released, key).items():
        assert "was signed with another key" in refusal(whole, other)
        assert CHANGED in refusal(whole.replace(b"390,000", b"390,001", 1), key.public)
        assert "is not signed" in refusal(files(released, None)[kind], key.public)
    assert "is no certificate" in refusal(b'{"format": "pcor-error/1"}', key.public)
    assert "is no certificate" in refusal(b"\xff\xfe", key.public)
    assert "is no certificate" in refusal(b"[" * 100_000, key.public)


# What means the same to a reader of JSON, and is written by nobody.
SAME: dict[str, Callable[[str], str]] = {
    "a space": lambda text: text.replace('"bits": ', '"bits":  ', 1),
    "no spaces": lambda text: json.dumps(json.loads(text)),
    "an escape": lambda text: text.replace('"grubbs"', '"\\u0067rubbs"', 1),
    "a name twice": lambda text: text.replace("{", '{"record": 9,', 1),
    "another order": lambda text: json.dumps(dict(reversed(json.loads(text).items())), indent=2),
    "a longer number": lambda text: re.sub(r'"epsilon": 1\b', '"epsilon": 1.0', text, count=1),
    "an exponent": lambda text: re.sub(r'"epsilon": 1\b', '"epsilon": 1e0', text, count=1),
    "line ends": lambda text: text.replace("\n", "\r\n"),
}


@pytest.mark.parametrize("change", SAME)
def test_a_byte_that_means_nothing_cannot_be_changed_either(
    released: pcor.Release, key: pcor.SigningKey, change: str
) -> None:
    text = files(released, key)["json"].decode()
    other = SAME[change](text)
    assert other != text
    assert CHANGED in refusal(other.encode(), key.public)


def test_a_page_shows_what_its_certificate_says_and_cannot_carry_another(
    released: pcor.Release, key: pcor.SigningKey
) -> None:
    page = released.to_html(key=key)
    other = saying(released, record=9).to_dict(key=key)
    inside = re.compile(r'(id="certificate">).*?(</script>)', re.DOTALL)
    swapped = inside.sub(lambda found: found[1] + json.dumps(other) + found[2], page)
    assert CHANGED in refusal(swapped.encode(), key.public)
    assert str(key.public) in page.split("<script")[0]  # whoever reads it sees whose it is


def test_the_same_certificate_has_the_same_bytes_however_its_members_are_sorted(
    released: pcor.Release, key: pcor.SigningKey
) -> None:
    content = released.to_dict()
    content["context"] = dict(sorted(content["context"].items(), reverse=True))
    again = replace(released, stored=dict(reversed(content.items())))
    assert [*again.to_dict()] != [*released.to_dict()]
    assert again.to_json(key=key) == released.to_json(key=key)
    assert again.to_dict(key=key) == signed(released.to_dict(key=key), key)


def test_a_certificate_that_came_signed_stays_as_it_is(
    released: pcor.Release, key: pcor.SigningKey
) -> None:
    received = json.loads(released.to_json(key=key))
    kept = pcor.Release.from_dict(received, released.plan)
    assert kept.to_json() == released.to_json(key=key)
    # Who cannot sign cannot sign the page: it does not say so, and is not taken for a signed one.
    assert "signed with" not in kept.to_html()
    assert "is not signed" in refusal(kept.to_html().encode(), key.public)


def test_without_a_key_a_certificate_is_as_it_was(released: pcor.Release) -> None:
    assert "signature" not in released.to_dict()
    assert released.to_json() == json.dumps(released.to_dict(), indent=2, ensure_ascii=False)
    assert released.to_html().endswith("</script>\n</body></html>\n")
    assert "signed" not in released.to_html()


@pytest.mark.parametrize("record", [2**53, -(2**60), 10**17])
def test_the_id_of_a_record_may_be_larger_than_canonical_json_can_count(
    released: pcor.Release, key: pcor.SigningKey, record: int
) -> None:
    for kind, content in files(saying(released, record=record), key).items():
        assert verify_content(content, key.public, kind)["record"] == str(record)


@pytest.mark.parametrize("value", [1e20, 2.0**53, 1e-7, 1.5e300, -0.0, 12.5])
def test_a_metric_may_be_any_number(
    released: pcor.Release, key: pcor.SigningKey, value: float
) -> None:
    for content in files(saying(released, metric_value=value), key).values():
        assert verify_content(content, key.public, "it")["metric_value"] == value


def test_what_canonical_json_cannot_hold_is_not_signed(
    released: pcor.Release, key: pcor.SigningKey
) -> None:
    for wrong in ("\ud800", float("nan"), float("inf")):
        with pytest.raises(SignatureError, match="cannot be signed"):
            signed(released.to_dict() | {"record": wrong}, key)
        with pytest.raises(SignatureError, match=CHANGED):
            check_signature(released.to_dict(key=key) | {"record": wrong}, key.public, "it")


def test_canonical_json_is_that_of_the_standard() -> None:
    """RFC 8785, section 3.2.2 and 3.2.3."""
    numbers = "[333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001]"
    assert canonical(read(numbers)) == b"[333333333.3333333,1e+30,4.5,0.002,1e-27]"
    text = '{"string": "\\u20ac$\\u000F\\u000aA\'\\u0042\\u0022\\u005c\\\\\\"\\/"}'
    assert canonical(read(text)) == ('{"string":"\u20ac$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'.encode())
    names = ["\u20ac", "\r", "\ufb33", "1", "\U0001f600", "\u0080", "\u00f6"]
    ordered = ["\r", "1", "\u0080", "\u00f6", "\u20ac", "\U0001f600", "\ufb33"]
    assert [*read(canonical(dict.fromkeys(names, 0)).decode())] == ordered


def test_a_key_that_is_none_is_refused_in_a_sentence(
    released: pcor.Release, key: pcor.SigningKey, tmp_path: Path
) -> None:
    wrong: Any = "owner.key"
    for path in (tmp_path / "c.json", tmp_path / "c.html"):
        with pytest.raises(ParameterError, match=r"key must be a pcor\.SigningKey"):
            released.save(path, key=wrong)
        assert not path.exists()
    with pytest.raises(ParameterError, match=r"key must be a pcor\.PublicKey"):
        pcor.verify(tmp_path / "c.json", wrong)
    with pytest.raises(SourceError, match="cannot be read: No such file"):
        pcor.verify(tmp_path / "c.json", key.public)


@needs_openssl
def test_openssl_takes_both_signatures(
    released: pcor.Release, key: pcor.SigningKey, tmp_path: Path
) -> None:
    """As docs/how-to/sign.md says: nothing of ours is needed to check them."""
    key.public.save(tmp_path / "key.pub")
    content = released.to_dict(key=key)
    value = content["signature"].pop("value")
    message = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert accepts(tmp_path / "key.pub", value, message.encode())
    page, last = re.fullmatch(r"(.*\n)(.*)\n", released.to_html(key=key), re.DOTALL).groups()  # type: ignore[union-attr]
    value = last.split()[-2]
    assert accepts(tmp_path / "key.pub", value, b"pcor-page/1\n" + page.encode())
    assert not accepts(tmp_path / "key.pub", value, page.encode())


def test_the_text_of_a_file_ends_with_one_line_end(released: pcor.Release) -> None:
    assert written(released.to_dict()) == released.to_json() + "\n"
