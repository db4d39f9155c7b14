"""Tables small enough that every context of them is asked for by itself."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

import pcor


def table_of(shape: tuple[int, ...], rows: Sequence[tuple[int, ...]], metric: Any) -> pcor.Table:
    attributes = {f"a{i}": list(range(size)) for i, size in enumerate(shape)}
    columns = {f"a{i}": [row[i] for row in rows] for i in range(len(shape))}
    schema = pcor.Schema(metric="pay", attributes=attributes)
    return pcor.Table(pa.table(columns | {"pay": metric}), schema)


def one_by_one(table: pcor.Table, detector: pcor.Detector) -> dict[int, tuple[int, list[Any]]]:
    """Return the same, each context by itself."""
    masks = [m for m in range(1 << table.schema.width) if is_context(table.schema, m)]
    return {
        mask: (
            int(table.populations([mask])[0]),
            in_order(pcor.outliers(table, pcor.Context.from_mask(table.schema, mask), detector)),
        )
        for mask in masks
    }


def in_order(keys: Sequence[int | str]) -> list[Any]:
    """Sort ids of any kind."""
    return sorted(keys, key=lambda key: (str(type(key)), key))


def is_context(schema: pcor.Schema, mask: int) -> bool:
    return all(mask & own for own in schema.attribute_masks)


def large(metric: Callable[[random.Random], float], rows: int = 3000) -> pcor.Table:
    numbers = random.Random(3)  # noqa: S311 (test data)
    shape = (3, 2)
    cells = [tuple(numbers.randrange(size) for size in shape) for _ in range(rows)]
    return table_of(shape, cells, [metric(numbers) for _ in range(rows)])


SMALL = pcor.LOF(k=3, min_population=8)


def people(ids: list[Any] | None = None) -> pcor.Table:
    """Sixty people in six cells, two of them far from the others."""
    numbers = random.Random(5)  # noqa: S311 (test data)
    jobs = [numbers.choice(["clerk", "cook", "pilot"]) for _ in range(60)]
    cities = [numbers.choice(["Köln", "Rome"]) for _ in range(60)]
    pay = [round(numbers.gauss(100, 9), 1) for _ in range(58)] + [900.0, 900.0]
    columns: dict[str, Any] = {"job": jobs, "city": cities, "pay": pay}
    attributes = {"job": ["clerk", "cook", "pilot"], "city": ["Köln", "Rome"]}
    if ids is None:
        return pcor.Table(pa.table(columns), pcor.Schema(metric="pay", attributes=attributes))
    schema = pcor.Schema(metric="pay", attributes=attributes, id="who", name="people")
    return pcor.Table(pa.table(columns | {"who": ids}), schema)
