"""A real Spark cluster for tests: two executors, each a process of its own, on this machine only.

Spark's own ``local-cluster``: a master and two workers inside the driver, which start executors as
a standalone cluster does, and start others where one is lost. The driver is a process of its own,
too: the tests' process may have another session already. A Connect server listens in the same
driver, so that a second process can reach the same cluster without Java.

All of it ends with whoever started it, also where that is killed: a driver watches its parent, and
takes all of its own with it when it goes.
"""

from __future__ import annotations

import importlib.util
import multiprocessing
import os
import shutil
import signal
import subprocess
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.spark import INTERPRETED, PARTITIONS, QUICK_START
from tests.helpers.waiting import DEADLINE, until

EXECUTORS = 2  # each with one core
TASK_FAILURES = 2  # Spark gives up a query when the same task has failed so often; 4 if not told
SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.task.maxFailures": str(TASK_FAILURES),
    "spark.sql.shuffle.partitions": str(PARTITIONS),
    "spark.sql.files.minPartitionNum": "64",  # one for each small file
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",
}
QUICK = INTERPRETED | {"spark.executor.extraJavaOptions": QUICK_START}  # for few rows
CONNECT = {
    "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.connect.grpc.binding.port": "0",
}


# -- in the tests' process -------------------------------------------------------------------------


class Driver:
    """A process with a Spark session, where functions of the tests run one after the other.

    Args:
        start: makes the session in it.
        words: for ``start``.
    """

    def __init__(self, start: Callable[..., Any], *words: Any) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, other = context.Pipe()
        self._process = context.Process(target=_serve, args=(other,), daemon=True)
        self._process.start()
        other.close()
        try:
            self.started = self.run(start, *words)
        except BaseException:
            self.stop()
            raise

    def run(self, action: Callable[..., Any], *words: Any) -> Any:
        """Return what a function of a module returns in that process, or raise what it raises."""
        self._pipe.send((action, words))
        if not self._pipe.poll(DEADLINE):
            raise AssertionError(f"no answer after {DEADLINE:.0f} s")
        done, answer = self._pipe.recv()
        if not done:
            raise answer
        return answer

    def stop(self) -> None:
        """End the process, and all that it started."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid or 0, signal.SIGKILL)
        self._process.kill()  # if it was not yet at the head of a group
        self._process.join()
        self._pipe.close()


@contextmanager
def cluster(folder: Path, *, memory: int = 512, quick: bool = True) -> Iterator[Driver]:
    """Start a cluster; skip the tests that want one where there is none.

    Args:
        folder: where all of it writes.
        memory: how many megabytes the driver and each executor have.
        quick: whether it is soon there, or fast with many rows.
    """
    if importlib.util.find_spec("pyspark") is None:
        pytest.skip("needs pyspark, which is not installed here")
    if shutil.which("java") is None:
        pytest.skip("needs Java, which is not installed here")
    if not hasattr(os, "setsid"):
        pytest.skip("needs groups of processes, which this system does not have")
    driver = Driver(start_cluster, folder, memory, quick)
    try:
        yield driver
    finally:
        driver.stop()


@contextmanager
def connected(driver: Driver) -> Iterator[Driver]:
    """Start a client of the Connect server that listens in a driver."""
    if driver.started is None:
        pytest.skip("needs Spark Connect, which is not installed here: pip install grpcio-status")
    client = Driver(start_client, driver.started)
    try:
        yield client
    finally:
        client.stop()


# -- in the process of a driver --------------------------------------------------------------------

_sessions: list[Any] = []


def session() -> Any:
    """Return the session of this process."""
    return _sessions[-1]


def _serve(pipe: Connection) -> None:
    os.setsid()  # what is started from here can be ended together
    threading.Thread(target=_end_with_parent, daemon=True).start()
    warnings.simplefilter("ignore")  # PySpark speaks about the versions of other packages
    while True:
        action, words = pipe.recv()
        try:
            answer = True, action(*words)
        except Exception as error:
            answer = False, error
        pipe.send(answer)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os.killpg(0, signal.SIGKILL)


def start_cluster(folder: Path, memory: int, quick: bool) -> int | None:
    """Start a driver and its executors; return the port of the Connect server, if there is one."""
    from pyspark.find_spark_home import _find_spark_home
    from pyspark.sql import SparkSession

    # Workers write where Spark is installed; here that is a folder of links.
    home = folder / "spark"
    home.mkdir()
    for part in Path(_find_spark_home()).iterdir():
        (home / part.name).symlink_to(part)
    options = f"--driver-java-options '{QUICK_START}'" if quick else ""
    os.environ |= {
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(folder),
        "PYSPARK_SUBMIT_ARGS": f"--driver-memory {memory}m {options} pyspark-shell",
    }
    has_connect = importlib.util.find_spec("grpc_status") is not None
    settings = SETTINGS | {"spark.executor.memory": f"{memory}m"}
    settings |= (QUICK if quick else {}) | (CONNECT if has_connect else {})
    builder = SparkSession.builder.master(f"local-cluster[{EXECUTORS},1,{memory}]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    _sessions.append(builder.getOrCreate())
    until(lambda: len(executors()) == EXECUTORS)
    if not has_connect:
        return None
    services = session()._jvm.org.apache.spark.sql.connect.service
    return int(getattr(getattr(services, "SparkConnectService$"), "MODULE$").localPort())


def start_client(port: int) -> None:
    """Connect to a server on this machine."""
    from pyspark.sql import SparkSession

    _sessions.append(SparkSession.builder.remote(f"sc://127.0.0.1:{port}").getOrCreate())


def executors() -> list[int]:
    """Return the process ids of the executors that this process started."""
    listed = subprocess.run(
        ["ps", "-A", "-ww", "-o", "pid=,pgid=,stat=,args="],  # noqa: S607
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    rows = [line.split(None, 3) for line in listed.splitlines()]
    return [
        int(pid)
        for pid, group, state, *words in rows
        if int(group) == os.getpgrp()
        and "Z" not in state
        and "org.apache.spark.executor.CoarseGrainedExecutorBackend" in "".join(words)
    ]


def tasks() -> tuple[int, int]:
    """Return how many tasks run now, and how many have failed, of the stages that run now."""
    tracker = session().sparkContext._jsc.sc().statusTracker()
    infos = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    known = [info.get() for info in infos if info.isDefined()]
    return sum(i.numActiveTasks() for i in known), sum(i.numFailedTasks() for i in known)


def kill_all() -> None:
    """Kill all executors, and wait until others are there."""
    lost = executors()
    for pid in lost:
        os.kill(pid, signal.SIGKILL)
    until(lambda: len(set(executors()) - set(lost)) == EXECUTORS)


class Killer(threading.Thread):
    """Kills executors while all of them are at work, until the query goes on without or fails.

    Args:
        most: how many to kill, one at a time.

    Attributes:
        killed: how many were.
        noticed: after how many of them a query that was running went on with a task that failed.
    """

    def __init__(self, most: int) -> None:
        super().__init__(daemon=True)
        self.most, self.killed, self.noticed, self.over = most, 0, 0, False

    def run(self) -> None:
        while self.killed < self.most and not self.over:
            running, failed = tasks()
            here = executors()
            if here and running >= len(here):
                os.kill(here[0], signal.SIGKILL)
                self.killed += 1
                until(lambda failed=failed: self.over or tasks()[1] > failed)  # type: ignore[misc]
                self.noticed += not self.over


_killers: list[Killer] = []


def begin_to_kill(most: int) -> None:
    """Kill so many executors from now on, each in the middle of a query."""
    _killers.append(Killer(most))
    _killers[-1].start()


def end_of_killing() -> tuple[int, int]:
    """Return how many were killed, and after how many of them a query went on.

    All executors that were lost are there again.
    """
    killer = _killers.pop()
    killer.over = True
    killer.join()
    until(lambda: len(executors()) == EXECUTORS)
    return killer.killed, killer.noticed
