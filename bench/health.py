"""Does the length of a search show in the latency of anything else? By the clock, over HTTP.

``python -m bench.health`` serves the demo on loopback, twice: searches in threads of the process
that answers, and in processes of their own. It asks one question after the other, each with a
search of another length, and meanwhile asks `/v1/health` again and again, without a key. It says
how far the mean latency, over a while that is the same for all, goes with the length of the search:
1 is all the way, 0 is not at all. What is left of it with processes is the machine's processors.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from bench.service import Caller, demo_served, question
from pcor.service.core.jobs import Job
from pcor.service.core.keys import Key, read_keys
from pcor.service.core.service import Service
from pcor.service.core.settings import ServiceSettings
from pcor.service.run import register_demo, serve
from pcor.service.server.sockets import listen

# How many samples a search takes, which is about in proportion to its length.
SAMPLES = (300, 5400, 900, 4800, 1500, 6000, 2100, 3600, 2700, 4200)
WHILE = 7.0  # seconds in which health is asked for, the same for every search
PAUSE = 0.02


# -- the service -----------------------------------------------------------------------------------


def serve_noting(settings: ServiceSettings, port: int, notes: Path) -> None:
    """Serve, and note how long each draw took: what nobody but this measurement may know."""
    from pcor.service.core import worker

    draw = worker.Drawer._draw

    def noted(self: worker.Drawer, job: Job) -> Any:
        begun = time.perf_counter()
        try:
            return draw(self, job)
        finally:
            with notes.open("a") as stream:
                stream.write(f"{time.perf_counter() - begun}\n")

    worker.Drawer._draw = noted  # type: ignore[method-assign]
    serve(settings, listen("127.0.0.1", port), workers=1)


@contextmanager
def served(folder: Path, apart: bool) -> Iterator[tuple[ServiceSettings, int, str]]:
    """Give the settings, the port and the analyst's key of a service in a process of its own."""
    (folder / "tables").mkdir()
    settings = ServiceSettings(
        str(folder / "books.db"), folder / "tables", delay=0.5, tick=0.1, rate=1e4, apart=apart
    )
    with demo_served("bench.health", folder, settings) as at:
        yield at


# -- measuring -------------------------------------------------------------------------------------


def lengths(folder: Path, number: int) -> list[float]:
    """Wait until so many draws were noted, and return how long they took."""
    notes = folder / "notes"
    while not notes.exists() or len(notes.read_text().split()) < number:
        time.sleep(0.05)
    return [float(one) for one in notes.read_text().split()]


def mean_latency(port: int, seconds: float) -> float:
    """Ask for health for a while; return the mean of how long an answer took."""
    connection = HTTPConnection("127.0.0.1", port, timeout=120)
    took, end = [], time.perf_counter() + seconds
    while (begun := time.perf_counter()) < end:
        connection.request("GET", "/v1/health")
        connection.getresponse().read()
        took.append(time.perf_counter() - begun)
        time.sleep(PAUSE)
    return statistics.fmean(took)


class Place:
    """A service that draws one way, and what was measured at it.

    Args:
        folder: an empty one.
        settings: how it runs.
        port: where.
        token: the analyst's key.
    """

    def __init__(self, folder: Path, settings: ServiceSettings, port: int, token: str) -> None:
        self._folder, self._port, self._token = folder, port, token
        self._service = Service(settings)
        self._owner = _owner(self._service)
        self._asked = 0
        self.latencies: list[float] = []

    def measure(self, samples: int, seconds: float) -> None:
        """Ask a question, and for health while it is answered."""
        self._asked += 1
        register_demo(self._service, self._owner, search="random_walk", samples=samples)
        asked = ("POST", "/v1/releases", question(self._asked), f"health-{self._asked:06}")
        Caller(self._port, self._token).send(*asked)
        self.latencies.append(mean_latency(self._port, seconds))
        lengths(self._folder, self._asked)

    def report(self) -> str:
        """Return how far the latencies go with the lengths; the first two load and compile."""
        took, latencies = lengths(self._folder, self._asked)[2:], self.latencies[2:]
        correlation = statistics.correlation(took, latencies)
        slope = statistics.linear_regression(took, latencies).slope
        return (
            f"r = {correlation:+.2f} over {len(took)} searches of {min(took):.2f} to "
            f"{max(took):.2f} s; mean latency {1e3 * min(latencies):.1f} to "
            f"{1e3 * max(latencies):.1f} ms, {1e3 * slope:+.2f} ms for each second of search"
        )


@contextmanager
def place(apart: bool) -> Iterator[Place]:
    """Give a service that draws one way."""
    with tempfile.TemporaryDirectory(prefix="pcor-bench-") as name, served(Path(name), apart) as at:
        yield Place(Path(name), *at)


def _owner(service: Service) -> Key:
    with service.ledger.database.reading() as connection:
        return next(key for key in read_keys(connection) if key.role == "owner")


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=1, help="how often each length is measured")
    options.add_argument("--seconds", type=float, default=WHILE, help="for each search")
    options.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    options.add_argument("--port", type=int, default=0, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.serve is not None:
        settings = ServiceSettings.from_json((given.serve / "settings.json").read_text())
        serve_noting(settings, given.port, given.serve / "notes")
        return
    with place(apart=False) as threads, place(apart=True) as processes:
        for samples in (20, 20, *SAMPLES * given.rounds):
            for one in (threads, processes):  # in turn: what else the machine does meets both
                one.measure(samples, given.seconds)
        print(f"  in threads of the process that answers: {threads.report()}")
        print(f"  in processes of their own: {processes.report()}")
    load = os.getloadavg()[0]
    print(f"{platform.machine()}, {os.cpu_count()} cores, load {load:.1f} at the end")


if __name__ == "__main__":
    main()
