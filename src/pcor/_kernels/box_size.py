"""How many contexts does a box have? Twin: listing them (``subtrees.box_members``)."""

from __future__ import annotations

import numpy as np

from pcor._kernels import kernel
from pcor._kernels.subtrees import Steps, number_of


@kernel
def contexts_of(rest: int, steps: Steps) -> int:
    """Return how many contexts a box has, given its open steps."""
    size, left = np.int64(1), rest
    while left:
        # Chain by chain, from its lowest open step.
        chain = left & steps.higher[number_of(left & (~left + np.uint64(1)))]
        left &= ~chain
        levels = np.int64(1)
        while chain:
            chain &= chain - np.uint64(1)
            levels += 1
        size *= levels
    return int(size)
