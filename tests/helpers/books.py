"""A release from a ledger, and what may be done to its books."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import pcor
from pcor.ledger import Ledger
from tests.helpers.ledger_clients import DATASET, EACH, OUTLIER, SETTINGS, table

HALF = "\ud800"  # of a surrogate pair: UTF-8 cannot hold it


def release(ledger: Ledger, **options: Any) -> pcor.Release:
    given: dict[str, Any] = {"epsilon": EACH, "dataset": DATASET, **SETTINGS, **options}
    return ledger.release(table(), OUTLIER, **given)


def flip(value: object) -> object:
    """Change one thing about a value."""
    if isinstance(value, int):
        return value + 1
    shown = "" if value is None else str(value)
    return "1" if not shown else shown[:-1] + ("1" if shown[-1] != "1" else "2")


@contextmanager
def before_the_rule() -> Iterator[None]:
    """Let through what was let through before text had to be printable."""
    with (
        patch("pcor.public.domain_parts.is_printable", lambda _: True),
        patch("pcor.releasing.request.is_printable", lambda _: True),
    ):
        yield
