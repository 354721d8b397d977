"""Which release readers see under a table's name, since when, from which position on."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from platform_core.control import audit
from platform_core.control.position import Position
from platform_core.control.store import ControlStore, Cursor
from platform_core.names import ReleaseId


@dataclass(frozen=True)
class Alias:
    table: str
    release: ReleaseId
    since: datetime
    position: Position | None  # None: from the beginning
    by: str


def live(store: ControlStore, table: str) -> Alias | None:
    return resolve(store, [table]).get(table)


def all(store: ControlStore) -> dict[str, Alias]:
    with store.transaction() as cursor:
        return read_all(cursor)


def read_all(cursor: Cursor) -> dict[str, Alias]:
    cursor.execute("select * from weir.aliases order by table_name")
    return {row["table_name"]: _row(row) for row in cursor}


def resolve(store: ControlStore, tables: Collection[str]) -> dict[str, Alias]:
    """Several tables as of one moment, so that no reader sees one of a cutover's tables moved and another not."""
    with store.transaction() as cursor:
        cursor.execute("select * from weir.aliases where table_name = any(%s)", (list(tables),))
        return {row["table_name"]: _row(row) for row in cursor}


def locked(cursor: Cursor, tables: Collection[str]) -> dict[str, ReleaseId]:
    """The live release of each table; it stays that until the caller's commit."""
    cursor.execute(
        "select * from weir.aliases where table_name = any(%s) order by table_name for update", (list(tables),)
    )
    return {row["table_name"]: ReleaseId(row["job"], row["number"]) for row in cursor}


def point(store: ControlStore, table: str, release: ReleaseId, position: Position | None, by: str) -> Alias:
    with store.transaction() as cursor:
        return move(cursor, table, release, position, by)


def move(cursor: Cursor, table: str, release: ReleaseId, position: Position | None, by: str) -> Alias:
    """`point` within the caller's transaction, so that several tables move together."""
    where = None if position is None else position.to_json()
    cursor.execute(
        "insert into weir.aliases (table_name, job, number, position, by) values (%s, %s, %s, %s::jsonb, %s) "
        "on conflict (table_name) do update set job = excluded.job, number = excluded.number, "
        "position = excluded.position, by = excluded.by, since = clock_timestamp() returning *",
        (table, release.job, release.number, where, by),
    )
    alias = _row(cursor.fetchone() or {})
    cursor.execute(
        "insert into weir.alias_history (table_name, job, number, position, by, since) "
        "values (%s, %s, %s, %s::jsonb, %s, %s)",
        (table, release.job, release.number, where, by, alias.since),
    )
    batch = None if position is None else position.batch
    audit.write(cursor, by, "point", table, {"release": str(release), "batch": batch})
    return alias


def history(store: ControlStore, table: str, limit: int = 100) -> list[Alias]:
    """The newest first; the first is the one in force."""
    with store.transaction() as cursor:
        cursor.execute(
            "select * from weir.alias_history where table_name = %s order by id desc limit %s", (table, limit)
        )
        return [_row(row) for row in cursor]


def _row(row: dict[str, Any]) -> Alias:
    position = None if row["position"] is None else Position.from_json(json.dumps(row["position"]))
    return Alias(row["table_name"], ReleaseId(row["job"], row["number"]), row["since"], position, row["by"])
