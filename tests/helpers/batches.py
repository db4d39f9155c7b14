"""A run over several records of the small table, and what it leaves behind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pcor
from pcor.releasing.batch import Results
from tests.helpers.ledger_clients import EACH, OUTLIER, table

LOOSE: dict[str, Any] = {"detector": "lof:k=5,min_population=6,threshold=1.01"}
SOME = [OUTLIER, 3, 40, 8, 21]


def many(records: Any = SOME, each: object = EACH, **options: Any) -> Results:
    """Run over the small table, with a detector that finds nearly everybody somewhere."""
    return pcor.release_many(table(), records, each, **LOOSE | options)


def written(out: Path) -> list[dict[str, Any]]:
    """Return the whole lines of a results file."""
    text = out.read_text(encoding="utf-8") if out.exists() else ""
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


def bits(results: Results) -> list[str]:
    return [found.context.bits for found in results.releases]
