"""Weights of contexts by looking them up, against sums over cells; for both kernels that use it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pcor._kernels.total_table import total
from pcor.search import total_table
from tests.helpers.family_tables import family_table
from tests.helpers.kernel_cases import EXAMPLES


@settings(max_examples=EXAMPLES)
@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 40, 1 << 22]), st.sampled_from([0, 64]))
def test_a_looked_up_weight_is_the_sum_over_covered_cells(seed: int, most: int, few: int) -> None:
    some = family_table(seed, largest=5)
    space, cells = some.table.record(some.record).space, some.table.cells
    required = space.step_bits(space.indices_of(cells.cell_required))
    weights = np.random.default_rng(seed).integers(0, 9, len(required))
    contexts = space.step_bits(np.arange(min(space.size, 500), dtype=np.uint64))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(total_table, "_LARGEST_TABLE", most)
        patch.setattr(total_table, "_FEW_GROUPS", few)
        table = total_table.total_table(space, required, weights)
    expected = [int(weights[required & ~context == 0].sum()) for context in contexts]
    assert [total(table, context) for context in contexts] == expected
