"""Can somebody who repeats a request tell whether its draw has ended? By the clock, over HTTP.

``python -m bench.timing`` serves the demo on loopback, with a delay so long that no answer is ever
seen. Half of the questions are stored, the draws of the others wait and use no processor: what a
search itself does to a machine that is measured by its owner's analysts is another matter
(docs/explanation/attack-model.md). Then it sends the same request again and again, in turn to a
question of either kind, and says how well the median of 40 tells the two apart: a threshold is
found on one half of the requests and tried on the other. 50 % is guessing.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

from sqlalchemy import func, select

from bench.service import QUICK, Caller, demo_served, question
from pcor.service.core import questions, tables
from pcor.service.core.jobs import Job
from pcor.service.core.keys import Key, read_keys
from pcor.service.core.problems import Problem
from pcor.service.core.service import Service
from pcor.service.core.settings import ServiceSettings
from pcor.service.run import ANALYST, serve
from pcor.service.server.sockets import listen

EACH = 4  # questions of either kind
GROUP = 40
LONG = 86_400.0
REGROUPED = 200

Times = list[float]


def call(draw: int) -> str:
    """Return the Idempotency-Key of a question; all are of one length."""
    return f"timing-{draw:06}"


# -- the service -----------------------------------------------------------------------------------


def serve_held(settings: ServiceSettings, port: int) -> None:
    """Serve; the draws of even numbers wait for ever."""
    from pcor.service.core import worker

    draw = worker.Drawer._draw

    def held(self: worker.Drawer, job: Job) -> Any:
        if int(job.request.key.rpartition("-")[2]) % 2 == 0:
            threading.Event().wait()
        return draw(self, job)

    worker.Drawer._draw = held  # type: ignore[method-assign]
    serve(settings, listen("127.0.0.1", port), workers=1)


@contextmanager
def served(folder: Path) -> Iterator[tuple[ServiceSettings, int, str]]:
    """Give the settings, the port and the analyst's key of a service in a process of its own."""
    (folder / "tables").mkdir()
    settings = ServiceSettings(
        str(folder / "books.db"),
        folder / "tables",
        delay=LONG,
        drawers=EACH + 1,
        rate=LONG,
        burst=10**6,
    )
    with demo_served("bench.timing", folder, settings, **QUICK) as at:
        yield at


def stored(service: Service, number: int) -> None:
    """Wait until so many answers are stored."""
    while True:
        with service.ledger.database.reading() as connection:
            noted = connection.execute(select(func.count(tables.jobs.c.shown))).scalar()
        if noted == number:
            return
        time.sleep(0.2)


# -- telling apart ---------------------------------------------------------------------------------


def in_turn(number: int, ask: Callable[[int], float]) -> tuple[Times, Times]:
    """Return the times of as many requests of either kind: running, stored; noise hits both."""
    running, done = Times(), Times()
    chance = random.Random(0)  # noqa: S311 (which is asked first)
    for place in range(number):
        draws = [2 + 2 * (place % EACH), 3 + 2 * (place % EACH)]
        for draw in chance.sample(draws, 2):
            (done if draw % 2 else running).append(ask(draw))
    return running, done


def told_apart(running: Times, done: Times, group: int) -> float:
    """Return in what share of tries the median of a group says which kind it is of.

    The groups are made at random, many times. Each time the threshold, and on which side of it the
    stored ones are, comes from one half of the requests, and is tried on the other.
    """
    chance, rights = random.Random(1), []  # noqa: S311 (which are put together)
    for _ in range(REGROUPED):
        halves = zip(*(_medians(times, group, chance) for times in (running, done)), strict=True)
        (learnt, tried) = halves
        at, above = _threshold(*learnt)
        right = [(one > at) == above for one in tried[1]]
        right += [(one > at) != above for one in tried[0]]
        rights.append(sum(right) / len(right))
    return statistics.fmean(rights)


def _medians(times: Times, group: int, chance: random.Random) -> tuple[Times, Times]:
    mixed = chance.sample(times, len(times))
    found = [
        statistics.median(mixed[place : place + group])
        for place in range(0, len(mixed) - group + 1, group)
    ]
    return found[: len(found) // 2], found[len(found) // 2 :]


def _threshold(running: Times, done: Times) -> tuple[float, bool]:
    """Return the threshold that tells these best, and whether the stored ones are above it."""
    marked = sorted([(one, False) for one in running] + [(one, True) for one in done])
    below, best = 0, (-1, 0.0, True)
    for one, is_done in marked:
        below += 1 if is_done else -1  # how many more stored ones than running ones so far
        best = max(best, (abs(below), one, below < 0))
    return best[1], best[2]


def report(what: str, running: Times, done: Times, group: int) -> None:
    """Print how well two kinds of requests are told apart."""
    gap = statistics.median(done) - statistics.median(running)
    print(
        f"  {what}: {100 * told_apart(running, done, group):.1f} % by the median of {group} "
        f"({len(done):,} of each; medians {1e3 * statistics.median(running):.3f} ms while it runs, "
        f"{1e6 * gap:+.1f} us once it is stored)",
        flush=True,
    )


# -- measuring -------------------------------------------------------------------------------------


def over_http(port: int, key: str, number: int) -> None:
    """Measure repeats by POST and looks by GET, from outside."""
    caller = Caller(port, key)
    names = {
        draw: str(caller.send("POST", "/v1/releases", question(draw), call(draw))[1]["release"])
        for draw in range(2, 2 + 2 * EACH)
    }

    def timed(expected: int, *words: Any) -> float:
        begun = time.perf_counter()
        status, _ = caller.send(*words)
        took = time.perf_counter() - begun
        if status != expected:
            raise SystemExit(f"status {status}, not {expected}")
        return took

    fresh = count(10**6)
    for what, ask in (
        ("POST again", lambda n: timed(409, "POST", "/v1/releases", question(n), call(n))),
        ("GET", lambda n: timed(200, "GET", f"/v1/releases/{names[n]}")),
        (
            "POST under another key",
            lambda n: timed(202, "POST", "/v1/releases", question(n), call(next(fresh))),
        ),
    ):
        in_turn(100, ask)
        report(what, *in_turn(number, ask), GROUP)


def in_process(service: Service, key: Key, number: int) -> None:
    """Measure the processor time of single repeats, as only the machine's owner could."""

    def ask(draw: int) -> float:
        asked = questions.Question(**question(draw))
        begun = time.thread_time()
        with suppress(Problem):
            questions.ask(service, key, asked, call(draw))
        return time.thread_time() - begun

    in_turn(100, ask)
    running, done = in_turn(number, ask)
    report("processor time of a repeat", running, done, 1)
    report("processor time of a repeat", running, done, GROUP)


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--count", type=int, default=2000, help="requests of each kind")
    options.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    options.add_argument("--port", type=int, default=0, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.serve is not None:
        serve_held(
            ServiceSettings.from_json((given.serve / "settings.json").read_text()), given.port
        )
        return
    with (
        tempfile.TemporaryDirectory(prefix="pcor-bench-") as name,
        served(Path(name)) as (settings, port, token),
    ):
        caller = Caller(port, token)
        for draw in range(2, 2 + 2 * EACH):
            caller.send("POST", "/v1/releases", question(draw), call(draw))
        service = Service(settings)
        stored(service, EACH)
        with service.ledger.database.reading() as connection:
            (key,) = (one for one in read_keys(connection) if one.name == ANALYST)
        over_http(port, token, given.count)
        in_process(service, key, given.count)
        service.ledger.close()
    load = os.getloadavg()[0]
    print(f"{platform.machine()}, {os.cpu_count()} cores, load {load:.1f} at the end")


if __name__ == "__main__":
    main()
