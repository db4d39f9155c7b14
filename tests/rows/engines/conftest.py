"""The rows that every engine is given."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.helpers.engines import people


@pytest.fixture(scope="module")
def rows() -> pa.Table:
    return people()
