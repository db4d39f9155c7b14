"""The tests of one file share a worker; what takes longest is begun first."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from tests.helpers.scheduling import group, rank

ROOT = Path(__file__).parents[2]

CONFTEST = """
from tests.conftest import pytest_collection_modifyitems, pytest_xdist_make_scheduler
"""
TESTS = """
import os, pathlib, pytest, time

@pytest.mark.parametrize("number", range(6))
def test_one(number):
    with open("seen.txt", "a") as seen:
        print(pathlib.Path(__file__).stem, os.environ["PYTEST_XDIST_WORKER"], file=seen)
    time.sleep(0.02)  # so that another worker would take some, if it could
"""


def test_the_tests_of_one_file_share_a_worker(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    for name in ("a", "b", "c", "d"):
        (tmp_path / f"test_{name}.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "2", "."],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "24 passed" in ran.stdout, ran.stdout + ran.stderr
    workers = defaultdict(set)
    for line in (tmp_path / "seen.txt").read_text().splitlines():
        file, worker = line.split()
        workers[file].add(worker)
    assert [len(each) for each in workers.values()] == [1] * 4
    assert len(set.union(*workers.values())) == 2


@pytest.mark.parametrize(
    ("test", "together"),
    [
        ("tests/rows/test_table.py::test_x[1]", "tests/rows/test_table.py"),
        ("tests/rows/engines/test_servers.py::test_coe[spark-lof]", "spark"),
        ("tests/docs/test_pages.py::test_links[a.md]", "tests/docs/test_pages.py"),
    ],
)
def test_the_group_of_a_test_is_its_file_but_for_spark(test: str, together: str) -> None:
    assert group(test) == together


def test_each_page_is_a_group_of_its_own_and_is_begun_early() -> None:
    page = "tests/docs/test_pages.py::test_a_page_does_what_it_says_from_top_to_bottom[{}.md]"
    assert group(page.format("a")) != group(page.format("b"))
    assert rank("x[spark]") < rank(page.format("a")) < rank("tests/rows/test_table.py::test_x")
