"""Copies between arrays that kernels are given.

An assignment between slices may make an array on the way, which a ``kernel`` does not; a loop over
entries makes none.
"""

from __future__ import annotations

from typing import Any

from pcor._kernels import inlined

Array = Any


@inlined
def copy_into(target: Array, source: Array) -> None:
    """Copy all entries of ``target`` from the first ones of ``source``."""
    for place in range(len(target)):
        target[place] = source[place]
