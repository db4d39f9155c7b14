"""How many requests a service answers: stored answers, and fresh releases on the demo table.

``python -m bench.service`` starts a real ``pcor serve`` with two worker processes on loopback, on a
SQLite ledger in a temporary folder, and counts. Clients and service share the machine's cores, so
the processor time of a release is counted as well: that of the service with the processes that draw
for it, and that of the clients. Nobody sees an answer before the delay is over, so releases a
second need many clients. Nothing may be lost: every fresh question has its answer, each was charged
once, the books verify.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from fractions import Fraction
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from pcor.demo import PLANTED
from pcor.ledger import Ledger
from pcor.service.core.settings import ServiceSettings
from pcor.service.run import ANALYST, DEMO, prepare_demo

EPSILON = "0.1"  # the smallest preset of the demo
COME_BACK = (429, 503)  # too many open questions, or too many who wait to write
# What is measured is the service, so the search is a quick one that takes as long for every record.
QUICK = {"search": "breadth_first", "samples": 50}


class Caller:
    """One connection that is kept open, as a program's is."""

    def __init__(self, port: int, key: str) -> None:
        self._connection = HTTPConnection("127.0.0.1", port, timeout=120)
        self._key = key
        self.retry_after = 0.0  # seconds, of the last answer

    def send(
        self, method: str, path: str, body: Any = None, call: str | None = None
    ) -> tuple[int, dict[str, Any]]:
        """Send a request; return its status and its answer."""
        headers = {"Authorization": f"Bearer {self._key}"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        if call is not None:
            headers["Idempotency-Key"] = call
        content = None if body is None else json.dumps(body)
        try:
            self._connection.request(method, path, content, headers)
            answer = self._connection.getresponse()
        except ConnectionError:  # the service closes connections that were quiet for a while
            self._connection.close()
            self._connection.request(method, path, content, headers)
            answer = self._connection.getresponse()
        self.retry_after = float(answer.headers.get("Retry-After", 0))
        found: dict[str, Any] = json.loads(answer.read())
        return answer.status, found


def question(draw: int) -> dict[str, Any]:
    """Return one of the demo's questions."""
    record = PLANTED[draw % len(PLANTED)].record
    return {"dataset": DEMO, "record": record, "epsilon": EPSILON, "draw": draw}


def ask(caller: Caller, draw: int, call: str) -> dict[str, Any]:
    """Ask a fresh question until it is accepted, as often as told to; return where it stands."""
    while True:
        status, found = caller.send("POST", "/v1/releases", question(draw), call=call)
        if status in (200, 202):
            return found
        if status not in COME_BACK:
            raise SystemExit(f"refused: {found}")
        time.sleep(caller.retry_after)


def release(caller: Caller, draw: int) -> str:
    """Ask a fresh question and wait for its answer; return its name."""
    found = ask(caller, draw, f"bench-{draw}")
    while found["state"] != "done":
        time.sleep(found["retry_after"] + 0.01)
        _, found = caller.send("GET", f"/v1/releases/{found['id']}")
    if found["release"] is None:
        raise SystemExit(f"no release: {found}")
    return str(found["id"])


def fresh(port: int, key: str, count: int, clients: int) -> tuple[float, list[str]]:
    """Return how many fresh releases a second were asked, drawn and seen; and their names."""
    local = threading.local()

    def one(draw: int) -> str:
        if not hasattr(local, "caller"):
            local.caller = Caller(port, key)
        return release(local.caller, draw)

    begun = time.perf_counter()
    with ThreadPoolExecutor(clients) as pool:
        names = list(pool.map(one, range(2, count + 2)))
    return count / (time.perf_counter() - begun), names


def stored(call: Callable[[Caller], tuple[int, Any]], port: int, key: str, seconds: float) -> float:
    """Return how many stored answers a second came back."""
    until = time.perf_counter() + seconds

    def one(_: int) -> int:
        caller, count = Caller(port, key), 0
        while time.perf_counter() < until:
            status, _answer = call(caller)
            if status != 200:
                raise SystemExit(f"a stored answer came back with status {status}")
            count += 1
        return count

    with ThreadPoolExecutor(8) as pool:
        return sum(pool.map(one, range(8))) / seconds


def measure(count: int, seconds: float, clients: int, drawers: int) -> dict[str, Any]:
    """Start a service, measure, check that nothing was lost, stop it."""
    with tempfile.TemporaryDirectory(prefix="pcor-bench-") as name:
        folder = Path(name)
        (folder / "tables").mkdir()
        url = str(folder / "books.db")
        keys = prepare_demo(ServiceSettings(url, folder / "tables"), **QUICK)
        ledger = Ledger(url)
        ledger.set_budget(DEMO, 1000)
        ledger.allot(DEMO, ANALYST, 1000)
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        command = [str(Path(sys.executable).with_name("pcor")), "serve", "--database", url]
        command += ["--data", str(folder / "tables"), "--port", str(port), "--workers", "2"]
        command += ["--rate", "10000", "--delay", "1", "--tick", "0.5", "--drawers", str(drawers)]
        command += ["--open-questions", "1000"]
        process = subprocess.Popen(  # noqa: S603 (our own words)
            command, stderr=subprocess.DEVNULL
        )
        try:
            wait_for_service(port)
            with ThreadPoolExecutor(4) as pool:  # both processes load the table and compile
                list(pool.map(lambda n: release(Caller(port, keys.analyst), 10_000 + n), range(4)))
            before = Used.until_now(process.pid)
            rate, names = fresh(port, keys.analyst, count, clients)
            used = Used.until_now(process.pid).since(before)
            spent = ledger.status(DEMO).spent["ocdp"]
            whole = ledger.verify().ok and spent == Fraction(EPSILON) * (count + 4)
            before = Used.until_now(process.pid)
            gets = stored(
                lambda c: c.send("GET", f"/v1/releases/{names[0]}"), port, keys.analyst, seconds
            )
            each = Used.until_now(process.pid).since(before).serving / (gets * seconds)
            posts = stored(
                lambda c: c.send("POST", "/v1/releases", question(2), call="bench-2"),
                port,
                keys.analyst,
                seconds,
            )
        finally:
            process.terminate()
            process.wait()
        return {
            "fresh releases a second": round(rate, 1),
            "stored answers a second, GET": round(gets),
            "stored answers a second, POST again": round(posts),
            "processor time of a fresh release, ms": {
                what: round(1000 * spent / count, 1) for what, spent in asdict(used).items()
            },
            "processor time of the service for a stored answer, ms": round(1000 * each, 2),
            "nothing lost": whole and len(set(names)) == count,
            "stopped cleanly": process.returncode in (0, -15),
        }


@dataclass(frozen=True)
class Used:
    """Processor time in seconds.

    Attributes:
        serving: of the processes that answer.
        drawing: of those that draw for them.
        asking: of the clients, which are this process.
    """

    serving: float
    drawing: float
    asking: float

    @classmethod
    def until_now(cls, service: int) -> Used:
        """Return what was used by now.

        Args:
            service: the process whose children answer; theirs draw.
        """
        times = _processor_times()
        answering = [number for number, (parent, _) in times.items() if parent == service]
        drawing = sum(spent for parent, spent in times.values() if parent in answering)
        serving = sum(times[number][1] for number in (service, *answering))
        return cls(serving, drawing, time.process_time())

    def since(self, before: Used) -> Used:
        """Return what was used since then."""
        return Used(
            self.serving - before.serving,
            self.drawing - before.drawing,
            self.asking - before.asking,
        )


def _processor_times() -> dict[int, tuple[int, float]]:
    """Return the parent of every process, and the seconds that it has used."""
    found, tick = {}, os.sysconf("SC_CLK_TCK")
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended
            fields = stat.read_text().rpartition(")")[2].split()
            used = (int(fields[11]) + int(fields[12])) / tick
            found[int(stat.parent.name)] = (int(fields[1]), used)
    return found


@contextmanager
def demo_served(
    module: str, folder: Path, settings: ServiceSettings, **options: Any
) -> Iterator[tuple[ServiceSettings, int, str]]:
    """Give the settings, the port and the analyst's key of the demo, served by a bench's process.

    Args:
        module: the bench, which serves when it is called with ``--serve`` and ``--port``.
        folder: where the process finds the settings.
        settings: how it serves.
        **options: of ``pcor.release``, for the demo's registration.
    """
    keys = prepare_demo(settings, **options)
    (folder / "settings.json").write_text(settings.to_json())
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", module, "--serve", str(folder), "--port", str(port)]
    process = subprocess.Popen(command)  # noqa: S603 (our own words)
    try:
        wait_for_service(port)
        yield settings, port, keys.analyst
    finally:
        process.terminate()
        process.wait()


def wait_for_service(port: int) -> None:
    """Wait until a service that was started answers."""
    for _ in range(600):
        try:
            if Caller(port, "").send("GET", "/v1/readiness")[0] == 200:
                return
        except OSError:
            time.sleep(0.2)
    raise SystemExit("the service did not start")


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--count", type=int, default=1500, help="fresh releases")
    options.add_argument(
        "--seconds", type=float, default=5.0, help="for each kind of stored answer"
    )
    options.add_argument(
        "--clients", type=int, default=160, help="who wait for fresh releases at once"
    )
    options.add_argument("--drawers", type=int, default=1, help="searches at once in each process")
    given = options.parse_args()
    found = measure(given.count, given.seconds, given.clients, given.drawers)
    load = os.getloadavg()[0]
    print(f"{platform.machine()}, {os.cpu_count()} cores, load {load:.1f} at the end")
    for what, value in found.items():
        print(f"  {what}: {value}")


if __name__ == "__main__":
    main()
