"""The steps of a space, as kernels that split it into boxes read them. Public."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from pcor.public.space import Indices, Space
from pcor.support.arrays import np

if TYPE_CHECKING:
    from pcor._kernels.boxes import Steps


def steps_of(space: Space) -> Steps:
    """Return the steps of a space, those of a chain from the lowest up."""
    from pcor._kernels.boxes import Steps

    lower, higher, strides = [], [], []
    for levels, stride in zip(space.level_bits, space.strides, strict=True):
        for below, own in pairwise(levels):
            lower.append(own)
            higher.append(levels[-1] & ~below)
            strides.append(stride)
    return Steps(
        np.array(lower, dtype=np.uint64),
        np.array(higher, dtype=np.uint64),
        np.array(strides, dtype=np.int64),
    )


def indices_of(bits: Indices, space: Space, steps: Steps) -> Indices:
    """Return the indices of contexts, given as bits: one for each step."""
    if space.binary:
        return bits
    indices = np.zeros(len(bits), dtype=np.uint64)
    for number, stride in enumerate(steps.strides):
        indices += (bits >> np.uint64(number) & np.uint64(1)) * np.uint64(stride)
    return indices
