"""Answers as they are stored, told apart: a released certificate, or an error that was paid for.

Public: everything here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pcor.releasing.answers import ERROR_FORMAT


def split(answer: Mapping[str, Any]) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    """Return the certificate, or what is said in its place.

    >>> split({"format": "pcor-error/1", "kind": "no_valid_context", "error": "none"})
    (None, {'kind': 'no_valid_context', 'detail': 'none'})
    """
    if answer.get("format") == ERROR_FORMAT:
        return None, {"kind": answer["kind"], "detail": answer["error"]}
    return dict(answer), None
