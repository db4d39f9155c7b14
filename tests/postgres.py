"""A real PostgreSQL for tests: private, on a socket in a temporary folder, one per test run.

It is the system's own (``initdb`` and ``pg_ctl`` on the path or under /usr/lib/postgresql). Where
there is none, the tests that need it are skipped and say so. The server refuses to run as root, so
root runs it as the system's user ``postgres``.
"""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import tempfile
from contextlib import suppress
from functools import cache
from itertools import count
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

_numbers = count()


class Server:
    """A PostgreSQL server of our own, with as many empty places as are asked for."""

    def __init__(self, programs: Path, folder: Path, user: str | None) -> None:
        self._programs, self._folder, self._user = programs, folder, user
        self._data = folder / "data"
        # Every byte written is still there when the server is stopped; only power cuts differ.
        self._run("initdb", "-D", str(self._data), "-A", "trust", "-U", "pcor", "-E", "UTF8", "-N")
        self.start()

    def start(self) -> None:
        """Start the server and wait until it answers."""
        options = (
            f"-c listen_addresses='' -c unix_socket_directories='{self._folder}' -c fsync=off "
            "-c max_connections=200"
        )
        log = str(self._folder / "log")
        self._run("pg_ctl", "-D", str(self._data), "-w", "-l", log, "-o", options, "start")

    def stop(self) -> None:
        """Stop the server at once, as if it had crashed."""
        self._run("pg_ctl", "-D", str(self._data), "-w", "-m", "immediate", "stop")

    def new_database(self) -> str:
        """Return the URL of an empty place: a schema of its own, faster than a database."""
        name = f"test{next(_numbers)}_{os.getpid()}"
        place = f"postgresql://pcor@/postgres?host={self._folder}"
        with psycopg.connect(place, autocommit=True) as connection:
            connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(name)))
        return f"{place}&options=-csearch_path%3D{name}"

    def remove(self) -> None:
        """Stop the server and remove its folder."""
        with suppress(subprocess.CalledProcessError):  # a test may have stopped it
            self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _run(self, program: str, *words: str) -> None:
        command = [str(self._programs / program), *words]
        if self._user is not None:
            command = ["runuser", "-u", self._user, "--", *command]
        subprocess.run(  # noqa: S603 (our own words)
            command,
            check=True,
            cwd=self._folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
        )


def _programs() -> Path | None:
    on_path = shutil.which("pg_ctl")
    places = [Path(on_path).resolve().parent] if on_path else []
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((place for place in places if (place / "initdb").exists()), None)


@cache
def _server() -> Server | str:
    """Start the server, or return why there is none."""
    programs = _programs()
    if programs is None:
        return "needs PostgreSQL (initdb and pg_ctl), which is not installed here"
    user = "postgres" if os.geteuid() == 0 else None
    folder = Path(tempfile.mkdtemp(prefix="pcor-postgres-"))
    try:
        if user is not None:
            shutil.chown(folder, user)
        server = Server(programs, folder, user)
    except (subprocess.CalledProcessError, OSError, LookupError):
        shutil.rmtree(folder, ignore_errors=True)
        return "needs PostgreSQL, which is installed here but does not start"
    owner = os.getpid()
    atexit.register(lambda: server.remove() if os.getpid() == owner else None)
    return server


def postgres() -> Server:
    """Return the server of this test run; skip the test where there is none."""
    server = _server()
    if isinstance(server, str):
        pytest.skip(server)
    return server
