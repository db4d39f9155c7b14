"""``make bench``: what a verification costs against the naive way, in one run.

The naive way is what a user would write: filter the rows with a mask, refit the detector on the
population, look at one answer. Ratios are printed, not times, so that machines can be compared.
"""

from __future__ import annotations

import json
import math
import os
import platform
import random
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import parquet
from scipy import stats
from sklearn.neighbors import LocalOutlierFactor

import pcor
from pcor.validity import Validity

Floats = NDArray[np.float64]


def naive_lof(values: Floats, v: float) -> bool:
    """Refit scikit-learn on the population."""
    if len(values) < 21:
        return False
    fitted = LocalOutlierFactor(n_neighbors=20).fit(values.reshape(-1, 1))
    return bool((-fitted.negative_outlier_factor_[values == v] > 1.5).any())


def naive_grubbs(values: Floats, v: float) -> bool:
    """Test and remove extremes one at a time, with scipy's quantiles."""
    if len(values) < 21:
        return False
    rest = values.copy()
    while len(rest) > 2 and rest.std() > 0:
        n = len(rest)
        t = stats.t.isf(0.05 / (2 * n), n - 2)
        critical = (n - 1) / math.sqrt(n) * math.sqrt(t * t / (n - 2 + t * t))
        distance = np.abs(rest - rest.mean())
        place = int(distance.argmax())
        if not distance[place] / rest.std(ddof=1) > critical:
            return False
        if rest[place] == v:
            return True
        rest = np.delete(rest, place)
    return False


def naive_histogram(values: Floats, v: float) -> bool:
    """Bin with numpy and look up the record's bin."""
    if len(values) < 21:
        return False
    counts, edges = np.histogram(values, bins=math.isqrt(len(values)))
    place = min(int(np.searchsorted(edges, v, side="right")) - 1, len(counts) - 1)
    return bool(counts[place] <= 0.0025 * len(values))


NAIVE: dict[str, Callable[[Floats, float], bool]] = {
    "lof": naive_lof,
    "grubbs": naive_grubbs,
    "histogram": naive_histogram,
}


def load() -> tuple[str, pa.Table, pcor.Schema]:
    """Return the 51,000-row table of PCOR_DATA, or the demo's."""
    folder = os.environ.get("PCOR_DATA")
    if folder:
        path = Path(folder) / "salary_51k.parquet"
        return (
            "salary_51k",
            parquet.read_table(path),
            pcor.Schema.from_file(path.with_suffix(".toml")),
        )
    return "demo", pcor.demo.salaries(), pcor.demo.salary_schema()


def time_of(action: Callable[[], object]) -> float:
    """Return the seconds of one call."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def main() -> None:
    """Measure, print one table, save JSON."""
    contexts = 20 if os.environ.get("QUICK") else 200
    name, rows, schema = load()
    table = pcor.Table(rows, schema)
    numbers = random.Random(0)  # noqa: S311 (which contexts to time)
    metric = rows[schema.metric.column].to_numpy().astype(float)
    columns = [np.array(rows[a.name].to_pylist()) for a in schema.attributes]
    print(
        f"{name}, {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    )
    print(f"{'verification of a random context':<36}{'naive ms':>10}{'pcor ms':>10}{'ratio':>8}")
    results = []
    for detector, naive in NAIVE.items():
        row = int(np.argsort(metric)[-numbers.randint(10, 500)])
        key = row if schema.id is None else rows[schema.id][row].as_py()
        record = table.record(key)
        masks = [record.space.mask(numbers.randrange(record.space.size)) for _ in range(contexts)]

        def verify(
            mask: int, naive: Callable[[Floats, float], bool] = naive, v: float = metric[row]
        ) -> bool:
            values = pcor.Context.from_mask(schema, mask).values
            keep = np.ones(len(metric), dtype=bool)
            for attribute, column in zip(schema.attributes, columns, strict=True):
                keep &= np.isin(column, values[attribute.name])
            return naive(metric[keep], v)

        few = masks[: max(5, contexts // 10)]
        slow = statistics.median(time_of(lambda m=m: verify(m)) for m in few)  # type: ignore[misc]
        validity = Validity(table, record, pcor.get_detector(detector))
        fast = time_of(lambda: validity(masks)) / len(masks)  # noqa: B023 (called at once)
        results.append({"what": detector, "naive": slow, "pcor": fast, "ratio": slow / fast})
        print(f"{detector:<36}{slow * 1e3:>10.2f}{fast * 1e3:>10.3f}{slow / fast:>8.1f}")
    target = Path("bench/results")
    target.mkdir(exist_ok=True)
    report = {"table": name, "python": sys.version, "cores": os.cpu_count(), "rows": results}
    (target / "latest.json").write_text(json.dumps(report, indent=2))
    print(f"saved {target / 'latest.json'}")


if __name__ == "__main__":
    main()
