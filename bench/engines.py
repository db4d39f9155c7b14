"""``python -m bench.engines``: rows where they live, every figure a ratio measured in this run.

``same [PAIRS]``
    COE of random (record, detector) pairs on the real tables (PCOR_DATA) and the demo's, in every
    engine that is here, compared with memory.
``large ROWS [MEMORY]``
    A LOF release from partitioned Parquet through DuckDB, against DuckDB's own GROUP BY of the same
    columns; peak memory of the process that releases.
``spark ROWS``
    The same through Spark on this machine, against Spark's own GROUP BY.
``bytes ROWS ...``
    How many bytes come back for one LOF release, for several numbers of rows.

Generated files are removed afterwards. Two cores are assumed; more only help.
"""

from __future__ import annotations

import hashlib
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import parquet

import pcor
from pcor.detectors import get_detector
from pcor.public.context import Words
from pcor.search.blocks import blocks
from pcor.search.validity import Validity

Listed = tuple[NDArray[np.uint64], NDArray[np.int64]]

GROUPS = "region, product, channel, year"
SCHEMA = pcor.Schema(
    metric="amount",
    id="id",
    attributes={
        "region": [f"region {place}" for place in range(7)],
        "product": [f"product {place}" for place in range(6)],
        "channel": [f"channel {place}" for place in range(6)],
        "year": list(range(2015, 2021)),
    },
)

# A lognormal metric by Box and Muller from hashes: no two runs differ.
GENERATE = """
COPY (SELECT i AS id, 'region ' || hash(i) % 7 AS region,
    'product ' || hash(i + 1000000000) % 6 AS product,
    'channel ' || hash(i + 2000000000) % 6 AS channel,
    2015 + (hash(i + 3000000000) % 6)::INT AS year,
    exp(8 + 0.7 * sqrt(-2 * ln((1 + hash(i + 4000000000) % 1000000007) / 1000000008.0))
        * cos(2 * pi() * (hash(i + 5000000000) % 1000000007) / 1000000007.0)) AS amount
    FROM range({rows}) t(i))
TO '{folder}' (FORMAT parquet, PARTITION_BY (region), ROW_GROUP_SIZE 1000000)
"""


def generate(folder: Path, rows: int) -> None:
    """Write partitioned Parquet files: 4 attributes, 25 values, a continuous metric."""
    import duckdb

    with duckdb.connect(config={"memory_limit": "3GB"}) as connection:
        connection.execute("SET preserve_insertion_order = false")
        connection.execute(f"SET temp_directory = '{folder.parent / 'tmp'}'")
        connection.execute(GENERATE.format(rows=rows, folder=folder))


def seconds(action: Callable[[], object]) -> float:
    """Return the seconds of one call."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def outlier(folder: Path) -> int:
    """Return the id of a row far out."""
    import duckdb

    query = f"SELECT id FROM '{folder}/**/*.parquet' ORDER BY amount DESC LIMIT 1 OFFSET 200"  # noqa: S608
    with duckdb.connect() as connection:
        return int(connection.sql(query).fetchall()[0][0])


def duckdb_group_by(folder: Path) -> None:
    """Run DuckDB's own aggregate over the columns that a release reads."""
    import duckdb

    query = f"SELECT {GROUPS}, count(*), sum(amount) FROM '{folder}/**/*.parquet' GROUP BY ALL"  # noqa: S608
    with duckdb.connect() as connection:
        connection.sql(query).fetchall()


def release(folder: Path, key: int, memory: str) -> dict[str, Any]:
    """Open the files and release once; return the seconds, the peak and what came back."""
    start = time.perf_counter()
    table = pcor.Table(folder, SCHEMA, memory=memory)
    pcor.release(table, key, 0.2, "lof")
    taken = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"seconds": taken, "peak MiB": peak, "bytes": table.bytes_returned}


def in_a_process(*words: str) -> dict[str, Any]:
    """Run part of this module in a process of its own, whose peak memory is its own."""
    command = [sys.executable, "-m", "bench.engines", *words]
    done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def large(folder: Path, memory: str) -> dict[str, Any]:
    """Compare a release with DuckDB's GROUP BY, before it and after it."""
    key = str(outlier(folder))
    before = in_a_process("group-by", str(folder))["seconds"]
    found = in_a_process("release", str(folder), key, memory)
    after = in_a_process("group-by", str(folder))["seconds"]
    return found | {"group by": [before, after], "ratio": found["seconds"] / ((before + after) / 2)}


def spark(folder: Path, rounds: int = 5) -> dict[str, Any]:
    """Compare a release with Spark's GROUP BY, in turns and both warm; the median of each."""
    from pcor.rows.engines.spark import local_session

    session = local_session(threads=2, memory="4g")
    frame = session.read.parquet(str(folder))
    frame.createOrReplaceTempView("rows")
    query = f"SELECT {GROUPS}, count(*), sum(amount) FROM rows GROUP BY {GROUPS}"  # noqa: S608
    key = outlier(folder)

    def group_by() -> object:
        return session.sql(query).collect()

    def released() -> object:
        return pcor.release(pcor.Table(frame, SCHEMA), key, 0.2, "lof")

    group_by()
    released()
    taken = [(seconds(group_by), seconds(released)) for _ in range(rounds)]
    usual, ours = (statistics.median(column) for column in zip(*taken, strict=True))
    return {"group by and release": taken, "ratio": ours / usual}


def coe(table: pcor.Table, key: int, detector: str, seen: dict[bytes, Listed]) -> Listed:
    """Return COE as masks and populations.

    A kernel is a function of what was read from the engine: where two engines gave it the same
    bytes, and it asked for nothing more, it need not run twice.
    """
    validity = Validity(table, table.record(key), get_detector(detector))
    cells, asked = validity.cells, 0
    if (ask := cells.ask) is not None:

        def counting(words: Words) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
            nonlocal asked
            asked += 1
            return ask(words)

        validity.cells = replace(cells, ask=counting)
    # Sums reach a kernel as moments, and only Grubbs knows what they are measured from.
    digest = hashlib.sha256(repr(cells.centre if "grubbs" in detector else None).encode())
    names = ("required", "values", "counts", "cell_required", "cell_counts")
    for array in [*(getattr(cells, name) for name in names), validity.cell_moments]:
        digest.update(f"{array.dtype}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    read = digest.digest()
    if read in seen:
        return seen[read]
    space, parts = validity.record.space, list(blocks(validity))
    valid = [part.indices[part.valid] for part in parts]
    listed = (
        space.words_of(np.concatenate(valid)),
        np.concatenate([part.populations[part.valid] for part in parts]),
    )
    if not asked:
        seen[read] = listed
    return listed


def same(pairs: int) -> dict[str, Any]:
    """Count the pairs whose COE is not the same in some engine."""
    from tests.helpers.engines import LOCAL, SERVERS

    data = Path(os.environ["PCOR_DATA"])
    numbers = np.random.default_rng(7)
    compared = different = 0
    names = ["salary_51k", "homicide_110k", "demo"]
    detectors = ["lof", "grubbs", "histogram", "tail", "lof:k=5", "grubbs:tail=upper"]
    for place, name in enumerate(names):
        rows, schema = _real(data, name)
        memory = pcor.Table(rows, schema)
        with tempfile.TemporaryDirectory() as folder:
            makers = {**LOCAL, **SERVERS}
            tables = {
                engine: pcor.Table(maker(rows, Path(folder)), schema)
                for engine, maker in makers.items()
            }
            order = np.argsort(rows[schema.metric.column].to_numpy())
            for pair in range(place, pairs, len(names)):
                far = (order[-500:], order[:500], order)[pair // 3 % 3]
                key, detector = int(numbers.choice(far)), detectors[pair // 3 % len(detectors)]
                seen: dict[bytes, Listed] = {}
                expected = coe(memory, key, detector, seen)
                for engine, table in tables.items():
                    found = coe(table, key, detector, seen)
                    alike = all(map(np.array_equal, found, expected))
                    if not alike:
                        print(f"different: {name}, {engine}, {detector}", file=sys.stderr)
                    different += not alike
                compared += 1
                print(f"{compared} of {pairs}", file=sys.stderr, flush=True)
    return {"pairs": compared, "engines": len(makers), "different": different}


def _real(data: Path, name: str) -> tuple[pa.Table, pcor.Schema]:
    """Return a table with a row number as its id."""
    if name == "demo":
        from pcor import demo

        rows, schema = demo.salaries(), demo.salary_schema(any_set=True)
    else:
        rows = parquet.read_table(data / f"{name}.parquet")
        schema = pcor.Schema.from_file(data / f"{name}.toml")
    rows = pa.table({n: rows[n] for n in schema.columns if n != schema.id})
    declared = schema.to_dict()
    declared["dataset"]["id"] = "bench_id"
    keyed = rows.append_column("bench_id", pa.array(np.arange(len(rows))))
    return keyed, pcor.Schema.from_dict(declared)


def main(words: list[str]) -> Any:
    """Do what the command says."""
    match words:
        case ["same", *rest]:
            return same(int(rest[0]) if rest else 200)
        case ["group-by", folder]:
            return {"seconds": seconds(lambda: duckdb_group_by(Path(folder)))}
        case ["release", folder, key, memory]:
            return release(Path(folder), int(key), memory)
        case ["bytes", *sizes]:
            return {"bytes": {size: _measured(int(size), bytes_back) for size in sizes}}
        case ["large", rows, *rest]:
            return _measured(int(rows), lambda folder: large(folder, rest[0] if rest else "4GiB"))
        case ["spark", rows]:
            return _measured(int(rows), spark)
    raise SystemExit(__doc__)


def bytes_back(folder: Path) -> int:
    """Return how many bytes come back for one release."""
    found = in_a_process("release", str(folder), str(outlier(folder)), "4GiB")
    return int(found["bytes"])


def _measured(rows: int, measure: Callable[[Path], Any]) -> Any:
    with tempfile.TemporaryDirectory(prefix="pcor-bench-") as folder:
        generate(Path(folder) / "rows", rows)
        return measure(Path(folder) / "rows")


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1:])))
