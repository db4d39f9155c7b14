"""Running the service: prepare a database, serve it, or serve a demo that needs nothing.

Private: the keys that are returned, each shown once. The only rows here are the demo's, which
nobody owns.
"""

from __future__ import annotations

import os
import signal
import socket
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI
from pyarrow import parquet
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess

from pcor.demo import PLANTED, salaries, salary_schema
from pcor.errors import ParameterError
from pcor.service.api.models import DatasetBody
from pcor.service.app import create_app
from pcor.service.core import owner as owning
from pcor.service.core.keys import Key, read_keys
from pcor.service.core.service import Service
from pcor.service.core.settings import ENVIRONMENT, ServiceSettings
from pcor.service.core.slots import make_files
from pcor.service.server.connections import Config
from pcor.support.locks import kept

DEMO = "synthetic-salaries"
ANALYST = "ana"


@dataclass(frozen=True)
class DemoKeys:
    """The two example keys of a demo."""

    owner: str
    analyst: str


def prepare(settings: ServiceSettings, *, new_owner_key: bool = False) -> str:
    """Make the tables and the first owner's key; return the key, which is kept nowhere."""
    service = Service(settings, create=True)
    try:
        token = service.first_owner_key(anew=new_owner_key)
    finally:
        service.ledger.close()
    if token is None:
        raise ParameterError(
            "this service has an owner's key already; make others with it, or, if it is lost, "
            "another first one with --new-owner-key"
        )
    return token


def prepare_demo(settings: ServiceSettings, **options: Any) -> DemoKeys:
    """Put the synthetic salaries into an empty folder and database, with a budget and two keys.

    Args:
        settings: how the service will run.
        **options: of ``pcor.release``; by default its own.
    """
    owner = prepare(settings)
    parquet.write_table(salaries(), settings.data / "salaries.parquet")
    service = Service(settings)
    try:
        with service.ledger.database.reading() as connection:
            key = read_keys(connection)[0]
        register_demo(service, key, **options)
        _, analyst = owning.new_key(service, key, role="analyst", name=ANALYST, days=90)
    finally:
        service.ledger.close()
    return DemoKeys(owner, analyst)


def register_demo(service: Service, key: Key, **options: Any) -> None:
    """Register the synthetic salaries; the planted records are open for questions."""
    body = DatasetBody.model_validate(
        {
            "schema": salary_schema().to_dict(),
            "source": "salaries.parquet",
            "presets": {"small": "0.1", "medium": "0.2", "large": "0.5"},
            "records": [planted.record for planted in PLANTED],
            "budget": {"epsilon": "20", "cap": "1"},
            "description": "51,000 made-up salaries; nobody in it exists",
            **options,
        }
    )
    owning.register(service, key, DEMO, body.named())
    owning.allot(service, key, DEMO, ANALYST, {"epsilon": "10"})


def check_books(settings: ServiceSettings) -> None:
    """Open the database once and close it: what is wrong with it is said here, and once."""
    Service(settings).ledger.close()


def serve(settings: ServiceSettings, sockets: list[socket.socket], *, workers: int) -> None:
    """Serve until told to stop; then finish what runs, and end.

    Args:
        settings: how the service runs.
        sockets: what ``server.sockets.listen`` returned.
        workers: how many processes serve.
    """
    # uvicorn stops gracefully, then passes the signal on; what comes after must still be done.
    signal.signal(signal.SIGTERM, _leave)
    if workers == 1:
        _run(uvicorn.Server(server_config(create_app(settings), settings)), sockets)
        return
    # A process that dies is started anew, months from now, and opens the files then.
    with tempfile.TemporaryDirectory(prefix="pcor-serve-") as folder, kept(folder):
        make_files(Path(folder))
        settings = replace(settings, shared=Path(folder))
        os.environ[ENVIRONMENT] = settings.to_json()
        config = server_config(
            "pcor.service.app:from_environment", settings, factory=True, workers=workers
        )
        Multiprocess(config, sockets=sockets).run()


def server_config(app: FastAPI | str, settings: ServiceSettings, **more: Any) -> Config:
    """Return how the HTTP server runs; ``more`` for several processes."""
    return Config(
        app,
        settings,
        log_level="warning",
        access_log=False,  # its lines would say when which answer was looked at
        server_header=False,
        # Whoever connects could say that somebody else did: said explicitly, because uvicorn takes
        # the word of 127.0.0.1 by itself, and that of whoever the environment names.
        proxy_headers=bool(settings.proxies),
        forwarded_allow_ips=list(settings.proxies),
        timeout_graceful_shutdown=int(settings.patience) + 1,
        **more,
    )


def _run(server: uvicorn.Server, sockets: list[socket.socket]) -> None:
    try:
        server.run(sockets)
    except KeyboardInterrupt:
        pass  # it has ended gracefully, and passed the signal on
    except SystemExit as ended:
        # Of a start that failed uvicorn has said why. Its code means another thing here.
        raise SystemExit(1 if ended.code == STARTUP_FAILURE else ended.code) from None


def _leave(*_: object) -> None:
    raise SystemExit(0)


def data_folder(path: Path) -> Path:
    """Return the data folder, or say that it is not one."""
    if not path.is_dir():
        raise ParameterError(
            f"--data {str(path)!r} is not a folder; make it and put tables into it"
        )
    return path
