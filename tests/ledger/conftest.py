"""A ledger with a budget of 1."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pcor.ledger import Ledger
from tests.helpers.ledger_clients import DATASET


@pytest.fixture
def ledger(url: str) -> Iterator[Ledger]:
    opened = Ledger(url)
    opened.set_budget(DATASET, 1)
    yield opened
    opened.close()


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return tmp_path / "trace"
