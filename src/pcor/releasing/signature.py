"""Signatures of certificates: who has the public key can tell that not a byte was changed.

Public: everything but the signing key. A certificate is signed as its canonical JSON (RFC 8785),
which also holds the algorithm and the public key; a page by its bytes, all of them but its last
line, which is the signature. Ed25519 has no randomness: the same certificate has the same
signature, however often it is asked for.

For one content there is one file: names sorted, two spaces, numbers as canonical JSON has them. So
also a byte that means nothing, a space or an escape, cannot be changed unnoticed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from pcor.errors import ParameterError, SignatureError, sendable
from pcor.support.ed25519 import ALGORITHM, PublicKey, SigningKey, needed

# Before the bytes of a page, so that no signature of one thing is one of another.
PAGE = "pcor-page/1"
# Canonical JSON counts as JavaScript does: a whole number beyond this is not exact.
_LARGEST = (1 << 53) - 1
_MEMBERS = {"algorithm", "key", "value"}
_PAGE_LINE = re.compile(rf"<!-- {PAGE} {ALGORITHM} ([0-9a-f]{{64}}) ([0-9a-f]{{128}}) -->")

NO_SIGNATURE = "is not signed; ask whoever released it for a signed one"
CHANGED = "was changed after it was signed; ask for the original"


def signed(certificate: Mapping[str, Any], key: SigningKey) -> dict[str, Any]:
    """Return a certificate with its signature, as it is written; a former one is replaced.

    Raises:
        ParameterError: this is no key.
        SignatureError: the certificate holds what canonical JSON cannot.
    """
    said = {"algorithm": ALGORITHM, "key": str(check_key(key).public)}
    content = {name: value for name, value in certificate.items() if name != "signature"}
    message = canonical(content | {"signature": said})
    made: dict[str, Any] = read(message.decode())
    made["signature"]["value"] = key.sign(message)
    return made


def check_key(key: SigningKey) -> SigningKey:
    """Return the key, or raise if this is not a signing key."""
    if not isinstance(key, SigningKey):
        raise ParameterError(
            "key must be a pcor.SigningKey, such as pcor.SigningKey.load('owner.key')"
        )
    return key


def check_public_key(key: PublicKey, what: str = "key") -> None:
    """Raise if this is not a public key."""
    if not isinstance(key, PublicKey):
        raise ParameterError(
            f"{what} must be a pcor.PublicKey, such as pcor.PublicKey.load('owner.key.pub')"
        )


def check_signature(certificate: Mapping[str, Any], key: PublicKey, what: str) -> None:
    """Raise unless a certificate was signed with this key, and is as it was then.

    Raises:
        SignatureError: it is not signed, by another key, or was changed.
    """
    said = certificate.get("signature")
    if said is None:
        raise SignatureError(f"{what} {NO_SIGNATURE}")
    if not isinstance(said, Mapping) or said.keys() != _MEMBERS or said["algorithm"] != ALGORITHM:
        raise SignatureError(
            f"the signature of {what} cannot be read: it is not one of {ALGORITHM}"
        )
    _check(key, str(said["key"]), str(said["value"]), what)
    unsigned = {name: value for name, value in said.items() if name != "value"}
    try:
        message = canonical({**certificate, "signature": unsigned})
    except SignatureError:  # nobody can have signed that
        raise SignatureError(f"{what} {CHANGED}") from None
    if not key.fits(said["value"], message):
        raise SignatureError(f"{what} {CHANGED}")


def _check(key: PublicKey, by: str, value: str, what: str) -> None:
    """Raise if a signature says that it is of another key, or is not written as one."""
    if by != str(key):
        raise SignatureError(
            f"{what} was signed with another key, {sendable(by)[:64]!r}; the one given is {key}"
        )
    if not re.fullmatch("[0-9a-f]{128}", value):
        raise SignatureError(f"{what} {CHANGED}")


def sign_page(page: str, key: SigningKey) -> str:
    """Return a page with the signature of all its bytes as its last line."""
    value = check_key(key).sign(_page_message(page.encode()))
    return f"{page}<!-- {PAGE} {ALGORITHM} {key.public} {value} -->\n"


def check_page(page: bytes, key: PublicKey, what: str) -> None:
    """Raise unless a page was signed with this key, and every byte of it is as it was then.

    Raises:
        SignatureError: it is not signed, by another key, or was changed.
    """
    before, newline, last = page.removesuffix(b"\n").rpartition(b"\n")
    found = _PAGE_LINE.fullmatch(last.decode("utf-8", "replace"))
    if found is None:
        # Cut off within its signature, or longer than it was: it was signed all the same.
        if f"\n<!-- {PAGE} {ALGORITHM} ".encode() in page:
            raise SignatureError(f"{what} {CHANGED}")
        raise SignatureError(f"{what} {NO_SIGNATURE}: its last line is no signature")
    _check(key, found[1], found[2], what)
    if not page.endswith(b"\n") or not key.fits(found[2], _page_message(before + newline)):
        raise SignatureError(f"{what} {CHANGED}")


def _page_message(page: bytes) -> bytes:
    return f"{PAGE}\n".encode() + page


def written(certificate: Mapping[str, Any]) -> str:
    """Return a certificate as the text of its file; for a signed one there is only this text."""
    text = json.dumps(
        certificate, indent=2, ensure_ascii=False, sort_keys="signature" in certificate
    )
    return sendable(text) + "\n"


def canonical(content: object) -> bytes:
    """Write JSON in the one way of RFC 8785.

    A whole number that JavaScript cannot hold becomes a text, as RFC 7493 asks for: the ids of
    records may be as large.

    Raises:
        SignatureError: there is something that canonical JSON cannot hold.
    """
    rfc8785 = needed("rfc8785")
    try:
        made: bytes = rfc8785.dumps(portable(json.loads(json.dumps(content))))
    except (ValueError, RecursionError):
        raise SignatureError(
            "this certificate cannot be signed: canonical JSON (RFC 8785) has no halves of "
            "surrogate pairs, no infinite numbers and no nan"
        ) from None
    return made


def read(text: str) -> Any:
    """Read JSON so that writing it canonically gives the same again."""
    return json.loads(text, parse_int=_number)


def _number(digits: str) -> int | float:
    return int(digits) if len(digits) <= 17 and abs(int(digits)) <= _LARGEST else float(digits)


def portable(value: Any) -> Any:
    """Return JSON with whole numbers that canonical JSON cannot hold as texts.

    >>> portable({"record": 2**60, "others": [1, 2.5, True]})
    {'record': '1152921504606846976', 'others': [1, 2.5, True]}
    """
    if isinstance(value, dict):
        return {name: portable(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [portable(inner) for inner in value]
    whole = isinstance(value, int) and not isinstance(value, bool)
    return str(value) if whole and abs(value) > _LARGEST else value
