"""The service: owners register datasets, analysts ask for releases, auditors read the books.

Private: the rows, which only ``sources`` and ``draws`` touch. Everything else here handles
requests, keys, budgets and released certificates, and answers with those alone.

A name is imported when it is first asked for: a process that draws needs no web server.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pcor.service.app import create_app
    from pcor.service.core.settings import ServiceSettings

__all__ = ["ServiceSettings", "create_app"]


_HOMES = {"create_app": "pcor.service.app", "ServiceSettings": "pcor.service.core.settings"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
