"""A registered file is read as its schema says, like everywhere else."""

from __future__ import annotations

from pathlib import Path

import pytest

from pcor import Schema, Table
from pcor.audit.schema_draft import draft
from pcor.service.core.fingerprints import FileFingerprints
from pcor.service.core.sources import Tables
from tests.helpers.dialects import ATTRIBUTES, ID, METRIC, OUTLIER, written
from tests.helpers.same_rows import cells
from tests.helpers.service_world import registration, world


def reviewed(path: Path) -> Schema:
    """Draft the schema of a file and take it as it is."""
    draft_file = path.with_name("draft.toml")
    found = draft(path, metric=METRIC, attributes=ATTRIBUTES, id_column=ID)
    draft_file.write_text(found.text, encoding="utf-8")
    return Schema.from_file(draft_file, draft=True).reviewed()


@pytest.mark.parametrize("dialect", ["tabs", "bars", "unicode"])
def test_the_table_of_a_registered_file_is_the_one_of_its_schema(
    dialect: str, tmp_path: Path
) -> None:
    path = written(dialect, tmp_path)
    schema = reviewed(path)
    fingerprints = FileFingerprints(tmp_path / ".secret")
    fingerprints.make_secret()
    # As a registration keeps the schema.
    kept = Schema.from_dict(schema.to_dict())
    table = Tables(tmp_path, 1, fingerprints).get(path.name, fingerprints.of_file(path), kept)
    assert table.record(100 + OUTLIER).value == 1_226_557.16
    assert cells(table) == cells(Table(path, schema))


def test_a_file_in_a_dialect_is_registered_only_with_its_dialect(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    path = written("euros", tmp_path / "data")
    declared = reviewed(path).to_dict()
    with world(str(tmp_path / "books.db"), tmp_path) as place:
        for attribute in declared["attributes"].values():  # JSON has no infinite numbers
            for end in (0, -1) if "edges" in attribute else ():
                attribute["edges"][end] = str(attribute["edges"][end])
        body = registration(schema=declared, source=path.name, records=[100 + OUTLIER])
        put = place.send("owner", "PUT", "/v1/datasets/messy", json=body)
        assert put.status_code in (200, 201), put.text
        shown = place.send("owner", "GET", "/v1/datasets/messy").json()
        assert shown["schema"]["source"] == declared["source"]
        assert shown["schema"]["attributes"] == declared["attributes"]
        del declared["source"]
        refused = place.send("owner", "PUT", "/v1/datasets/plain", json=body)
        assert refused.status_code == 422, refused.text
        assert "cannot be read as CSV" in refused.text
