"""The command line as a test uses it: a table and its schema as files, a command that ran."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jsonschema
import pyarrow as pa
from pyarrow import csv, parquet
from typer.testing import CliRunner

from pcor.cli import app
from pcor.releasing.certificate import JSON_SCHEMA

CONTRACT = {
    *("format", "record", "metric", "context", "bits", "where", "epsilon", "delta", "promise"),
    *("detector", "search", "utility", "schema_sha256", "private"),
}
# Words that would speak of what a release keeps to itself; none may be a key of a certificate.
KEPT = ("population", "count", "score", "time", "seconds", "draw", "seed", "size", "candidates")

SCHEMA = """\
[dataset]
name = "pay"
id = "key"

[metric]
column = "pay"

[attributes.job]
values = ["clerk", "cook", "pilot"]

[attributes.city]
values = ["Rome", "Oslo"]

[attributes.age]
edges = [0, 30, 60]
"""
OUTLIER = 17
GRUBBS = "grubbs:min_population=5"


class Ran(NamedTuple):
    """What came of a command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """The one JSON object on stdout."""
        found: dict[str, Any] = json.loads(self.out)
        assert isinstance(found, dict)
        return found


def pcor_(*words: object, env: dict[str, str | None] | None = None) -> Ran:
    """Run a command in this process."""
    result = CliRunner().invoke(app, [str(word) for word in words], env=env)
    return Ran(result.exit_code, result.stdout, result.stderr)


class Files(NamedTuple):
    """A small table of 120 people with one clear outlier, and its schema."""

    folder: Path
    table: Path
    schema: Path

    @property
    def table_and_schema(self) -> tuple[object, ...]:
        return (self.table, "--schema", self.schema)

    @property
    def request(self) -> tuple[object, ...]:
        return self.request_for(OUTLIER)

    def request_for(self, record: object) -> tuple[object, ...]:
        return (*self.table_and_schema, "--record", record, "--epsilon", "0.5")

    def rewritten(self, **columns: list[Any]) -> Path:
        """Write the table anew with some columns changed; return the new path."""
        table = pa.table({**people(), **columns})
        csv.write_csv(table, self.folder / "changed.csv")
        return self.folder / "changed.csv"

    def declared(self, text: str) -> Path:
        """Write another schema; return its path."""
        path = self.folder / "other.toml"
        path.write_text(text, encoding="utf-8")
        return path

    def listing(self) -> set[str]:
        return {path.name for path in self.folder.iterdir()}


def people(rows: int = 120) -> dict[str, list[Any]]:
    numbers = random.Random(7)  # noqa: S311 (test data)
    table: dict[str, list[Any]] = {
        "key": list(range(rows)),
        "job": [numbers.choice(["clerk", "cook", "pilot"]) for _ in range(rows)],
        "city": [numbers.choice(["Rome", "Oslo"]) for _ in range(rows)],
        "age": [numbers.randint(18, 60) for _ in range(rows)],
        "pay": [round(numbers.gauss(100, 5), 3) for _ in range(rows)],
    }
    for column, value in (("job", "cook"), ("city", "Oslo"), ("age", 41), ("pay", 400.5)):
        table[column][OUTLIER] = value
    return table


def written(folder: Path) -> Files:
    """Write the small table and its schema into a folder."""
    csv.write_csv(pa.table(people()), folder / "pay.csv")
    (folder / "pay.toml").write_text(SCHEMA, encoding="utf-8")
    return Files(folder, folder / "pay.csv", folder / "pay.toml")


START = "job is cook; city is Oslo; any age"


def keys_of(content: object) -> set[str]:
    """Every key at any depth."""
    if isinstance(content, dict):
        return {*content} | {key for value in content.values() for key in keys_of(value)}
    if isinstance(content, list):
        return {key for value in content for key in keys_of(value)}
    return set()


def assert_certificate(content: dict[str, Any]) -> None:
    """Assert the contract's keys, and nothing of what a release keeps to itself."""
    assert set(content) >= CONTRACT
    jsonschema.validate(content, json.loads(JSON_SCHEMA.read_text(encoding="utf-8")))
    rest = {key: value for key, value in content.items() if key not in ("context", "search")}
    # The search may name the seed of its public numbers; no draw comes from it.
    own = keys_of([rest, {k: v for k, v in content["search"].items() if k != "seed"}])
    public = {"min_population"}  # a detector's declared parameter
    assert not [key for key in own - public if set(KEPT) & set(key.split("_"))]


def loaded(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".json":
        rows: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
        return rows
    if path.suffix == ".parquet":
        table = parquet.read_table(path)
    else:
        text = csv.ConvertOptions(column_types={"bits": pa.string(), "record": pa.string()})
        table = csv.read_csv(path, convert_options=text)
    found: list[dict[str, Any]] = table.to_pylist()
    return found


Request = Callable[[Files], tuple[object, ...]]


def changed(column: str, place: int, value: object) -> Callable[[Files], Path]:
    def make(files: Files) -> Path:
        cells = [str(cell) for cell in people()[column]]
        cells[place] = str(value)
        return files.rewritten(**{column: cells})

    return make


JOBS = '["clerk", "cook", "pilot"]'
LARGE = json.dumps(["clerk", "cook", "pilot", *(f"job {i}" for i in range(27))])


def broken(*_: object, **__: object) -> None:
    raise ValueError("secret 12345")
