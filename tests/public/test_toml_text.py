"""What is written as TOML is read back as it was."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest

from pcor.public.toml_text import toml_lines


@pytest.mark.parametrize(
    "content",
    [
        {"a": 'q"u\\o\x7fte', "b c": True, "-": [1, 2.5, "x"], "é": {"": [], "k": {"n m": -1}}},
        {"long": [f"value {number}" for number in range(40)], "inf": [float("-inf"), 1]},
        {"groups": {f"group {number}": ["a", "b"] for number in range(20)}},
    ],
)
def test_a_table_is_read_back_as_it_was_written(content: dict[str, Any]) -> None:
    lines = toml_lines(content)
    assert tomllib.loads("\n".join(lines)) == content
    # A list may be parted, a table in a line may not.
    assert all(len(line) <= 100 for line in lines if "{" not in line)
