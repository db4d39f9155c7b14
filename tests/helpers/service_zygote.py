"""A process that has loaded everything once and forks services on request; and its handle.

A service that is killed and started again sixty times must start in milliseconds. All of them
accept from one listening socket, which the test holds: who connects while none runs waits.

As a program it reads one JSON object a line, forks a service, and prints the new process id.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

from pcor.service.core.settings import ServiceSettings
from tests.helpers.ledger_clients import note
from tests.helpers.waiting import until

STEPS = ("before charge", "after charge", "after draw", "after store", "before reply")


class Services:
    """Service processes on one socket."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._zygote = subprocess.Popen(  # noqa: S603 (our own words)
            [sys.executable, "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=[self._socket.fileno()],
            env=os.environ | {"NUMBA_NUM_THREADS": "1"},
            text=True,
        )
        self.running: list[int] = []

    def start(self, settings: ServiceSettings, trace: Path, step: str | None = None) -> int:
        """Start a service.

        Args:
            settings: how it runs.
            trace: each draw is noted here, before anybody learns of it.
            step: where it is killed, the first time it comes to it.
        """
        assert self._zygote.stdin is not None
        assert self._zygote.stdout is not None
        order = {
            "settings": settings.to_json(),
            "socket": self._socket.fileno(),
            "step": step,
            "trace": str(trace),
        }
        self._zygote.stdin.write(json.dumps(order) + "\n")
        self._zygote.stdin.flush()
        process = int(self._zygote.stdout.readline())
        self.running.append(process)
        return process

    def kill(self, process: int) -> None:
        """End a service as kill -9 does."""
        self.running.remove(process)
        os.kill(process, signal.SIGKILL)

    def wait_for_death(self, process: int) -> None:
        """Wait until a service has killed itself."""
        self.running.remove(process)
        until(lambda: not Path(f"/proc/{process}").exists())

    def kill_all(self) -> None:
        """End all services."""
        for process in list(self.running):
            self.kill(process)

    def close(self) -> None:
        """End everything."""
        self.kill_all()
        assert self._zygote.stdin is not None
        assert self._zygote.stdout is not None
        self._zygote.stdin.close()
        self._zygote.wait()
        self._zygote.stdout.close()
        self._socket.close()


def serve(order: dict[str, Any]) -> None:
    """Be a service until killed."""
    import uvicorn

    from pcor.service import create_app
    from pcor.service.core.jobs import Job
    from pcor.service.core.service import Service
    from pcor.service.core.worker import Drawer

    trace, draw = Path(order["trace"]), Drawer._draw

    def traced(drawer: Drawer, job: Job) -> Any:
        note(trace, "drawn", job.request.key)
        return draw(drawer, job)

    def at_step(step: str) -> None:
        if step == order["step"]:
            os.kill(os.getpid(), signal.SIGKILL)

    Drawer._draw = traced  # type: ignore[method-assign, assignment]
    service = Service(ServiceSettings.from_json(order["settings"]), at_step=at_step)
    config = uvicorn.Config(create_app(service), log_level="critical", access_log=False)
    uvicorn.Server(config).run(sockets=[socket.socket(fileno=order["socket"])])


def main() -> None:
    """Fork a service for every line."""
    import uvicorn.lifespan.on
    import uvicorn.protocols.http.h11_impl  # noqa: F401 (loaded once, for all of them)

    import pcor.service  # noqa: F401
    from tests.helpers.ledger_clients import drawn

    drawn()
    gc.freeze()  # no service looks through what was loaded before it
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the dead
    for line in sys.stdin:
        process = os.fork()
        if process == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            serve(json.loads(line))
            os._exit(0)
        sys.stdout.write(f"{process}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
