"""Keys, for owners: who has one, a new one, taking one back.

Private: a new key. It is in one answer, right after it was made, and kept nowhere.
"""

from __future__ import annotations

from fastapi import Request, Response

from pcor.service.core import owner
from pcor.service.core.keys import DAYS, MOST_DAYS, ROLES, read_key, read_keys
from pcor.service.core.problems import Problem, unknown
from pcor.service.core.service import of
from pcor.service.page.access import Form, Owner, field, page_router, see
from pcor.service.page.html import render
from pcor.service.page.routes_questions import Text

router = page_router()


@router.get("/keys")
def show_keys(request: Request, key: Owner) -> Response:
    """Return what is known of all keys; not the keys."""
    return _page(request, key, None, "")


@router.post("/keys")
def make_key(request: Request, key: Owner, form: Form) -> Response:
    """Make a key and show it, this once."""
    days = field(form, "days")
    if not (days.isascii() and days.isdigit()) or not 1 <= int(days[:6]) <= MOST_DAYS:
        raise Problem(422, "invalid", f"days must be a whole number from 1 to {MOST_DAYS:,}")
    name = field(form, "name")
    made, token = owner.new_key(
        of(request), key, role=field(form, "role"), name=name, days=int(days)
    )
    return _page(request, key, token, f"{made.role} {made.name}")


@router.get("/keys/revoke")
def confirm_taking_back(request: Request, key: Owner, id: Text) -> Response:  # noqa: A002
    """Ask whether a key is to be taken back; nothing happens yet."""
    service = of(request)
    with service.ledger.database.reading() as connection:
        found = read_key(connection, id)
    if found is None or not found.is_good(service.now()):
        raise unknown("key")
    return render(request, "revoke.html", key=key, one=found.to_dict())


@router.post("/keys/revoke")
def take_back_key(request: Request, key: Owner, form: Form) -> Response:
    """Take a key back, at once and for good."""
    owner.take_back_key(of(request), key, field(form, "id"))
    return see("/keys")


def _page(request: Request, key: Owner, fresh: str | None, whose: str) -> Response:
    service = of(request)
    now = service.now()
    with service.ledger.database.reading() as connection:
        found = [
            one.to_dict() | {"good": one.is_good(now), "own": one.id == key.id}
            for one in read_keys(connection)
        ]
    return render(
        request,
        "keys.html",
        key=key,
        keys=found,
        roles=ROLES,
        days=DAYS,
        most_days=MOST_DAYS,
        fresh=fresh,
        whose=whose,
    )
