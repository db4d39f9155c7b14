"""API keys: random, stored as hashes, expiring, revocable; each has a role and a person's name.

Private: the keys themselves. They are shown once, when made, and only their SHA-256 is kept: over
256 random bits a slow hash would add nothing. A key is ``pcor_<id>_<secret>``; the id is public.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import Connection, bindparam, insert, select, update

from pcor.errors import ParameterError
from pcor.ledger import OWNER
from pcor.releasing.request import check_name
from pcor.service.core import tables

ROLES = ("owner", "analyst", "auditor")
DAY = 86_400_000  # milliseconds
DAYS = 90
MOST_DAYS = 3660

_ONE = select(tables.keys).where(tables.keys.c.id == bindparam("id"))


@dataclass(frozen=True)
class Key:
    """What is known of a key; not the key.

    Attributes:
        id: its public name.
        role: owner, analyst or auditor.
        name: whose it is. An analyst's allotments are under this name.
        made: when; milliseconds since 1970, like the next two.
        expires: from when on it is worth nothing.
        revoked: when it was taken back, if it was.
    """

    id: str
    role: str
    name: str
    made: int
    expires: int
    revoked: int | None = None

    @property
    def payer(self) -> str:
        """Under which name the ledger knows who asks."""
        return OWNER if self.role == "owner" else self.name

    def is_good(self, now: int) -> bool:
        """Whether the key still opens anything."""
        return self.revoked is None and now < self.expires

    def to_dict(self) -> dict[str, Any]:
        """Return what an owner may see."""
        return {
            "id": self.id,
            "role": self.role,
            "name": self.name,
            "made": self.made // 1000,
            "expires": self.expires // 1000,
            "revoked": None if self.revoked is None else self.revoked // 1000,
        }


def make_key(
    connection: Connection, *, role: str, name: str, now: int, days: int = DAYS
) -> tuple[Key, str]:
    """Make a key; return what is known of it, and the key itself, which is kept nowhere."""
    if role not in ROLES:
        raise ParameterError(f"role must be one of {', '.join(ROLES)}")
    check_name("name", name)
    if role != "owner" and name == OWNER:
        raise ParameterError(f"the name {OWNER!r} is the owner's; take another")
    if not 1 <= days <= MOST_DAYS:
        raise ParameterError(f"days must be from 1 to {MOST_DAYS:,}")
    secret = secrets.token_urlsafe(32)
    key = Key(secrets.token_hex(6), role, name, now, now + days * DAY)
    connection.execute(insert(tables.keys).values(asdict(key) | {"hash": digest(secret)}))
    return key, f"pcor_{key.id}_{secret}"


def find_key(connection: Connection, token: str, now: int) -> Key | None:
    """Return the key that a token is, while it is good."""
    prefix, _, rest = token.partition("_")
    name, _, secret = rest.partition("_")
    if prefix != "pcor" or not secret or not (name.isascii() and name.isalnum()):
        return None
    row = connection.execute(_ONE, {"id": name}).one_or_none()
    if row is None or not hmac.compare_digest(row.hash, digest(secret)):
        return None
    key = _key(row)
    return key if key.is_good(now) else None


def read_key(connection: Connection, name: str) -> Key | None:
    """Return what is known of a key by its id."""
    row = connection.execute(_ONE, {"id": name}).one_or_none()
    return None if row is None else _key(row)


def read_keys(connection: Connection) -> list[Key]:
    """Return what is known of all keys, the oldest first."""
    chosen = select(tables.keys).order_by(tables.keys.c.made, tables.keys.c.id)
    return [_key(row) for row in connection.execute(chosen)]


def revoke_key(connection: Connection, name: str, now: int) -> Key | None:
    """Take a key back; return it, or nothing where there is none of this id."""
    columns = tables.keys.c
    connection.execute(
        update(tables.keys).where(columns.id == name, columns.revoked.is_(None)).values(revoked=now)
    )
    return read_key(connection, name)


def digest(secret: str) -> str:
    """Return what is stored in the place of a secret."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


def _key(row: Any) -> Key:
    return Key(row.id, row.role, row.name, row.made, row.expires, row.revoked)
