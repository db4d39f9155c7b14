"""Leases: who is drawing for a charge at this moment, so that nobody else does.

Public: a machine's boot number, a process number, a time. Correctness does not rest on them: when
two draw for one charge, the first to store wins and the other draw is thrown away unseen
(docs/proofs/ledger.md). A lease only saves that work, and tells a second caller to wait. On one
machine a lease ends with its process, also when that was killed. A process of another machine must
renew it from time to time.
"""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache, partial
from pathlib import Path

from sqlalchemy import Connection, bindparam, delete, insert, select, update

from pcor.errors import LedgerError
from pcor.ledger import tables

# How long a process of another machine is waited for after its last sign of life, in seconds.
LEASE = 600
# How often a process gives that sign.
RENEWAL = 150

_COLUMNS = tables.running.c
_ONE = select(tables.running).where(_COLUMNS.charge == bindparam("charge"))
_END = delete(tables.running).where(_COLUMNS.charge == bindparam("charge"))
_NEW = insert(tables.running)

# The leases that this process holds.
_mine: set[str] = set()


def take_lease(connection: Connection, charge: int, until: int) -> str:
    """Write down that this process draws; return the lease. The caller holds the ledger's lock."""
    holder = "|".join([_machine(), str(os.getpid()), _own_start(), secrets.token_hex(8)])
    _mine.add(holder)  # before anybody can read it
    connection.execute(_END, {"charge": charge})
    connection.execute(_NEW, {"charge": charge, "holder": holder, "until": until})
    return holder


def end_lease(connection: Connection, charge: int, holder: str | None = None) -> None:
    """Strike out a lease: this one, or anybody's."""
    chosen = _END if holder is None else _END.where(_COLUMNS.holder == holder)
    connection.execute(chosen, {"charge": charge})


def renew_lease(connection: Connection, holder: str, until: int) -> None:
    """Write down that the holder still draws, if it still holds the lease."""
    mine = _COLUMNS.holder == holder
    connection.execute(update(tables.running).where(mine).values(until=until))


def forget_lease(holder: str) -> None:
    """Forget a lease in this process, whether or not the ledger can be written."""
    _mine.discard(holder)


@contextmanager
def keeping(
    charge: int,
    holder: str,
    change: Callable[[Callable[[Connection], None]], None],
    clock: Callable[[], float],
) -> Iterator[None]:
    """Renew a lease from beside while something is drawn; strike it out if that fails.

    Whether another process may take over must not depend on how long a draw takes, which depends
    on private rows.

    Args:
        charge: what is drawn for.
        holder: of the lease.
        change: runs a change of the ledger in a transaction of its own.
        clock: seconds since 1970.
    """
    over = threading.Event()

    def renew() -> None:
        while not over.wait(RENEWAL):
            until = int(clock()) + LEASE
            with suppress(LedgerError):  # the next time, or never again
                change(partial(renew_lease, holder=holder, until=until))

    threading.Thread(target=renew, daemon=True).start()
    try:
        yield
    except BaseException:
        forget_lease(holder)
        with suppress(LedgerError):  # the reason why the draw ended is the one to tell
            change(partial(end_lease, charge=charge, holder=holder))
        raise
    finally:
        over.set()
        forget_lease(holder)


def is_running(connection: Connection, charge: int, now: int) -> bool:
    """Whether somebody who is alive draws for a charge."""
    row = connection.execute(_ONE, {"charge": charge}).one_or_none()
    return row is not None and _alive(str(row.holder), row.until, now)


def _alive(holder: str, until: object, now: int) -> bool:
    machine, _, rest = holder.partition("|")
    if not _machine() or machine != _machine():
        return isinstance(until, int) and now < until
    process, _, rest = rest.partition("|")
    if process == str(os.getpid()) and rest.startswith(f"{_own_start()}|"):
        return holder in _mine
    started = _started(int(process)) if process.isdecimal() else ""
    return bool(started) and rest.startswith(f"{started}|")


def _machine() -> str:
    """Return what tells machines, their restarts and their containers apart; '' if nothing does."""
    return _machine_of(os.getpid())


@lru_cache(maxsize=4)
def _machine_of(_process: int) -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot}/{os.stat('/proc/self/ns/pid').st_ino}"
    except OSError:
        return ""


def _own_start() -> str:
    """Return when this process started."""
    return _start_of(os.getpid())


@lru_cache(maxsize=4)
def _start_of(process: int) -> str:
    return _started(process)


def _started(process: int) -> str:
    """Return when a process started, '' if it is gone: its number may belong to another now."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    state, *rest = fields.rpartition(")")[2].split()
    # A killed process stays listed until its parent looks; it draws no more.
    return "" if state in ("Z", "X") else rest[18]
