"""What each driver says of itself, and what the supervisor found out about it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, LiteralString, TypedDict, Unpack

from platform_core.control import leases
from platform_core.control.leases import Lease
from platform_core.control.owners import Owner
from platform_core.control.store import ControlStore, Cursor
from platform_core.names import ReleaseId

State = Literal["starting", "running", "stopping", "stopped", "failed", "waiting"]


class Changes(TypedDict, total=False):
    """`owner` stands for host, pid and started_at at once."""

    state: State
    owner: Owner | None
    generation: int
    failures: int
    restarts: int
    next_try_at: datetime | None
    reason: str
    permanent: bool
    given_up: bool


@dataclass(frozen=True)
class DriverState:
    """`waiting` is the pause before the next try. `failed` with `given_up`: nothing tries again until somebody asks."""

    release: ReleaseId
    state: State
    owner: Owner | None
    generation: int  # of the wanted state that it was started for
    failures: int  # in a row
    restarts: int  # ever
    next_try_at: datetime | None
    running_since: datetime | None
    reason: str
    permanent: bool
    given_up: bool
    updated_at: datetime

    @property
    def host(self) -> str:
        return "" if self.owner is None else self.owner.host.partition("/")[0]

    @property
    def pid(self) -> int | None:
        return None if self.owner is None else self.owner.pid


_COLUMNS: dict[str, LiteralString] = {
    "state": "state = %(state)s, running_since = case when %(state)s <> 'running' then null "
    "when d.state = 'running' then d.running_since else clock_timestamp() end",
    "owner": "host = %(host)s, pid = %(pid)s, started_at = %(started_at)s",
    "generation": "generation = %(generation)s",
    "failures": "failures = %(failures)s",
    "restarts": "restarts = %(restarts)s",
    "next_try_at": "next_try_at = %(next_try_at)s",
    "reason": "reason = %(reason)s",
    "permanent": "permanent = %(permanent)s",
    "given_up": "given_up = %(given_up)s",
}


def report(store: ControlStore, release: ReleaseId, *, lease: Lease | None = None, **changes: Unpack[Changes]) -> None:
    """Changes what is named and leaves the rest. A driver gives its `lease`: one that was superseded must not
    overwrite what its successor says, and gets Superseded."""
    with store.transaction() as cursor:
        if lease is not None:
            leases.check(cursor, lease)
        put(cursor, release, **changes)


def put(cursor: Cursor, release: ReleaseId, **changes: Unpack[Changes]) -> None:
    """`report` within the caller's transaction."""
    cursor.execute(
        "insert into weir.drivers (job, number) values (%s, %s) on conflict do nothing", (release.job, release.number)
    )
    values: dict[str, Any] = {**changes, "job": release.job, "number": release.number}
    owner = changes.get("owner")
    values |= {"host": "", "pid": None, "started_at": 0.0} if owner is None else vars(owner)
    sets = ", ".join(_COLUMNS[name] for name in changes) + (", " if changes else "")
    cursor.execute(
        f"update weir.drivers d set {sets}updated_at = clock_timestamp() where job = %(job)s and number = %(number)s",
        values,
    )


def get(store: ControlStore, release: ReleaseId) -> DriverState | None:
    with store.transaction() as cursor:
        cursor.execute("select * from weir.drivers where job = %s and number = %s", (release.job, release.number))
        row = cursor.fetchone()
    return None if row is None else _row(row)


def all(store: ControlStore) -> dict[ReleaseId, DriverState]:
    with store.transaction() as cursor:
        return read_all(cursor)


def read_all(cursor: Cursor) -> dict[ReleaseId, DriverState]:
    cursor.execute("select * from weir.drivers order by job, number")
    return {driver.release: driver for driver in map(_row, cursor)}


def _row(row: dict[str, Any]) -> DriverState:
    owner = None if row["pid"] is None else Owner(row["host"], row["pid"], row["started_at"])
    known = {name: row[name] for name in DriverState.__dataclass_fields__ if name not in ("release", "owner")}
    return DriverState(release=ReleaseId(row["job"], row["number"]), owner=owner, **known)
