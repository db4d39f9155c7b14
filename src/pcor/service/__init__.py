"""The service: owners register datasets, analysts ask for releases, auditors read the books.

Private: the rows, which only ``sources`` and ``draws`` touch. Everything else here handles
requests, keys, budgets and released certificates, and answers with those alone.

A name is imported when it is first asked for: a process that draws needs no web server.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pcor.service.app import create_app
    from pcor.service.settings import Settings

__all__ = ["Settings", "create_app"]


def __getattr__(name: str) -> Any:
    if name == "create_app":
        from pcor.service.app import create_app

        return create_app
    if name == "Settings":
        from pcor.service.settings import Settings

        return Settings
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
