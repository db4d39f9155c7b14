"""The folder for what does not fit into memory is private, and goes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from pyarrow import parquet

import pcor
from pcor.rows.engines import spill_folder
from tests.helpers.engines import SCHEMA, people
from tests.helpers.waiting import DEADLINE


def test_the_spill_folder_is_private_and_goes_with_the_table(tmp_path: Path) -> None:
    parquet.write_table(people(), tmp_path / "rows.parquet")
    before = set(spill_folder._folders)
    table = pcor.Table(tmp_path / "rows.parquet", SCHEMA, memory="1GiB")
    (folder,) = set(spill_folder._folders) - before
    assert folder.stat().st_mode & 0o777 == 0o700
    del table
    assert not folder.exists()


def test_a_folder_whose_process_is_gone_is_removed_and_no_other(tmp_path: Path) -> None:
    abandoned, strange = tmp_path / "pcor-spill-old", tmp_path / "pcor-spill-strange"
    for folder in (abandoned, strange):
        folder.mkdir()
    (abandoned / "lock").touch()
    (abandoned / "rows.tmp").write_text("private")
    spill_folder.remove_abandoned(tmp_path)
    assert not abandoned.exists()
    assert strange.exists()  # without a lock it is not ours


# The module by its file: importing all of pcor would take longer than the test.
WAITING = """
import importlib.util, sys, time
spec = importlib.util.spec_from_file_location("spill_folder", sys.argv[1])
spill_folder = importlib.util.module_from_spec(spec)
spec.loader.exec_module(spill_folder)
folder = spill_folder.spill_folder()
(folder / "rows.tmp").write_text("private")
print(folder, flush=True)
time.sleep(3600)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_the_folder_goes_when_the_process_is_ended(number: int, tmp_path: Path) -> None:
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    with subprocess.Popen(  # noqa: S603 (our own words)
        [sys.executable, "-c", WAITING, spill_folder.__file__],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        folder = Path(process.stdout.readline().strip())
        assert (folder / "rows.tmp").exists()
        process.send_signal(number)
        process.wait(DEADLINE)
    if number == signal.SIGKILL:
        assert folder.exists()
        spill_folder.remove_abandoned(tmp_path)
    assert not folder.exists()
