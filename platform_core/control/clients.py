"""Named readers, each bound to a table: to whatever release is live, or to one that stays until it is bound anew."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from platform_core.control import aliases, audit, releases
from platform_core.control.store import ControlStore, Cursor
from platform_core.errors import UsageError
from platform_core.names import ReleaseId

_UNREADABLE = ("frozen", "retired", "unknown")


@dataclass(frozen=True)
class Client:
    name: str
    table: str
    release: ReleaseId | None  # None: live
    bound_at: datetime
    by: str


def bind(store: ControlStore, name: str, table: str, release: ReleaseId | None, by: str) -> Client:
    """The release's row stays locked: it is not retired in the same moment."""
    with store.transaction() as cursor:
        if not aliases.locked(cursor, [table]):
            raise UsageError(f"There is no table {table!r}.", remedy='See `weir sql "show tables"`.')
        if release is not None:
            _refuse_unreadable(cursor, table, release)
        cursor.execute(
            "insert into weir.clients (name, table_name, job, number, by) values (%s, %s, %s, %s, %s) "
            "on conflict (name, table_name) do update set job = excluded.job, number = excluded.number, "
            "by = excluded.by, bound_at = clock_timestamp() returning *",
            (name, table, *((None, None) if release is None else (release.job, release.number)), by),
        )
        bound = _row(cursor.fetchone() or {})
        audit.write(cursor, by, "bind", table, {"client": name, "to": "live" if release is None else str(release)})
    return bound


def unbind(store: ControlStore, name: str, table: str | None, by: str) -> list[Client]:
    """From one table, or from all; it reads what is live then. UsageError when it was bound to nothing."""
    with store.transaction() as cursor:
        cursor.execute(
            "delete from weir.clients where name = %(name)s and (%(table)s::text is null or table_name = %(table)s) "
            "returning *",
            {"name": name, "table": table},
        )
        gone = [_row(row) for row in cursor]
        for one in gone:
            audit.write(cursor, by, "unbind", one.table, {"client": name})
    if not gone:
        what = f"There is no client {name!r}." if table is None else f"Client {name!r} is not bound to {table!r}."
        raise UsageError(what, remedy="See `weir client list`.")
    return gone


def all(store: ControlStore) -> list[Client]:
    with store.transaction() as cursor:
        cursor.execute("select * from weir.clients order by name, table_name")
        return [_row(row) for row in cursor]


def of_table(store: ControlStore, table: str) -> list[Client]:
    return [client for client in all(store) if client.table == table]


def of_release(cursor: Cursor, release: ReleaseId) -> list[Client]:
    """Those that are pinned to it."""
    cursor.execute(
        "select * from weir.clients where job = %s and number = %s order by name", (release.job, release.number)
    )
    return [_row(row) for row in cursor]


def pins(cursor: Cursor, name: str) -> dict[str, ReleaseId]:
    """The client's tables that do not follow the live release."""
    cursor.execute("select * from weir.clients where name = %s", (name,))
    bound = [_row(row) for row in cursor]
    if not bound:
        raise UsageError(
            f"There is no client {name!r}.", remedy=f"Make it with `weir client bind {name} TABLE --to live`."
        )
    return {client.table: client.release for client in bound if client.release is not None}


def _refuse_unreadable(cursor: Cursor, table: str, release: ReleaseId) -> None:
    state = releases.locked_states(cursor, [release])[release]
    cursor.execute("select manifest from weir.releases where job = %s and number = %s", (release.job, release.number))
    manifest: dict[str, Any] = (cursor.fetchone() or {"manifest": {}})["manifest"]
    written = manifest.get("output", {}).get("table")
    if state in _UNREADABLE:
        raise UsageError(f"{release} is {state}: it has nothing to read.", remedy="See `weir status` for others.")
    if written != table:
        raise UsageError(f"{release} writes table {written!r}, not {table!r}.", remedy="Name one of its releases.")


def _row(row: dict[str, Any]) -> Client:
    release = None if row["job"] is None else ReleaseId(row["job"], row["number"])
    return Client(row["name"], row["table_name"], release, row["bound_at"], row["by"])
