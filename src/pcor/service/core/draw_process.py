"""Draws in processes of their own, so that a search does not slow down whoever else is answered.

Private: the tables, which these processes keep, and their time. In one process a search and the
routes take turns at the interpreter, and then the length of a search can be read off the time that
any request takes, `/v1/health` without a key among them. What is left is what the machine's
processors tell (docs/explanation/attack-model.md): these processes leave one of them to whoever
answers, and are the last to get the others.

A drawing process writes nothing anywhere but into the socket to its parent, and ends when that is
closed, so also when its parent was killed. One that has died is started again for the next draw;
what it was drawing is no answer, and is tried again.
"""

from __future__ import annotations

import io
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from pcor.errors import LedgerError, SourceError
from pcor.public.schema import Schema
from pcor.releasing.answers import Outcome
from pcor.releasing.plan import Plan
from pcor.service.core.cache import LruCache
from pcor.service.core.draws import Draw, make_draw
from pcor.service.core.fingerprints import FileFingerprints
from pcor.service.core.settings import ENVIRONMENT
from pcor.service.core.sources import Tables

# How much less than others these processes ask of the processors.
NICENESS = 5
# So many plans each of them keeps: what a plan works out for one draw serves the next.
PLANS = 100
# Not as a module: the package would be imported twice, under two names. -P: nothing is imported
# from the folder that the service happens to be started in.
PROGRAM = ("-P", "-c", "from pcor.service.core.draw_process import main; main()")


class DrawFailed(Exception):
    """A draw failed for a reason of ours; only the type is named, as the words can hold rows."""


class DrawProcesses:
    """Draws in so many processes, each of which makes one draw at a time.

    Args:
        folder: the data folder.
        secret: the file with the service's secret.
        tables: how many tables each process keeps.
        processes: how many there are.
    """

    def __init__(self, folder: Path, secret: Path, *, tables: int, processes: int) -> None:
        self._all = [_Child((folder, secret, tables)) for _ in range(processes)]
        self._idle: SimpleQueue[_Child] = SimpleQueue()
        for child in self._all:
            self._idle.put(child)

    def start(self) -> None:
        """Start the processes; they load what they need while nobody waits."""
        for child in self._all:
            with suppress(OSError):  # the first draw tries again
                child.start()

    def draw(self, asked: Draw) -> Outcome:
        """Have it drawn by a process that has nothing to do."""
        child = self._idle.get()
        try:
            return child.draw(asked)
        finally:
            self._idle.put(child)

    def close(self) -> None:
        """End the processes; whoever waits for a draw is told that it has ended."""
        for child in self._all:
            child.close()


class _Child:
    """One drawing process, started again where it has died.

    Args:
        given: the folder, the secret's file and how many tables are kept.
    """

    def __init__(self, given: tuple[Path, Path, int]) -> None:
        self._given = given
        self._lock = threading.Lock()
        self._closed = False
        self._asked = 0
        self._running: tuple[subprocess.Popen[bytes], Connection] | None = None

    def start(self) -> Connection:
        """Return the way to the process, which is started if it does not run."""
        with self._lock:
            if self._closed:
                raise SourceError("the service ends; nothing more is drawn")
            if self._running is None or self._running[0].poll() is not None:
                self._running = _start(self._given)
            return self._running[1]

    def draw(self, asked: Draw) -> Outcome:
        """Send a question and wait for what came of it.

        Whatever goes wrong on the way ends the process: what it still has to say would be taken for
        the answer of the next question. For the same reason each has a number.
        """
        self._asked += 1
        try:
            connection = self.start()
            connection.send(_message(self._asked, asked))
            number, what, found = _Unpickler(connection.recv_bytes(), asked.plan).load()
            if number != self._asked:
                raise EOFError
        except (EOFError, OSError):
            self._end()
            raise SourceError(
                "the process that was drawing has ended; there is no answer"
            ) from None
        except BaseException:
            self._end()
            raise
        if what == "failed":
            raise DrawFailed(str(found))
        if what == "no source":
            raise found
        outcome: Outcome = found
        return outcome

    def close(self) -> None:
        """End the process for good."""
        with self._lock:
            self._closed = True
            if self._running is not None:
                self._running[0].kill()  # it only reads; whoever waits for it sees it end
                self._running[0].wait()

    def _end(self) -> None:
        """Give up a process that does not answer; the next draw has a new one."""
        with self._lock:
            if self._running is not None:
                process, connection = self._running
                self._running = None
                connection.close()
                process.kill()
                process.wait()


def _start(given: tuple[Path, Path, int]) -> tuple[subprocess.Popen[bytes], Connection]:
    ours, theirs = socket.socketpair()
    with theirs:
        # Whatever it, or a library in it, would print can hold rows.
        process = subprocess.Popen(  # noqa: S603 (our own words)
            [sys.executable, *PROGRAM, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            # The settings name the database, and may hold its password.
            env={name: said for name, said in os.environ.items() if name != ENVIRONMENT},
        )
    connection = Connection(ours.detach())
    with suppress(OSError):  # it has died already; who asks will see
        connection.send(given)
    return process, connection


# -- in the drawing process ------------------------------------------------------------------------


def main() -> None:
    """Draw what is asked for until nobody can ask any more."""
    # Ctrl+C and a supervisor's signal reach the whole group; the parent decides when to end.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    os.nice(NICENESS)
    _leave_a_processor()
    connection = Connection(int(sys.argv[1]))
    questions: SimpleQueue[Any] = SimpleQueue()
    threading.Thread(target=_listen, args=(connection, questions), daemon=True).start()
    folder, secret, most = questions.get()
    tables = Tables(folder, most, FileFingerprints(secret))
    plans: LruCache[bytes, Plan] = LruCache(PLANS)
    while True:
        number, plan, source, file_fingerprint, record = questions.get()
        asked = Draw(source, file_fingerprint, _known(plans, plan), record)
        _reply(connection, asked.plan, number, *_made(tables, asked))


def _known(plans: LruCache[bytes, Plan], sent: bytes) -> Plan:
    """Return a plan that was sent; the same one for the same plan."""
    plan = plans.get(sent)
    if plan is None:
        plan = pickle.loads(sent)  # noqa: S301 (our parent sent it)
        plans.put(sent, plan)
    return plan


def _leave_a_processor() -> None:
    """Use all processors but one, which is left to the processes that answer."""
    if hasattr(os, "sched_setaffinity"):
        first, *others = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, others or [first])


def _listen(connection: Connection, questions: SimpleQueue[Any]) -> None:
    """Read from beside the draws, so that a parent that is gone is noticed during one."""
    try:
        while True:
            questions.put(connection.recv())
    finally:  # also where it cannot be read: nobody would ever be answered
        os._exit(0)


def _made(tables: Tables, asked: Draw) -> tuple[str, Outcome | str]:
    try:
        return "outcome", make_draw(tables, asked)
    except (SourceError, LedgerError) as error:
        return "no source", error
    except MemoryError:
        return "no source", SourceError("there is not enough memory for this draw")
    except Exception as error:
        return "failed", type(error).__name__


def _reply(
    connection: Connection, plan: Plan, number: int, what: str, found: Outcome | str
) -> None:
    try:
        said = _pickled((number, what, found), plan)
    except Exception as error:  # it cannot be sent
        said = _pickled((number, "failed", type(error).__name__), plan)
    try:
        connection.send_bytes(said)
    except OSError:
        os._exit(0)


# -- between them: whoever asked has the plan and its schema, so neither is sent back --------------


def _message(number: int, asked: Draw) -> tuple[Any, ...]:
    return number, pickle.dumps(asked.plan), asked.source, asked.file_fingerprint, asked.record


def _pickled(reply: object, plan: Plan) -> bytes:
    said = io.BytesIO()
    _Pickler(said, plan).dump(reply)
    return said.getvalue()


class _Pickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO, plan: Plan) -> None:
        super().__init__(file)
        self._plan = plan

    def persistent_id(self, thing: object) -> str | None:
        if thing is self._plan:
            return "plan"
        return "schema" if isinstance(thing, Schema) and thing == self._plan.schema else None


class _Unpickler(pickle.Unpickler):
    def __init__(self, said: bytes, plan: Plan) -> None:
        super().__init__(io.BytesIO(said))
        self._plan = plan

    def persistent_load(self, name: str) -> Plan | Schema:
        return self._plan if name == "plan" else self._plan.schema
