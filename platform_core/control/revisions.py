"""Revisions of a release: the same state and table under other code. The release's row says which one its driver runs.

Revision 0 is what was frozen first. None is ever removed while its release is there: going back is one update.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import psycopg
from psycopg.types.json import Jsonb

from platform_core.control import audit, wanted
from platform_core.control.store import ControlStore, Cursor
from platform_core.errors import UsageError
from platform_core.names import ReleaseId


@dataclass(frozen=True)
class Revision:
    release: ReleaseId
    number: int
    archive_sha256: str
    fingerprint: str
    created_at: datetime
    created_by: str
    reason: str


def next_number(store: ControlStore, release: ReleaseId) -> int:
    return max((one.number for one in of_release(store, release)), default=0) + 1


def of_release(store: ControlStore, release: ReleaseId) -> list[Revision]:
    """The oldest first, without the release as it was frozen first."""
    with store.transaction() as cursor:
        cursor.execute(
            "select * from weir.revisions where job = %s and number = %s order by revision",
            (release.job, release.number),
        )
        return [_row(row) for row in cursor]


def adopt(
    store: ControlStore,
    release: ReleaseId,
    number: int,
    *,
    archive_sha256: str,
    fingerprint: str,
    manifest: dict[str, Any],
    by: str,
    reason: str,
) -> None:
    """Notes the revision and makes it the one in force."""
    values = (archive_sha256, fingerprint, Jsonb(manifest), by, reason)
    try:
        with store.transaction() as cursor:
            cursor.execute(
                "insert into weir.revisions (job, number, revision, archive_sha256, fingerprint, manifest, created_by, "
                "reason) values (%s, %s, %s, %s, %s, %s, %s, %s)",
                (release.job, release.number, number, *values),
            )
            _point(cursor, release, number, by, reason)
    except psycopg.errors.UniqueViolation as error:
        raise UsageError(f"Revision {release}.{number} exists already.", remedy="Run the command again.") from error


def go_back(store: ControlStore, release: ReleaseId, number: int, *, by: str, reason: str) -> None:
    """Another revision of the release, older or newer, is in force from now on."""
    known = [0, *(one.number for one in of_release(store, release))]
    if number not in known:
        there = ", ".join(f"{release}.{one}" for one in known)
        raise UsageError(f"There is no revision {release}.{number}.", remedy=f"Choose from {there}.")
    with store.transaction() as cursor:
        _point(cursor, release, number, by, reason)


def _point(cursor: Cursor, release: ReleaseId, number: int, by: str, reason: str) -> None:
    """A driver that is wanted ends after its batch, and the next one runs the revision."""
    cursor.execute(
        "update weir.releases set revision = %s, changed_at = clock_timestamp() where job = %s and number = %s "
        "returning number",
        (number, release.job, release.number),
    )
    if cursor.fetchone() is None:
        raise UsageError(f"There is no release {release}.", remedy="Freeze it first.")
    audit.write(cursor, by, "revision", str(release), {"revision": number, "reason": reason})
    wanted.renew(cursor, release, by, f"revision {number}" + (f": {reason}" if reason else ""))


def _row(row: dict[str, Any]) -> Revision:
    return Revision(
        release=ReleaseId(row["job"], row["number"]),
        number=row["revision"],
        archive_sha256=row["archive_sha256"],
        fingerprint=row["fingerprint"],
        created_at=row["created_at"],
        created_by=row["created_by"],
        reason=row["reason"],
    )
