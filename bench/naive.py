"""The naive way: filter the rows, refit the detector on the population, look at one answer.

What a user would write with numpy, scipy and scikit-learn, and what the paper's programs do.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy import stats
from sklearn.neighbors import LocalOutlierFactor

import pcor

Floats = NDArray[np.float64]

SMALLEST = 21


def lof(values: Floats, v: float) -> bool:
    """Refit scikit-learn on the population."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns of duplicate values
        fitted = LocalOutlierFactor(n_neighbors=20).fit(values.reshape(-1, 1))
    return bool((-fitted.negative_outlier_factor_[values == v] > 1.5).any())


def grubbs(values: Floats, v: float) -> bool:
    """Test and remove extremes one at a time, with scipy's quantiles."""
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


def histogram(values: Floats, v: float) -> bool:
    """Bin with numpy and look up the record's bin."""
    counts, edges = np.histogram(values, bins=math.isqrt(len(values)))
    place = min(int(np.searchsorted(edges, v, side="right")) - 1, len(counts) - 1)
    return bool(counts[place] <= 0.0025 * len(values))


RULES: dict[str, Callable[[Floats, float], bool]] = {
    "lof": lof,
    "grubbs": grubbs,
    "histogram": histogram,
}


class Naive:
    """Verifies contexts on the raw columns of a table."""

    def __init__(self, rows: pa.Table, schema: pcor.Schema) -> None:
        self.schema = schema
        self.metric = rows[schema.metric.column].to_numpy().astype(np.float64)
        self.columns = [rows[a.name].to_numpy(zero_copy_only=False) for a in schema.attributes]

    def verify(self, detector: str, mask: int, v: float) -> bool:
        """Tell whether ``v`` is an outlier in a context: one refit."""
        values = pcor.Context.from_mask(self.schema, mask).values
        keep = np.ones(len(self.metric), dtype=bool)
        for attribute, column in zip(self.schema.attributes, self.columns, strict=True):
            keep &= np.isin(column, np.array(values[attribute.name], dtype=column.dtype))
        population = self.metric[keep]
        return len(population) >= SMALLEST and RULES[detector](population, v)
