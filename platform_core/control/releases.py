"""Releases as the control store knows them: one row each, kept for ever, so that a number is never used twice."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import psycopg
from psycopg.types.json import Jsonb

from platform_core.control import audit
from platform_core.control.store import ControlStore, Cursor
from platform_core.errors import UsageError
from platform_core.names import ReleaseId

State = Literal["frozen", "replaying", "following", "live", "standby", "retired", "failed"]


@dataclass(frozen=True)
class Release:
    id: ReleaseId
    state: State
    archive_sha256: str
    fingerprint: str
    manifest: dict[str, Any]
    topics: dict[str, str]  # name -> the topic's id: a topic made again under its name is another one
    created_at: datetime
    created_by: str
    reason: str
    changed_at: datetime


def create(
    store: ControlStore,
    release: ReleaseId,
    *,
    archive_sha256: str,
    fingerprint: str,
    manifest: dict[str, Any],
    topics: dict[str, str],
    by: str,
    state: State = "frozen",
    reason: str = "",
) -> Release:
    """Refused when the number is taken: of two who freeze at once, one wins and the other asks for the next number."""
    declared = (archive_sha256, fingerprint, Jsonb(manifest), Jsonb(topics))
    try:
        with store.transaction() as cursor:
            cursor.execute(
                "insert into weir.releases (job, number, state, archive_sha256, fingerprint, manifest, topics, "
                "created_by, reason) values (%s, %s, %s, %s, %s, %s, %s, %s, %s) returning *",
                (release.job, release.number, state, *declared, by, reason),
            )
            created = _row(cursor.fetchone() or {})
            audit.write(cursor, by, "freeze", str(release), {"archive_sha256": archive_sha256, "reason": reason})
    except psycopg.errors.UniqueViolation as error:
        raise UsageError(f"Release {release} exists already.", remedy="Freeze again.") from error
    return created


def get(store: ControlStore, release: ReleaseId) -> Release:
    with store.transaction() as cursor:
        cursor.execute("select * from weir.releases where job = %s and number = %s", (release.job, release.number))
        row = cursor.fetchone()
    if row is None:
        known = ", ".join(str(one.id) for one in of_job(store, release.job)) or "none"
        raise UsageError(f"There is no release {release}.", remedy=f"Releases of {release.job}: {known}.")
    return _row(row)


def of_job(store: ControlStore, job: str) -> list[Release]:
    """The oldest first."""
    with store.transaction() as cursor:
        cursor.execute("select * from weir.releases where job = %s order by number", (job,))
        return [_row(row) for row in cursor]


def all(store: ControlStore) -> list[Release]:
    with store.transaction() as cursor:
        cursor.execute("select * from weir.releases order by job, number")
        return [_row(row) for row in cursor]


def next_number(store: ControlStore, job: str) -> int:
    with store.transaction() as cursor:
        cursor.execute("select coalesce(max(number), 0) + 1 as next from weir.releases where job = %s", (job,))
        return int((cursor.fetchone() or {"next": 1})["next"])


def set_state(store: ControlStore, release: ReleaseId, state: State, reason: str, *, by: str = "weir") -> None:
    with store.transaction() as cursor:
        change(cursor, release, state, reason, by=by)


def change(cursor: Cursor, release: ReleaseId, state: State, reason: str, *, by: str) -> None:
    """Within the caller's transaction, so that several releases change together."""
    cursor.execute(
        "update weir.releases set state = %s, reason = %s, changed_at = clock_timestamp() "
        "where job = %s and number = %s returning state",
        (state, reason, release.job, release.number),
    )
    if cursor.fetchone() is None:
        raise UsageError(f"There is no release {release}.", remedy="Freeze it first.")
    audit.write(cursor, by, "state", str(release), {"state": state, "reason": reason})


def _row(row: dict[str, Any]) -> Release:
    release = ReleaseId(row.pop("job"), row.pop("number"))
    known = {name: row[name] for name in Release.__dataclass_fields__ if name != "id"}
    return Release(id=release, **known)
