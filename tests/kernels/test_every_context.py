"""The whole space, in blocks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pcor
from pcor.search import blocks
from tests.helpers.kernel_cases import SPACES, Case, cases, detectors, sometimes


@sometimes
@given(cases(SPACES, most=60), detectors, st.integers(1, 3))
def test_blocks_hold_the_verdicts_and_populations_of_the_whole_space(
    case: Case, detector: pcor.Detector, bits: int
) -> None:
    validity = case.validity(detector)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "LARGEST_BLOCK", 1 << bits)
        found = list(blocks.blocks(validity))
    space = validity.record.space
    size = min(1 << bits, space.size)
    assert [int(block.indices[0]) for block in found] == list(range(0, space.size, size))
    masks = [space.mask(index) for index in range(space.size)]
    valid = np.concatenate([block.valid for block in found])
    populations = np.concatenate([block.populations for block in found])
    assert valid.tolist() == case.verdicts(detector, masks)
    covered = np.array([len(case.covered(mask)) for mask in masks])
    assert populations[valid].tolist() == covered[valid].tolist()
