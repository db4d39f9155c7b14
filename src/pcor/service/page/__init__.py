"""The page: the service for people with a browser, in the same process and by the same rules.

Public: everything but the private report of an exposure audit, drafts of schemas and what of a file
does not fit one, which only an owner can ask for. Whatever changes anything goes through what the
API's routes call, so nobody can do more here than there. Pages are made whole on the server and
work without JavaScript; htmx, which is served from here, saves reloading.
"""

from fastapi import APIRouter, FastAPI
from starlette.exceptions import HTTPException

from pcor.service.page.access import on_http
from pcor.service.page.routes_books import router as _books
from pcor.service.page.routes_datasets import router as _datasets
from pcor.service.page.routes_drafts import router as _drafts
from pcor.service.page.routes_exposure import router as _exposure
from pcor.service.page.routes_files import router as _files
from pcor.service.page.routes_keys import router as _keys
from pcor.service.page.routes_questions import router as _questions
from pcor.service.page.routes_releases import router as _releases
from pcor.service.page.routes_session import router as _session

# Named in ``app.ROUTERS``. Not in the OpenAPI document, which is for programs.
router = APIRouter(include_in_schema=False)
for _part in (
    _files,
    _session,
    _questions,
    _releases,
    _datasets,
    _drafts,
    _keys,
    _books,
    _exposure,
):
    router.include_router(_part)


def install(app: FastAPI) -> None:
    """Answer a browser's request for an unknown address with a page; after ``problems``."""
    app.add_exception_handler(HTTPException, on_http)


__all__ = ["install", "router"]
