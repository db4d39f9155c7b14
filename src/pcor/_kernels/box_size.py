"""How many contexts does a box have? Twin: listing them (``subtrees.box_members``)."""

from __future__ import annotations

import numpy as np

from pcor._kernels import kernel
from pcor._kernels.bits import count_bits, lowest_bit, number_of
from pcor._kernels.subtrees import Steps


@kernel
def contexts_of(rest: int, steps: Steps) -> int:
    """Return how many contexts a box has, given its open steps."""
    size, left = np.int64(1), rest
    while left:
        # Chain by chain, from its lowest open step.
        chain = left & steps.higher[number_of(lowest_bit(left))]
        left &= ~chain
        size *= count_bits(chain) + 1
    return int(size)
