"""The application: routes, limits and problems put together.

Public: everything that leaves. There is one place for what goes wrong (``problems``), one for what
is too much (``limits``) and one for who may do what (``roles``); routes only call.
"""

from __future__ import annotations

import gc
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version

from fastapi import FastAPI
from starlette.concurrency import run_in_threadpool

from pcor.ledger.database import Admission
from pcor.service import page
from pcor.service.api import (
    routes_books,
    routes_datasets,
    routes_health,
    routes_keys,
    routes_releases,
    routes_signature,
)
from pcor.service.core import problems
from pcor.service.core.limits import LimitsMiddleware
from pcor.service.core.service import Service
from pcor.service.core.settings import ENVIRONMENT, ServiceSettings
from pcor.service.server.supervision import end_with_parent

# The page's router is mounted by being named here.
ROUTERS = (
    routes_health.router,
    routes_releases.router,
    routes_datasets.router,
    routes_keys.router,
    routes_books.router,
    routes_signature.router,
    page.router,
)


def create_app(given: ServiceSettings | Service) -> FastAPI:
    """Return the application; it opens the books when it is made and draws while it runs."""
    service = given if isinstance(given, Service) else Service(given)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        service.checks.start()
        service.drawer.start()
        yield
        await run_in_threadpool(service.close)

    app = FastAPI(
        title="PCOR",
        summary="Explain why a record is an outlier without giving away everybody else.",
        version=version("pcor"),
        lifespan=lifespan,
        default_response_class=problems.EscapedJSONResponse,
        # Their pages load scripts from other hosts.
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        # Newer versions of FastAPI trace requests wherever the environment says so; this one never.
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
    )
    app.state.service = service
    problems.install(app)
    page.install(app)

    for router in ROUTERS:
        app.include_router(router)
    app.add_middleware(
        LimitsMiddleware,
        largest=service.settings.largest_body,
        count=service.requests.count,
        terms=Admission(service.writers.admitted, service.settings.lock_patience),
    )
    return app


def from_environment() -> FastAPI:
    """Return the application for a worker process, whose settings are in its environment."""
    end_with_parent()
    app = create_app(ServiceSettings.from_json(os.environ[ENVIRONMENT]))
    gc.freeze()  # what is there by now stays: nobody need look again and again whether it does
    return app
