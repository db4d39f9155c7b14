"""A real Spark for tests: local, two threads, several partitions, one session per test run.

Where pyspark or Java is missing, the tests that need it are skipped and say so.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import pyarrow as pa
import pytest

from pcor.errors import SourceError
from tests.helpers.scheduling import group

PARTITIONS = 4
# A few hundred rows are counted long before the Java machine has made fast code for that.
QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
VARIABLES = {"PYSPARK_SUBMIT_ARGS": f"--driver-java-options '{QUICK_START}' pyspark-shell"}

# Nor is a query worth a program of its own, compiled before its few rows are read.
INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


@cache
def _session() -> Any:
    """Start the session, or return why there is none."""
    if importlib.util.find_spec("pyspark") is None:
        return "needs pyspark, which is not installed here"
    if shutil.which("java") is None:
        return "needs Java, which is not installed here"
    from pcor.rows.engines.spark import local_session

    os.environ.update(VARIABLES)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it speaks about the versions of other packages
        try:
            session = local_session(threads=2, memory="1g")
        except SourceError:
            return "needs Spark, which is installed here but does not start"
    session.sparkContext.setLogLevel("OFF")
    session.conf.set("spark.sql.shuffle.partitions", str(PARTITIONS))
    for name, value in INTERPRETED.items():
        session.conf.set(name, value)
    return session


def spark() -> Any:
    """Return the session of this test run; skip the test where there is none."""
    test = os.environ["PYTEST_CURRENT_TEST"]
    assert group(test) == "spark", f"{test} is not named after Spark: it may start a second one"
    session = _session()
    if isinstance(session, str):
        pytest.skip(session)
    return session


@contextmanager
def compiled() -> Iterator[None]:
    """Have Spark compile each query, as it does unless it is told not to."""
    for name in INTERPRETED:
        spark().conf.unset(name)
    yield
    for name, value in INTERPRETED.items():
        spark().conf.set(name, value)


def spark_frame(rows: pa.Table) -> Any:
    """Return rows as a Spark DataFrame of several partitions."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return spark().createDataFrame(rows).repartition(PARTITIONS)
