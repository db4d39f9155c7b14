"""Copies between arrays that kernels are given.

An assignment between slices may make an array on the way, which a ``kernel`` does not; a loop over
entries makes none.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pcor._kernels import inlined, maker

Array = Any


@inlined
def copy_into(target: Array, source: Array) -> None:
    """Copy all entries of ``target`` from the first ones of ``source``."""
    for place in range(len(target)):
        target[place] = source[place]


@maker
def doubled(array: Array) -> Array:
    """Return a list that has run full with as much room again."""
    longer = np.empty(2 * len(array), array.dtype)
    longer[: len(array)] = array
    return longer
