"""Leases decide who may try: one owner a name, an epoch that grows with every owner, Postgres's clock.

The holder itself counts its lease from before it asked, on a clock that also runs while the machine sleeps. So a
process that was stopped, and wakes after its lease has gone, knows that before Postgres tells it: `Lease.valid_for()`.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, LiteralString

from platform_core.control.owners import Owner
from platform_core.control.store import ControlStore, Cursor
from platform_core.errors import LeaseHeld, Superseded
from platform_core.names import ReleaseId

SUPERVISOR = "supervisor"

# Never further ahead than twice its length: a clock that was set back by an hour would keep a dead lease for an hour.
_ALIVE: LiteralString = """(not held.released
    and held.expires_at > clock_timestamp()
    and held.expires_at - clock_timestamp() < 2 * (held.expires_at - held.renewed_at))"""


def driver_lease(release: ReleaseId) -> str:
    return f"driver/{release}"


@dataclass(frozen=True)
class Lease:
    """Held by this process. `renew` returns the next value; keep that one."""

    name: str
    epoch: int
    owner: Owner
    valid_until: float = field(default=0.0, compare=False)  # on elapsed()'s clock

    def valid_for(self) -> float:
        """Seconds in which nobody else can hold it; from 0 down, do not write."""
        return self.valid_until - elapsed()


@dataclass(frozen=True)
class LeaseRow:
    """What the store says of a lease, which anyone may read."""

    name: str
    epoch: int
    owner: Owner
    acquired_at: datetime
    expires_at: datetime
    alive: bool


def elapsed() -> float:
    """Seconds on a clock that nobody sets; on Linux one that counts sleep, which time.monotonic() leaves out."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if clock is None else time.clock_gettime(clock)


def acquire(store: ControlStore, name: str, owner: Owner, seconds: float) -> Lease:
    """Takes the lease when it is free, has run out, or its owner is proven to have ended; else LeaseHeld."""
    asked = elapsed()
    with store.transaction() as cursor:
        epoch = _take(cursor, name, owner, seconds)
        if epoch is None:
            _refuse_unless_gone(_read(cursor, name))
            epoch = _take(cursor, name, owner, seconds, even_if_alive=True)
    return Lease(name, epoch or 0, owner, asked + seconds)


def renew(store: ControlStore, lease: Lease, seconds: float) -> Lease:
    """A lease that has run out is renewed all the same while nobody else took it: the epoch proves that."""
    asked = elapsed()
    with store.transaction() as cursor:
        cursor.execute(
            "update weir.leases set renewed_at = clock_timestamp(), "
            "expires_at = clock_timestamp() + %s * interval '1 second' "
            "where name = %s and epoch = %s and not released returning epoch",
            (seconds, lease.name, lease.epoch),
        )
        if cursor.fetchone() is None:
            raise _superseded(lease, _read(cursor, lease.name))
    return Lease(lease.name, lease.epoch, lease.owner, asked + seconds)


def release(store: ControlStore, lease: Lease) -> None:
    """Gives it up, so that the next owner need not wait; nothing happens when it is somebody else's already."""
    with store.transaction() as cursor:
        cursor.execute(
            "update weir.leases set released = true where name = %s and epoch = %s", (lease.name, lease.epoch)
        )


def current(store: ControlStore, name: str) -> LeaseRow | None:
    with store.transaction() as cursor:
        return _read(cursor, name)


def check(cursor: Cursor, lease: Lease) -> None:
    """Within the caller's transaction: Superseded unless the epoch still holds, which then stays until the commit."""
    cursor.execute("select epoch, released from weir.leases where name = %s for share", (lease.name,))
    row = cursor.fetchone()
    if row is None or row["epoch"] != lease.epoch or row["released"]:
        raise _superseded(lease, _read(cursor, lease.name))


def lock(cursor: Cursor, names: Collection[str]) -> dict[str, LeaseRow]:
    """Those that exist, in the order of their names; none of them gets another epoch before the commit."""
    cursor.execute(
        f"select held.*, {_ALIVE} as alive from weir.leases held "
        "where held.name = any(%s) order by held.name for share",
        (list(names),),
    )
    return {row["name"]: _row(row) for row in cursor}


def fence(cursor: Cursor, name: str) -> int:
    """A new epoch for a lease whose owner has died or fallen silent, so that it writes nothing should it wake. Nobody
    holds it afterwards. LeaseHeld while it is alive; 0 when nobody ever held it."""
    cursor.execute("select from weir.leases where name = %s for update", (name,))
    row = _read(cursor, name)
    if row is None:
        return 0
    if row.alive:
        _refuse_unless_gone(row)
    cursor.execute("update weir.leases set epoch = epoch + 1, released = true where name = %s returning epoch", (name,))
    return int((cursor.fetchone() or {"epoch": 0})["epoch"])


def among(cursor: Cursor, prefix: str) -> dict[str, LeaseRow]:
    """All leases whose names begin with `prefix`."""
    cursor.execute(
        f"select held.*, {_ALIVE} as alive from weir.leases held where starts_with(held.name, %s)", (prefix,)
    )
    return {row["name"]: _row(row) for row in cursor}


def _take(cursor: Cursor, name: str, owner: Owner, seconds: float, even_if_alive: bool = False) -> int | None:
    cursor.execute(
        "insert into weir.leases as held (name, epoch, host, pid, started_at, acquired_at, renewed_at, expires_at) "
        "values (%(name)s, 1, %(host)s, %(pid)s, %(started_at)s, clock_timestamp(), clock_timestamp(), "
        "clock_timestamp() + %(seconds)s * interval '1 second') "
        "on conflict (name) do update set epoch = held.epoch + 1, host = excluded.host, pid = excluded.pid, "
        "started_at = excluded.started_at, acquired_at = excluded.acquired_at, renewed_at = excluded.renewed_at, "
        f"expires_at = excluded.expires_at, released = false where %(even_if_alive)s or not {_ALIVE} returning epoch",
        {**vars(owner), "name": name, "seconds": seconds, "even_if_alive": even_if_alive},
    )
    row = cursor.fetchone()
    return None if row is None else int(row["epoch"])


def _refuse_unless_gone(row: LeaseRow | None) -> None:
    if row is not None and not row.owner.gone:
        raise LeaseHeld(
            f"Lease {row.name} is held by {row.owner} until {row.expires_at:%H:%M:%S} UTC, epoch {row.epoch}.",
            remedy="Stop that process, or wait until it gives the lease up.",
        )


def _superseded(lease: Lease, row: LeaseRow | None) -> Superseded:
    now = "nobody" if row is None else f"{row.owner} with epoch {row.epoch}"
    return Superseded(
        f"{lease.owner} held {lease.name} with epoch {lease.epoch}; it belongs to {now}.",
        remedy="Nothing was written. Let the newer owner work.",
    )


def _read(cursor: Cursor, name: str) -> LeaseRow | None:
    cursor.execute(f"select held.*, {_ALIVE} as alive from weir.leases held where held.name = %s", (name,))
    row = cursor.fetchone()
    return None if row is None else _row(row)


def _row(row: dict[str, Any]) -> LeaseRow:
    owner = Owner(row["host"], row["pid"], row["started_at"])
    return LeaseRow(row["name"], row["epoch"], owner, row["acquired_at"], row["expires_at"], row["alive"])
