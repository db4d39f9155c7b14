"""Few repetitions: a test has no need of more."""

from __future__ import annotations

import pytest

from pcor.paper import comparison, tables


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two repetitions of everything."""
    monkeypatch.delenv(tables.FOLDER, raising=False)
    monkeypatch.setattr(comparison, "QUICK", 2)
