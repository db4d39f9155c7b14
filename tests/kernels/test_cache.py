"""No kernel goes on as it was compiled before another's source changed."""

from __future__ import annotations

import os
from pathlib import Path

from pcor._kernels import compiled_folder, forget_older
from pcor._kernels.coverage import cell_totals


def test_a_kernel_compiled_before_the_latest_source_is_compiled_again(tmp_path: Path) -> None:
    cache = tmp_path / "__pycache__"
    cache.mkdir()
    files = {"one.py": 10, "two.py": 30}
    indices = {"one.f.nbi": 20, "two.g.nbi": 40, "one.h.nbi": 30}
    indices |= {"one.f.1.nbc": 20, "one.f.2.nbc": 20, "two.g.1.nbc": 20}
    for folder, written in ((tmp_path, files), (cache, indices)):
        for name, seconds in written.items():
            (folder / name).touch()
            os.utime(folder / name, (seconds, seconds))
    forget_older(tmp_path, cache)
    assert {one.name for one in cache.iterdir()} == {"two.g.nbi", "one.h.nbi", "two.g.1.nbc"}


def test_a_folder_without_a_cache_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "one.py").touch()
    forget_older(tmp_path, tmp_path / "__pycache__")
    assert [one.name for one in tmp_path.iterdir()] == ["one.py"]


def test_all_kernels_are_kept_in_the_folder_that_is_tidied() -> None:
    assert compiled_folder() == Path(cell_totals.stats.cache_path)
