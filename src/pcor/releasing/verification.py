"""Verify a file: is this certificate, or this page, byte for byte what the owner of a key signed?

Public: everything here; no row, plan or schema is needed. A page is believed as a whole: all of its
bytes are signed, and the certificate inside it once more, by the same key.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from pcor.errors import SignatureError, SourceError
from pcor.releasing.certificate import FORMAT
from pcor.releasing.signature import (
    CHANGED,
    canonical,
    check_page,
    check_public_key,
    check_signature,
    read,
    written,
)
from pcor.support.ed25519 import PublicKey

_EMBEDDED = re.compile(
    rb'<script type="application/json" id="certificate">(.*?)</script>', re.DOTALL
)


def verify(path: str | Path, key: PublicKey) -> dict[str, Any]:
    """Return the certificate in a file, JSON or a page, that was signed with this key.

    Args:
        path: a certificate as ``.json``, or a page as ``.html``; the content tells which.
        key: the public key of whoever should have signed it.

    Raises:
        SignatureError: the file is no signed certificate, was signed with another key, or a byte
            of it was changed since.
        SourceError: the file cannot be read.
        ParameterError: the key is not one.
    """
    check_public_key(key)
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise SourceError(f"the file {str(path)!r} cannot be read: {error.strerror}") from None
    return verify_content(content, key, f"the file {str(path)!r}")


def verify_content(content: bytes, key: PublicKey, what: str) -> dict[str, Any]:
    """Return the certificate in the bytes of a file, which a refusal calls ``what``."""
    if content.startswith(b"{") or not _EMBEDDED.search(content):
        return _verify_json(content, key, what)
    check_page(content, key, what)
    return _certificate(content, key, what)


def _verify_json(content: bytes, key: PublicKey, what: str) -> dict[str, Any]:
    certificate = _parsed(content, what)
    check_signature(certificate, key, what)
    if content != written(read(canonical(certificate).decode())).encode():
        raise SignatureError(f"{what} {CHANGED}; it is not written as pcor writes it")
    return certificate


def _certificate(page: bytes, key: PublicKey, what: str) -> dict[str, Any]:
    """Return the certificate that a page carries."""
    found = _EMBEDDED.findall(page)
    if len(found) != 1:
        raise SignatureError(f"{what} is a page without a certificate of its own")
    certificate = _parsed(found[0], what)
    check_signature(certificate, key, f"the certificate in {what}")
    return certificate


def _parsed(content: bytes, what: str) -> dict[str, Any]:
    try:
        certificate = read(content.decode())
    except (ValueError, RecursionError):
        certificate = None
    if not isinstance(certificate, dict) or certificate.get("format") != FORMAT:
        raise SignatureError(
            f"{what} is no certificate of a release, neither as JSON nor as a page"
        )
    return certificate
