"""Which version this is."""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, version


@cache
def pcor_version() -> str:
    """Return the version of the library, or of the client that was installed without the rest."""
    try:
        return version("pcor")
    except PackageNotFoundError:
        return version("pcor-client")
