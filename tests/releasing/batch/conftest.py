"""What a run is paid from, and what it writes to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pcor.ledger import Ledger
from tests.helpers.ledger_clients import DATASET


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    opened = Ledger(tmp_path / "books.db")
    opened.set_budget(DATASET, 100)
    yield opened
    opened.close()


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "results.jsonl"


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return tmp_path / "trace"
