"""``python -m bench.load``: a service with two workers under load, in units of its own empty route.

On SQLite and on a PostgreSQL of our own: how many stored answers and fresh releases it gives for
each request of a route that does nothing (``/v1/health``), measured in the same run; and what
becomes of everybody when one key asks ten times as much as can be drawn: how the flood is answered,
how long another analyst waits meanwhile, and how soon all is as before. Clients and service share
the machine's cores, so figures are ratios. Nothing may be lost: what was accepted is answered, each
was charged once, the books verify.
"""

from __future__ import annotations

import argparse
import os
import platform
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from sqlalchemy import func, select

from bench.service import EPSILON, QUICK, Caller, ask, question, release, stored, wait_for_service
from pcor.ledger import Ledger, tables
from pcor.service.core.settings import ServiceSettings
from pcor.service.run import ANALYST, DEMO, DemoKeys, prepare_demo

RELEASE = "fresh release, asked, charged, drawn and stored"
OVERLOAD = 10  # times as much as can be drawn
FLOODING = "flood"  # the analyst who asks too much
POLITE = (200, 202, 409, 429, 503)  # accepted, or told to come back
SENDERS = 64  # so many wait for an answer of the service at once, and send nothing meanwhile
FEW = 4  # questions of the analyst who asks little, while the other floods
FIRST = 50_000  # the first question of the analyst who asks little
# An answer that takes up to so many times as long as before is as before.
AS_BEFORE = 1.5
MOST = 60.0  # seconds that recovery is waited for


@dataclass(frozen=True)
class Place:
    """A service that runs.

    Attributes:
        port: where.
        keys: of the owner and an analyst.
        flooding: the key of another analyst.
        ledger: its books.
    """

    port: int
    keys: DemoKeys
    flooding: str
    ledger: Ledger

    def caller(self) -> Caller:
        """Return a connection of the analyst who asks little."""
        return Caller(self.port, self.keys.analyst)

    def open_questions(self) -> int:
        """Return how many questions were charged and not answered."""
        waiting = select(func.count()).where(tables.requests.c.answer.is_(None))
        with self.ledger.database.reading() as connection:
            return int(connection.execute(waiting).scalar_one())


@contextmanager
def serving(url: str, folder: Path) -> Iterator[Place]:
    """Run ``pcor serve`` with two workers on the demo table."""
    (folder / "tables").mkdir()
    keys = prepare_demo(ServiceSettings(url, folder / "tables"), **QUICK)
    ledger = Ledger(url)
    ledger.set_budget(DEMO, 100_000)
    for name in (ANALYST, FLOODING):
        ledger.allot(DEMO, name, 100_000)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [str(Path(sys.executable).with_name("pcor")), "serve", "--database", url]
    command += ["--data", str(folder / "tables"), "--port", str(port), "--workers", "2"]
    command += ["--rate", "10000", "--delay", "1", "--tick", "0.5"]
    process = subprocess.Popen(  # noqa: S603 (our own words)
        command, stderr=subprocess.DEVNULL
    )
    try:
        wait_for_service(port)
        body = {"role": "analyst", "name": FLOODING, "days": 1}
        _, made = Caller(port, keys.owner).send("POST", "/v1/keys", body)
        yield Place(port, keys, made["key"], ledger)
    finally:
        process.terminate()
        process.wait()
        ledger.close()


def send_too_much(port: int, key: str, rate: float, seconds: float) -> tuple[Counter[int], float]:
    """Ask new questions at a steady rate, whatever becomes of them.

    Returns:
        How many were answered with which status; how many a second were sent.
    """
    begun, lock, asked = time.perf_counter(), threading.Lock(), 0
    found: Counter[int] = Counter()

    def one(_: int) -> None:
        nonlocal asked
        caller = Caller(port, key)
        while True:
            with lock:
                number, asked = asked, asked + 1
            late = begun + number / rate - time.perf_counter()
            if number >= rate * seconds or late < -seconds:  # it cannot be sent that fast
                return
            time.sleep(max(0.0, late))
            draw = 100_000 + number
            try:
                status, _answer = caller.send(
                    "POST", "/v1/releases", question(draw), call=f"flood-{draw}"
                )
            except OSError:
                status, caller = 0, Caller(port, key)
            with lock:
                found[status] += 1

    with ThreadPoolExecutor(SENDERS) as pool:
        list(pool.map(one, range(SENDERS)))
    return found, found.total() / (time.perf_counter() - begun)


class Calm:
    """An analyst who asks one question after the other, and the same stored answer again."""

    def __init__(self, place: Place) -> None:
        self._place, self._draw, self.refused = place, FIRST, 0
        self.name = release(place.caller(), FIRST)

    def _next(self) -> int:
        self._draw += 1
        return self._draw

    def fresh(self) -> float:
        """Return the seconds until a new question is answered, whatever comes in between."""
        caller, draw, begun = self._place.caller(), self._next(), time.perf_counter()
        while True:
            status, found = caller.send("POST", "/v1/releases", question(draw), call=f"calm-{draw}")
            if status in (200, 202):
                break
            self.refused += 1
            time.sleep(0.2)
        while found["state"] != "done":
            time.sleep(found["retry_after"] + 0.01)
            _, found = caller.send("GET", f"/v1/releases/{found['id']}")
        return time.perf_counter() - begun

    def stored(self, until: Callable[[], bool]) -> float:
        """Return the median seconds of a stored answer, asked for until something is so."""
        caller, times = self._place.caller(), list[float]()
        while not times or not until():
            begun = time.perf_counter()
            caller.send("GET", f"/v1/releases/{self.name}")
            times.append(time.perf_counter() - begun)
            time.sleep(0.02)
        return statistics.median(times)


def drawn(place: Place, count: int) -> float:
    """Return how many fresh releases a second are asked, charged, drawn and stored.

    Not until they are seen: the moments for that are fixed when a question is asked.
    """
    local, begun = threading.local(), time.perf_counter()

    def one(draw: int) -> None:
        if not hasattr(local, "caller"):
            local.caller = place.caller()
        ask(local.caller, draw, f"drawn-{draw}")

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(one, range(1, count + 1)))
    while place.open_questions():
        time.sleep(0.02)
    return count / (time.perf_counter() - begun)


@dataclass(frozen=True)
class Rate:
    """How often something can be had.

    Attributes:
        each: a second.
        empty: requests to the empty route a second, measured right before and right after it.
    """

    each: float
    empty: float

    @property
    def cost(self) -> float:
        """What one costs, in requests to the empty route."""
        return self.empty / self.each


def rates(place: Place, calm: Calm, seconds: float, count: int) -> dict[str, Rate]:
    """Return how often stored answers, by both ways, and fresh releases can be had."""

    def often(call: Callable[[Caller], tuple[int, Any]]) -> float:
        return stored(call, place.port, place.keys.analyst, seconds)

    def empty() -> float:
        return often(lambda caller: caller.send("GET", "/v1/health"))

    again, call = question(FIRST), f"bench-{FIRST}"
    measured: dict[str, Callable[[], float]] = {
        "stored answer, GET": lambda: often(
            lambda caller: caller.send("GET", f"/v1/releases/{calm.name}")
        ),
        "stored answer, POST again": lambda: often(
            lambda caller: caller.send("POST", "/v1/releases", again, call)
        ),
        RELEASE: lambda: drawn(place, count),
    }
    found, before = dict[str, Rate](), empty()
    for what, measure_one in measured.items():
        each, after = measure_one(), empty()
        found[what], before = Rate(each, (before + after) / 2), after
    return found


def overload(place: Place, calm: Calm, capacity: float, seconds: float) -> dict[str, Any]:
    """Let one key ask ten times too much; return what became of everybody."""
    alone = statistics.median(calm.fresh() for _ in range(3))
    quiet = time.perf_counter() + 1
    stored_alone = calm.stored(lambda: time.perf_counter() > quiet)
    with ProcessPoolExecutor(1) as other, ThreadPoolExecutor(FEW) as pool:
        rate = OVERLOAD * capacity
        flood = other.submit(send_too_much, place.port, place.flooding, rate, seconds)
        time.sleep(seconds / 3)
        waiting = [pool.submit(calm.fresh) for _ in range(FEW)]
        stored_meanwhile = calm.stored(flood.done)
        (statuses, sent), over = flood.result(), time.perf_counter()
        left = place.open_questions()
        meanwhile = max(one.result() for one in waiting)
    recovered = drained = None
    while recovered is None and time.perf_counter() < over + MOST:
        asked = time.perf_counter()
        if calm.fresh() <= AS_BEFORE * alone:
            recovered = max(0.0, asked - over)
    while drained is None and time.perf_counter() < over + MOST:
        drained = time.perf_counter() - over if place.open_questions() == 0 else None
        time.sleep(0.05)
    return {
        "statuses": statuses,
        "sent": sent / capacity,
        "alone": alone,
        "meanwhile": meanwhile / alone,
        "stored": stored_meanwhile / stored_alone,
        "refused": calm.refused,
        "recovered": recovered,
        "left": left,
        "drained": drained,
    }


def is_whole(place: Place) -> bool:
    """Whether every question was charged once, and the books verify."""
    with place.ledger.database.reading() as connection:
        charged = connection.execute(select(func.count()).select_from(tables.requests)).scalar_one()
    spent = place.ledger.status(DEMO).spent["ocdp"]
    return spent == Fraction(EPSILON) * charged and place.ledger.verify().ok


def report(name: str, rate: dict[str, Rate], found: dict[str, Any], whole: bool) -> None:
    """Print what was measured on one database."""
    print(f"{name}:")
    for what, one in rate.items():
        print(f"  {what}: {one.each:,.3g} a second, each as much as {one.cost:,.3g} empty requests "
              f"({one.empty:,.0f} a second)")  # fmt: skip
    said = found["statuses"]
    listed = ", ".join(f"{count} x {status}" for status, count in sorted(said.items()))
    impolite = sum(count for status, count in said.items() if status not in POLITE)
    for line in (
        f"one key tries {OVERLOAD} x as much, and gets to {found['sent']:.1f} x: {said.total()} "
        f"questions ({listed}); neither accepted nor told to come back: {impolite}",
        f"another analyst meanwhile: the slowest of {FEW} fresh answers takes "
        f"{found['meanwhile']:.2f} x as long as alone ({found['alone']:.1f} s), refused "
        f"{found['refused']} times; a stored answer {found['stored']:.1f} x",
        f"afterwards: as before {_after(found['recovered'])}; the {found['left']} questions left "
        f"were answered {_after(found['drained'])}",
        f"nothing charged twice, books whole: {whole}",
    ):
        print(f"  {line}", flush=True)


def _after(seconds: float | None) -> str:
    return f"not within {MOST:.0f} s" if seconds is None else f"after {seconds:.1f} s"


def measure(name: str, url: str, folder: Path, given: argparse.Namespace) -> None:
    """Start a service, load it, print what came of it, stop it."""
    with serving(url, folder) as place:
        with ThreadPoolExecutor(16) as pool:  # both processes load the table and compile
            list(pool.map(lambda n: release(place.caller(), 10_000 + n), range(16)))
        calm = Calm(place)
        rate = rates(place, calm, given.seconds, given.count)
        found = overload(place, calm, rate[RELEASE].each, given.flood)
        report(name, rate, found, is_whole(place))


def main() -> None:
    """Measure and print."""
    from tests.helpers.postgres import start_server

    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--count", type=int, default=60, help="fresh releases")
    options.add_argument("--seconds", type=float, default=2.0, help="for each kind of request")
    options.add_argument("--flood", type=float, default=3.0, help="seconds of the overload")
    given = options.parse_args()
    begun, server = time.perf_counter(), start_server()
    print(f"{platform.machine()}, {os.cpu_count()} cores, two workers")
    with tempfile.TemporaryDirectory(prefix="pcor-load-") as name:
        try:
            for place in ("SQLite", "PostgreSQL"):
                (folder := Path(name) / place).mkdir()
                if place == "SQLite":
                    measure(place, str(folder / "books.db"), folder, given)
                elif isinstance(server, str):
                    print(f"PostgreSQL: {server}")
                else:
                    measure(place, server.new_database(), folder, given)
        finally:
            if not isinstance(server, str):
                server.remove()
    took, load = time.perf_counter() - begun, os.getloadavg()[0]
    print(f"{took:.0f} s in all, load {load:.1f} at the end")


if __name__ == "__main__":
    main()
