"""A table and its schema, as the files that a command is given."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import csv

from tests.helpers.command_line import SCHEMA, Files, people


@pytest.fixture
def files(tmp_path: Path) -> Files:
    folder = tmp_path / "work"
    folder.mkdir()
    csv.write_csv(pa.table(people()), folder / "pay.csv")
    (folder / "pay.toml").write_text(SCHEMA, encoding="utf-8")
    return Files(folder, folder / "pay.csv", folder / "pay.toml")
