"""Tries: whoever shows keys or cookies that are none is slowed down, before the next is looked up.

Public: everything here; a secret that was good is remembered by its hash alone. Wrong tries are
counted for each address. An address that has none left is refused without a look at the database,
except for a secret that was good a while ago: so who guesses behind the same proxy locks out nobody
who works. Processes that serve together count and remember together (``slots``).
"""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import IPv6Address, IPv6Network, ip_address
from typing import TypeVar

from fastapi import Request

from pcor.service.core.keys import digest
from pcor.service.core.service import of

Found = TypeVar("Found")

# Whoever has one address of IPv6 has all that begin with the same 64 bits.
_OWN = 64


def look_up(request: Request, secret: str, find: Callable[[], Found | None]) -> Found | None:
    """Return what a secret stands for, if anything; refuse an address that was wrong too often.

    Args:
        request: who shows it.
        secret: a key or a cookie.
        find: looks for it in the database.
    """
    service, name = of(request), digest(secret)
    if not service.known.has(name):
        service.guesses.check(address_of(request))
    found = find()
    if found is None:
        service.known.forget(name)
        wrong(request)
    else:
        remember(request, secret)
    return found


def remember(request: Request, secret: str) -> None:
    """Remember a secret as good: it is looked up whatever others try."""
    of(request).known.add(digest(secret))


def wrong(request: Request) -> None:
    """Count a failed attempt, and raise where there were too many."""
    of(request).guesses.take(address_of(request))


def address_of(request: Request) -> str:
    """Return where a request comes from, as far as whoever sends it cannot choose."""
    host = "" if request.client is None else request.client.host
    try:
        address = ip_address(host)
    except ValueError:
        return host
    if not isinstance(address, IPv6Address):
        return host
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(IPv6Network((address.packed, _OWN), strict=False))
