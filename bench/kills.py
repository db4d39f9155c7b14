"""``python -m bench.kills``: a hundred kills while clients ask, and what became of their answers.

Service processes are ended as kill -9 does, at random moments and at each step of a question; a
PostgreSQL of our own is stopped at once, as in a crash, and started again. All of it at an epsilon
at which a second draw is mostly another one, so that an answer that was replaced would be seen. It
counts what must be none: questions that were charged twice, answers that changed when they were
asked for again, questions or charges that were never answered. ``--kills 20`` makes a short run.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

import pcor
from pcor.audit import exact_distribution
from tests.helpers.postgres import Server, start_server
from tests.helpers.service_fire import EPSILON, Fire
from tests.helpers.service_world import OUTLIER, SCHEMA, columns, registration
from tests.helpers.service_zygote import STEPS, Services
from tests.helpers.waiting import DEADLINE, until

CLIENTS = 6


@dataclass(frozen=True)
class Count:
    """What came of the kills on one database.

    Attributes:
        kills: how many of what.
        answered: questions that their client got an answer to.
        again: draws that were made a second time, because the first was lost unseen.
        twice: questions that were charged more than once.
        changed: answers that were another one when they were asked for again.
        lost: charges without an answer, and answers without a charge.
        whole: whether the books verify and what was spent is the sum of the charges.
    """

    kills: Counter[str]
    answered: int
    again: int
    twice: int
    changed: int
    lost: int
    whole: bool

    @property
    def ok(self) -> bool:
        """Whether nothing is left to explain."""
        return self.whole and not (self.twice or self.changed or self.lost)


class Clients:
    """Analysts who ask one question after the other, each under a key of its own."""

    def __init__(self, fire: Fire) -> None:
        self._fire, self._over = fire, threading.Event()
        self.answers: dict[int, dict[str, Any]] = {}

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Ask until the block ends, and wait for what was asked by then."""
        with ThreadPoolExecutor(CLIENTS) as pool:
            working = [pool.submit(self._ask, first) for first in range(1, CLIENTS + 1)]
            try:
                yield
            finally:
                self._over.set()
            for work in working:
                work.result(DEADLINE)

    def _ask(self, draw: int) -> None:
        while not self._over.is_set():
            self.answers[draw] = self._fire.ask(draw, f"key-{draw}")
            draw += CLIENTS

    def wait_for_more(self, than: int) -> None:
        """Wait until the services answer again."""

        def are_there() -> bool:
            keep_two(self._fire)
            return len(self.answers) > than

        until(are_there)

    def again(self) -> dict[int, dict[str, Any]]:
        """Return all answers as they are now."""
        with ThreadPoolExecutor(CLIENTS) as pool:
            found = pool.map(lambda draw: self._fire.ask(draw, f"key-{draw}"), self.answers)
            return dict(zip(self.answers, found, strict=True))


def keep_two(fire: Fire) -> None:
    """Start what has ended by itself, as one does that came up while the database was away."""
    running = fire.services.running
    running[:] = [process for process in running if Path(f"/proc/{process}").exists()]
    while len(running) < 2:
        fire.start()


def kill(fire: Fire, number: int, server: Server | None, numbers: random.Random) -> str:
    """End something; return what."""
    keep_two(fire)
    if number % 2:
        fire.services.wait_for_death(fire.start(STEPS[number // 2 % len(STEPS)]))
        return "a process, at a step"
    time.sleep(numbers.uniform(0, 0.3))
    if server is not None and number % 3 != 1:
        server.stop()
        time.sleep(numbers.uniform(0, 0.2))
        server.start()
        return "the database"
    fire.services.kill(numbers.choice(fire.services.running))
    fire.start()
    return "a process, at a random moment"


def measure(url: str, folder: Path, kills: int, server: Server | None = None) -> Count:
    """Kill so often while clients ask; count what is left."""
    services = Services()
    fire = Fire(url, folder, services)
    fire.budget("1000")
    numbers = random.Random()  # noqa: S311 (when to kill)
    clients, ended = Clients(fire), Counter[str]()
    try:
        keep_two(fire)
        with clients.asking():
            for number in range(kills):
                before = len(clients.answers)
                ended[kill(fire, number, server, numbers)] += 1
                said = f"\r{number + 1} of {kills} kills, {len(clients.answers)} answers"
                print(said, end="", file=sys.stderr, flush=True)
                clients.wait_for_more(before)
        until(lambda: fire.count("answer").keys() == fire.count("charge").keys())
        again, charges = clients.again(), fire.count("charge")
        print(file=sys.stderr)
        return Count(
            ended,
            len(clients.answers),
            sum(fire.drawn().values()) - len(charges),
            sum(count > 1 for count in charges.values()),
            sum(clients.answers[draw] != again[draw] for draw in again),
            abs(len(charges) - len(clients.answers))
            + len(charges.keys() ^ fire.count("answer").keys()),
            _is_whole(fire),
        )
    finally:
        services.close()
        fire.ledger.close()


def _is_whole(fire: Fire) -> bool:
    try:
        fire.check()
    except AssertionError:
        return False
    return True


def alike() -> float:
    """Return the chance that a second draw is the same as the first, exactly."""
    table = pcor.Table(pa.table(columns()), SCHEMA)
    detector = registration()["detector"]
    chances = exact_distribution(table, OUTLIER, EPSILON, detector=detector).values()
    return float(sum(chance**2 for chance in chances))


def main() -> None:
    """Kill, count and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--kills", type=int, default=100, help="on both databases together")
    kills = options.parse_args().kills
    server = start_server()
    print(f"{platform.machine()}, {os.cpu_count()} cores; epsilon {EPSILON}: a second draw is the "
          f"same as the first with probability {alike():.3f}")  # fmt: skip
    found: dict[str, Count] = {}
    with tempfile.TemporaryDirectory(prefix="pcor-kills-") as name:
        for place in ("SQLite", "PostgreSQL"):
            folder = Path(name) / place
            folder.mkdir()
            if place == "SQLite":
                share = kills if isinstance(server, str) else 2 * kills // 5
                found[place] = measure(str(folder / "books.db"), folder, share)
            elif isinstance(server, str):
                print(f"PostgreSQL: {server}")
            else:
                try:
                    url = server.new_database()
                    found[place] = measure(url, folder, kills - 2 * kills // 5, server)
                finally:
                    server.remove()
    for place, one in found.items():
        told = ", ".join(f"{count} of {what}" for what, count in sorted(one.kills.items()))
        print(f"{place}: {sum(one.kills.values())} kills ({told})")
        print(f"  {one.answered} questions answered, {one.again} draws lost and made again")
        print(f"  charged twice: {one.twice}; changed: {one.changed}; lost: {one.lost}; "
              f"books whole: {one.whole}")  # fmt: skip
    if not all(one.ok for one in found.values()):
        raise SystemExit("something was charged twice, changed or lost")


if __name__ == "__main__":
    main()
