"""A table and its schema, as the files that a command is given."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers.command_line import Files, written


@pytest.fixture
def files(tmp_path: Path) -> Files:
    folder = tmp_path / "work"
    folder.mkdir()
    return written(folder)
