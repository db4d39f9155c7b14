"""The command ``pcor`` for pages, forked from a process that has loaded everything once.

A page types in a dozen commands, and each would spend most of its time on imports. What is forked
runs ``pcor.cli.run`` with the arguments, the folder, the variables and the files of whoever called,
and ends with its exit code. How the real program starts is tested in ``test_startup``.

As a program it listens at a socket, and forks for every caller.
"""

from __future__ import annotations

import array
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from tests.helpers.waiting import until

# Servers are stopped by their group of processes, so they must be in the caller's. Who has other
# modules than were loaded here needs a process of its own. A dozen pages begin with the files of
# the demo: they are written once, and what was said then is said to all.
SHIM = """#!/bin/sh
if [ "$1" = serve ] || [ "$PYTHONPATH" != '{modules}' ]; then exec '{real}' "$@"; fi
if [ "$1 $2 $#" = 'demo --write 3' ] && [ "${{3##*/}}" = "$3" ] && [ ! -e "$3" ]; then
  kept='{folder}'/demo-"$3"
  if [ -d "$kept" ]; then
    cp -r "$kept/$3" "$3"
  else
    mkdir "$kept.new"
    '{python}' -S -E '{caller}' '{socket}' "$@" > "$kept.new/said" 2> "$kept.new/told"
    code=$?
    if [ $code != 0 ]; then cat "$kept.new/said"; cat "$kept.new/told" >&2; exit $code; fi
    cp -r "$3" "$kept.new"
    mv "$kept.new" "$kept"
  fi
  cat "$kept/told" >&2
  exec cat "$kept/said"
fi
exec '{python}' -S -E '{caller}' '{socket}' "$@"
"""
CALLER = """
import array, json, os, socket, sys
with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as to:
    to.connect(sys.argv[1])
    order = {"words": sys.argv[2:], "folder": os.getcwd(), "variables": dict(os.environ)}
    files = array.array("i", [0, 1, 2])
    to.sendmsg([b"f"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, files)])
    to.sendall(json.dumps(order).encode() + b"\\n")
    sys.exit(int(to.makefile().readline() or 70))
"""


class Zygote:
    """A process that forks commands, and a folder with the ``pcor`` that asks it to."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="pcor-quick-"))
        at, shim, caller = (self.folder / name for name in ("socket", "pcor", "caller.py"))
        caller.write_text(CALLER, encoding="utf-8")
        real = Path(sys.executable).with_name("pcor")
        words = SHIM.format(
            modules=os.environ.get("PYTHONPATH", ""),
            real=real,
            python=sys.executable,
            caller=caller,
            socket=at,
            folder=self.folder,
        )
        shim.write_text(words, encoding="utf-8")
        shim.chmod(0o755)
        # It ends when this process does: nobody else has the other end of its input.
        self._process = subprocess.Popen(  # noqa: S603 (our own words)
            [sys.executable, "-m", __name__, str(at)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
        )
        until(lambda: at.exists() or self._process.poll() is not None)
        assert self._process.poll() is None


@cache
def zygote() -> Zygote:
    """Return the one of this test run."""
    return Zygote()


def answer(caller: socket.socket) -> None:
    """Run one command for a caller, and tell it how that ended. In a process of its own."""
    files = array.array("i")
    _, ((_, _, given),), *_ = caller.recvmsg(1, socket.CMSG_SPACE(3 * files.itemsize))
    files.frombytes(given)
    with caller.makefile() as lines:
        order = json.loads(lines.readline())
    process = os.fork()
    if process == 0:
        caller.close()
        run(order, files.tolist())
    _, status = os.waitpid(process, 0)
    code = os.waitstatus_to_exitcode(status)
    caller.sendall(f"{code if code >= 0 else 128 - code}\n".encode())


def run(order: dict[str, Any], files: list[int]) -> None:
    """Be the command."""
    for own, theirs in enumerate(files):
        os.dup2(theirs, own)
        os.close(theirs)
    os.chdir(order["folder"])
    os.environ.clear()
    os.environ.update(order["variables"])
    sys.argv = ["pcor", *order["words"]]
    from pcor.cli import run as command

    code: object = 0
    try:
        command()
    except SystemExit as end:
        code = end.code
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))


def main() -> None:
    """Load what commands need, then fork for every caller until the input ends."""
    import pcor.cli.commands
    import pcor.cli.releases  # noqa: F401 (loaded once, for all of them)
    from tests.helpers.ledger_clients import drawn

    drawn()
    gc.freeze()  # no command looks through what was loaded before it
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listening.bind(f"{sys.argv[1]}.new")
    listening.listen()
    Path(f"{sys.argv[1]}.new").rename(sys.argv[1])  # seen once it answers
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the keepers
    while True:
        ready, *_ = select.select([sys.stdin, listening], [], [])
        if sys.stdin in ready:
            return
        caller, _ = listening.accept()
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            listening.close()
            answer(caller)
            os._exit(0)
        caller.close()


if __name__ == "__main__":
    main()
