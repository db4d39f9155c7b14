"""A real PostgreSQL for tests: private, on a socket in a temporary folder, one per test run.

It is the system's own (``initdb`` and ``pg_ctl`` on the path or under /usr/lib/postgresql). Where
there is none, the tests that need it are skipped and say so. The server refuses to run as root, so
root runs it as somebody else: as ``postgres``, as ``nobody``, or as whoever can.
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
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from psycopg import sql

if TYPE_CHECKING:
    import pwd

_numbers = count()


class Server:
    """A PostgreSQL server of our own, with as many empty places as are asked for."""

    def __init__(self, programs: Path, folder: Path, user: pwd.struct_passwd | None) -> None:
        self._programs, self._folder, self._user = programs, folder, user
        self.data = folder / "data"
        if user is not None:
            os.chown(folder, user.pw_uid, user.pw_gid)
        # Every byte written is still there when the server is stopped; only power cuts differ. The
        # locale is one that every machine has.
        words = ("-A", "trust", "-U", "pcor", "-E", "UTF8", "--no-locale", "-N")
        self._run("initdb", "-D", str(self.data), *words)
        self.start()

    def start(self) -> None:
        """Start the server and wait until it answers."""
        options = (
            f"-c listen_addresses='' -c unix_socket_directories='{self._folder}' -c fsync=off "
            "-c max_connections=200"
        )
        log = str(self._folder / "log")
        self._run(
            "pg_ctl", "-D", str(self.data), "-w", "-t", "300", "-l", log, "-o", options, "start"
        )

    def stop(self) -> None:
        """Stop the server at once, as if it had crashed."""
        self._run("pg_ctl", "-D", str(self.data), "-w", "-t", "300", "-m", "immediate", "stop")

    def new_database(self) -> str:
        """Return the URL of an empty place: a schema of its own, faster than a database."""
        name = f"test{next(_numbers)}_{os.getpid()}"
        place = f"postgresql://pcor@/postgres?host={self._folder}"
        with psycopg.connect(place, autocommit=True) as connection:
            connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(name)))
        return f"{place}&options=-csearch_path%3D{name}"

    def remove(self) -> None:
        """Stop the server and remove its folder."""
        with suppress(OSError):  # a test may have stopped it
            self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _run(self, program: str, *words: str) -> None:
        user = self._user
        become: dict[str, Any] = (
            {} if user is None else {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        )
        # Into a file, not a pipe: the server keeps it open for as long as it runs.
        with tempfile.TemporaryFile("w+") as said:
            done = subprocess.run(  # noqa: S603 (our own words)
                [str(self._programs / program), *words],
                check=False,
                cwd=self._folder,
                stdout=subprocess.DEVNULL,
                stderr=said,
                stdin=subprocess.DEVNULL,
                **become,
            )
            if done.returncode != 0:
                said.seek(0)
                raise OSError(f"{program}: {' '.join(said.read().split())}")


def _programs() -> Path | None:
    on_path = shutil.which("pg_ctl")
    places = [Path(on_path).resolve().parent] if on_path else []
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((place for place in places if (place / "initdb").exists()), None)


def _users() -> list[pwd.struct_passwd | None]:
    """Return who could run the server: root must not, anybody else does it as themselves."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        return [None]
    import pwd  # not on every system

    others = (user for user in pwd.getpwall() if user.pw_uid != 0)
    return [*sorted(others, key=lambda user: user.pw_name not in ("postgres", "nobody"))]


def start_server() -> Server | str:
    """Start a server, or return why there is none."""
    programs = _programs()
    if programs is None:
        return "needs PostgreSQL (initdb and pg_ctl), which is not installed here"
    why = "there is nobody but root to run it"
    for user in _users():
        folder = Path(tempfile.mkdtemp(prefix="pcor-postgres-"))
        try:
            return Server(programs, folder, user)
        except OSError as error:
            why = str(error)
            shutil.rmtree(folder, ignore_errors=True)
    return f"needs PostgreSQL, which is installed here but does not start ({why})"


@cache
def _server() -> Server | str:
    server = start_server()
    if isinstance(server, Server):
        owner = os.getpid()
        atexit.register(lambda: server.remove() if os.getpid() == owner else None)
    return server


def postgres() -> Server:
    """Return the server of this test run; skip the test where there is none."""
    server = _server()
    if isinstance(server, str):
        pytest.skip(server)
    return server
