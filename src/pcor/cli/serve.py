"""``pcor serve``: the HTTP service and the page."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from pcor.cli.output import guarded, say, tell
from pcor.errors import ParameterError

_LOCAL = ("127.0.0.1", "::1", "localhost")
# It hands sockets to other processes and ends them by signals.
_CAN_SERVE = os.name == "posix"


@guarded
def serve(
    database: Annotated[
        str | None,
        typer.Option(
            envvar="PCOR_DATABASE", help="The ledger: a SQLite file or a postgresql:// URL."
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(envvar="PCOR_SERVICE_DATA", help="The folder that all tables are in."),
    ] = None,
    secret: Annotated[
        Path | None,
        typer.Option(
            envvar="PCOR_SERVICE_SECRET",
            help="The file with the service's secret, made if missing; by default in --data.",
        ),
    ] = None,
    sign: Annotated[
        Path | None,
        typer.Option(
            envvar="PCOR_SERVICE_SIGN",
            help="Sign certificates with the private key in this file: `pcor ledger keygen`.",
        ),
    ] = None,
    letter_template: Annotated[
        Path | None,
        typer.Option(
            envvar="PCOR_SERVICE_LETTER", help="The template of letters (Jinja2); by default ours."
        ),
    ] = None,
    init: Annotated[
        bool,
        typer.Option("--init", help="Prepare the database, print the first owner's key, and end."),
    ] = False,
    new_owner_key: Annotated[
        bool,
        typer.Option("--new-owner-key", help="With --init: another owner's key, if it was lost."),
    ] = False,
    demo: Annotated[
        bool,
        typer.Option("--demo", help="Serve synthetic data from a temporary folder."),
    ] = False,
    host: Annotated[str, typer.Option(help="The address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="The port to listen at.")] = 8330,
    workers: Annotated[int, typer.Option(min=1, max=64, help="How many processes serve.")] = 1,
    drawers: Annotated[
        int, typer.Option(min=1, max=64, help="Searches at once in each process.")
    ] = 1,
    delay: Annotated[
        float, typer.Option(help="Seconds until an answer can be seen at the earliest.")
    ] = 5.0,
    tick: Annotated[
        float, typer.Option(help="Answers appear at multiples of this many seconds.")
    ] = 1.0,
    rate: Annotated[float, typer.Option(help="Requests a second for each key.")] = 20.0,
    connections: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Connections at once in each process; by default 1,000, or what ulimit -n allows.",
        ),
    ] = None,
    writers: Annotated[
        int, typer.Option(min=1, help="Requests that write at once in each process.")
    ] = 16,
    proxy: Annotated[
        list[str] | None,
        typer.Option(
            help="Address or network of a proxy whose X-Forwarded-For is trusted; once for each."
        ),
    ] = None,
    open_questions: Annotated[
        int, typer.Option(min=1, help="How many questions of one analyst may wait at a time.")
    ] = 20,
    secure_cookies: Annotated[
        bool, typer.Option("--secure-cookies", help="Send cookies over HTTPS only.")
    ] = False,
) -> None:
    """Serve releases over HTTP. Owners register datasets, analysts ask, auditors read the books.

    Try: pcor serve --demo

    Then: pcor serve --init --database books.db --data tables; the same without --init serves.
    """
    if not _CAN_SERVE:
        raise ParameterError(
            "the service runs on Linux and macOS; on Windows start it in WSL or in a container "
            "(docs/how-to/service.md), and ask it from here with pcor.Client"
        )
    try:
        from pcor.service import run
        from pcor.service.core.settings import ServiceSettings
        from pcor.service.server.sockets import listen
    except ModuleNotFoundError as missing:
        raise ParameterError(
            f"the service needs {missing.name}, which is not installed: pip install 'pcor[service]'"
        ) from None

    def settings(url: str, folder: Path) -> ServiceSettings:
        return ServiceSettings(
            url,
            folder,
            delay=delay,
            tick=tick,
            drawers=drawers,
            rate=rate,
            burst=max(1, int(3 * rate)),
            connections=connections,
            writers=writers,
            proxies=tuple(proxy or ()),
            open_questions=open_questions,
            secure_cookies=secure_cookies,
            secret=secret,
            sign=sign,
            letter=letter_template,
        )

    where = f"http://{host}:{port}"
    if demo:
        if database is not None or data is not None or init:
            raise ParameterError("--demo brings its own --database and --data; leave them out")
        sockets = listen(host, port)  # first: what is said below must be so
        with tempfile.TemporaryDirectory(prefix="pcor-demo-") as name:
            folder = Path(name)
            (folder / "tables").mkdir()
            chosen = settings(str(folder / "books.db"), folder / "tables")
            keys = run.prepare_demo(chosen)
            say(f"PCOR serves synthetic salaries at {where}; nobody in them exists.")
            say("These keys are examples, and end with this process:")
            say(f"  owner    {keys.owner}")
            say(f"  analyst  {keys.analyst}")
            say(f"The API is described at {where}/openapi.json. Ctrl+C ends it.")
            sys.stdout.flush()  # into a pipe, Python would hold it back until the service ends
            run.serve(chosen, sockets, workers=workers)
        return
    if database is None or data is None:
        raise ParameterError("give --database and --data, or --demo to try it without either")
    chosen = settings(database, run.data_folder(data))
    if init or new_owner_key:
        token = run.prepare(chosen, new_owner_key=new_owner_key)
        tell("The first owner's key. It is shown once and kept nowhere; store it now:")
        say(token)
        return
    if host not in _LOCAL and not secure_cookies:
        tell("note: others can reach it, over plain HTTP; put TLS in front, and --secure-cookies")
    run.check_books(chosen)
    sockets = listen(host, port)
    tell(f"pcor serves at {where}; Ctrl+C ends it")
    run.serve(chosen, sockets, workers=workers)
