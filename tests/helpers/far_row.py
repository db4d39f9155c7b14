"""A table in which one row is an outlier in every context."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

import pcor


def one_far_row(single: int, many: int, valid_in: str = "everywhere") -> pcor.Table:
    """Row 0 far from thirty others, with ``many`` values to choose from after ``single``.

    The record's own values are the first ones. "somewhere": with the value v2 it is one of a crowd.
    """
    attributes = {f"s{i}": ["x"] for i in range(single)}
    attributes["many"] = [f"v{i}" for i in range(many)]
    rows = [(pay, "v0") for pay in [10_000, *range(30)]]
    if valid_in == "somewhere":
        rows += [(3, "v1"), *((10_000 + i, "v2") for i in range(30))]
    columns: dict[str, Any] = {f"s{i}": ["x"] * len(rows) for i in range(single)}
    columns["pay"], columns["many"] = [list(column) for column in zip(*rows, strict=True)]
    return pcor.Table(pa.table(columns), pcor.Schema(metric="pay", attributes=attributes))
