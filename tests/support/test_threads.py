"""Work on all cores: every place once, and the same answers as on one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pcor
from pcor.support import threads
from tests.helpers.kernel_cases import SMALL, Case, cases, detectors, often, sometimes


@often
@given(st.integers(0, 5000), st.integers(1, 600), st.integers(1, 9))
def test_slices_cover_every_place_once(count: int, smallest: int, cores: int) -> None:
    done = np.zeros(count, dtype=np.int64)

    def work(part: slice) -> None:
        done[part] += 1

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threads, "cores", lambda: cores)
        threads.in_slices(count, work, smallest)
    assert done.tolist() == [1] * count


@pytest.mark.parametrize("count", [1, 10_000])
def test_an_error_in_any_slice_reaches_the_caller(count: int) -> None:
    def work(part: slice) -> None:
        if part.stop == count:
            raise KeyError("the last slice")

    with pytest.raises(KeyError, match="the last slice"):
        threads.in_slices(count, work)


@sometimes
@given(cases(SMALL), detectors, st.integers(0, 2**32 - 1))
def test_the_number_of_cores_changes_no_answer(
    case: Case, detector: pcor.Detector, seed: int
) -> None:
    places = np.random.default_rng(seed).integers(0, len(case.masks), 700)
    words = case.words[places]
    expected = np.array(case.verdicts(detector))[places]
    populations = np.array([len(case.covered(mask)) for mask in case.masks])[places]
    for cores in (1, 2, 5):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(threads, "cores", lambda cores=cores: cores)
            validity = case.validity(detector)
            assert np.array_equal(validity.judge(case.cells, words), expected)
            assert np.array_equal(case.table.cells.populations(words), populations)
