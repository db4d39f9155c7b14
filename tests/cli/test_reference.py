"""``pcor reference``: one file with every context, for the owner only."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet
from typer.testing import CliRunner

from pcor.audit.reference_file import write_reference
from pcor.cli import app
from pcor.public.guarantee import OWNER_ONLY
from tests.helpers.every_context import SMALL, people


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    table = people()
    codes = table.rows.cells[table.rows.cell]
    columns: dict[str, Any] = {
        a.name: [a.values[code] for code in codes[:, i]]
        for i, a in enumerate(table.schema.attributes)
    }
    parquet.write_table(pa.table(columns | {"pay": table.rows.metric}), tmp_path / "t.parquet")
    (tmp_path / "t.toml").write_text(table.schema.to_toml(), encoding="utf-8")
    return ["reference", str(tmp_path / "t.parquet"), "--schema", str(tmp_path / "t.toml")]


DETECTOR = ["--detector", "lof:k=3,min_population=8"]


def test_the_command_writes_the_file_and_says_that_it_is_private(
    files: list[str], tmp_path: Path
) -> None:
    out = str(tmp_path / "ref.parquet")
    ran = CliRunner().invoke(app, [*files, "--out", out, *DETECTOR])
    assert ran.exit_code == 0
    expected = write_reference(people(), SMALL, path=tmp_path / "own.parquet")
    assert ran.stdout.splitlines() == [
        OWNER_ONLY,
        f"21 contexts with {expected.outliers} outliers in all",
    ]
    assert "21 contexts, about " in ran.stderr
    assert (tmp_path / "own.parquet").read_bytes() == Path(out).read_bytes()


def test_the_command_speaks_json(files: list[str], tmp_path: Path) -> None:
    out = str(tmp_path / "ref.parquet")
    ran = CliRunner().invoke(app, [*files, "--out", out, *DETECTOR, "--json"])
    content = json.loads(ran.stdout)
    assert list(content) == ["owner_only", "contexts", "outliers", "out"]
    assert (content["contexts"], content["out"]) == (21, out)


def test_the_command_refuses_with_a_sentence(files: list[str], tmp_path: Path) -> None:
    out = str(tmp_path / "ref.parquet")
    for words, sentence in (
        (["--out", out, "--limit", "20"], "21 contexts, more than the limit of 20"),
        (["--out", str(tmp_path / "ref.csv")], "must end in .parquet"),
        (["--out", out, "--detector", "lov"], "did you mean 'lof'?"),
    ):
        ran = CliRunner().invoke(app, [*files, *words])
        assert ran.exit_code == 2
        assert sentence in ran.stderr
    assert not Path(out).exists()
