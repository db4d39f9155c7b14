"""Which engine holds the rows of a source, if any.

Private: nothing is read here. Frames in memory and single files are encoded in memory
(``columns``, ``encoding``); everything lazy stays where it is and is asked by an engine.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import narwhals.stable.v2 as nw
from narwhals.stable.v2 import dependencies

from pcor.errors import ParameterError
from pcor.public.source_format import SourceFormat
from pcor.rows.engines.base import Engine
from pcor.rows.engines.databases import Database, DatabaseEngine, is_database_url
from pcor.rows.engines.duck import dataset_engine, files_engine, relation_engine
from pcor.rows.engines.lazy_polars import PolarsEngine
from pcor.rows.engines.spark import SparkEngine
from pcor.rows.queries.sql import Dialect

_PATTERN = set("*?[")


def open_engine(
    source: Any, memory: str | None = None, written: SourceFormat | None = None
) -> Engine | None:
    """Return the engine of a lazy source; ``None`` for one that is read into memory.

    Args:
        source: anything that ``pcor.Table`` takes.
        memory: the most memory to use; with it, a single file is asked where it is, too.
        written: how CSV files are written.
    """
    if is_files(source, memory):
        files = [source] if isinstance(source, str | Path) else source
        return files_engine(files, memory, written or SourceFormat())
    # Who holds a dataset has imported its module; importing it here takes a while, and pandas.
    datasets = sys.modules.get("pyarrow.dataset")
    if datasets is not None and isinstance(source, datasets.Dataset):
        return dataset_engine(source, memory)
    engine = _other_engine(nw.to_native(source, pass_through=True))
    if memory is not None:
        raise ParameterError(
            "memory (--memory) bounds what is used for files and Arrow datasets; here the limit is "
            "set where the rows are: in your own connection, session or server"
        )
    return engine


def is_files(source: Any, memory: str | None) -> bool:
    """Tell whether a source is files that are asked where they are."""
    if isinstance(source, list | tuple):
        return bool(source) and all(isinstance(file, str | Path) for file in source)
    if not isinstance(source, str | Path) or is_database_url(source):
        return False
    return memory is not None or bool(_PATTERN & set(str(source))) or os.path.isdir(source)


def _other_engine(source: Any) -> Engine | None:
    if isinstance(source, Database):
        return DatabaseEngine(source)
    if is_database_url(source):
        return DatabaseEngine(Database(source))
    if dependencies.is_duckdb_relation(source):
        return relation_engine(source)
    if dependencies.is_polars_lazyframe(source):
        return PolarsEngine(source)
    if dependencies.is_pyspark_dataframe(source) or dependencies.is_pyspark_connect_dataframe(
        source
    ):
        return SparkEngine(source)
    if isinstance(getattr(source, "dialect", None), Dialect):
        engine: Engine = source  # somebody's own; docs/contributing/engine.md says how
        return engine
    return None
