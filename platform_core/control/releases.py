"""Releases as the control store knows them: one row each, kept for ever, so that a number is never used twice."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import psycopg
from psycopg.types.json import Jsonb

from platform_core.control import audit
from platform_core.control.starts import StartPosition
from platform_core.control.store import ControlStore, Cursor
from platform_core.errors import UsageError
from platform_core.names import ReleaseId

State = Literal["frozen", "replaying", "following", "live", "standby", "retired", "failed"]
CANDIDATE: tuple[State, ...] = ("replaying", "following")


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
    revision: int = 0  # of its code: v2.1 is revision 1 of v2, and 0 what was frozen first
    replay_from: StartPosition | None = None  # None: from the earliest that the broker has at its first batch

    @property
    def title(self) -> str:
        """With its revision, for people: stock_stats@v2.1."""
        return f"{self.id}.{self.revision}" if self.revision else str(self.id)


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
    with store.transaction() as cursor:
        return add(
            cursor,
            release,
            archive_sha256=archive_sha256,
            fingerprint=fingerprint,
            manifest=manifest,
            topics=topics,
            by=by,
            state=state,
            reason=reason,
        )


def add(
    cursor: Cursor,
    release: ReleaseId,
    *,
    archive_sha256: str,
    fingerprint: str,
    manifest: dict[str, Any],
    topics: dict[str, str],
    by: str,
    state: State = "frozen",
    reason: str = "",
    replay_from: StartPosition | None = None,
) -> Release:
    """`create` within the caller's transaction. Of candidates there is one a job at most."""
    if state in CANDIDATE:
        _refuse_second(cursor, release.job)
    start = None if replay_from is None else Jsonb(replay_from.plain())
    values = (archive_sha256, fingerprint, Jsonb(manifest), Jsonb(topics), by, reason, start)
    try:
        cursor.execute(
            "insert into weir.releases (job, number, state, archive_sha256, fingerprint, manifest, topics, "
            "created_by, reason, replay_from) values (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s) returning *",
            (release.job, release.number, state, *values),
        )
    except psycopg.errors.UniqueViolation as error:
        raise UsageError(f"Release {release} exists already.", remedy="Freeze again.") from error
    created = _row(cursor.fetchone() or {})
    audit.write(cursor, by, "freeze", str(release), {"archive_sha256": archive_sha256, "reason": reason})
    return created


def _refuse_second(cursor: Cursor, job: str) -> None:
    """The job's rows stay locked until the commit: of two who ask at once the second sees the first's candidate.

    Read once more after the lock: what waited for it still sees the rows of when it began to wait.
    """
    cursor.execute("select from weir.releases where job = %s order by number for update", (job,))
    cursor.execute("select * from weir.releases where job = %s order by number", (job,))
    refuse_candidate([_row(row) for row in cursor])


def refuse_candidate(known: Sequence[Release]) -> None:
    """Raises when one of the job's releases is a candidate."""
    other = next((release for release in known if release.state in CANDIDATE), None)
    if other is not None:
        raise UsageError(
            f"{other.id} is a candidate already: {other.state}, made by {other.created_by} at "
            f"{other.created_at:%Y-%m-%d %H:%M}.",
            remedy=f"Cut over to it, or remove it with `weir retire {other.id}`, then make another.",
        )


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


def live(store: ControlStore, job: str) -> Release | None:
    return next((one for one in of_job(store, job) if one.state == "live"), None)


def live_of(store: ControlStore, job: str) -> ReleaseId | None:
    found = live(store, job)
    return None if found is None else found.id


def live_or_refused(store: ControlStore, job: str) -> Release:
    found = live(store, job)
    if found is None:
        raise UsageError(f"Job {job!r} has no live release.", remedy=f"`weir start {job}` makes one.")
    return found


def refuse_other_table(release: Release, table: str) -> None:
    """Before readers of the job's `table` are to read the release."""
    written = release.manifest.get("output", {}).get("table")
    if written != table:
        raise UsageError(
            f"{release.id} writes table {written!r}, and readers of its job read {table!r}.",
            remedy=f"Give the job its output table {table!r} again, or make it a job of another name.",
        )


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


def locked_states(cursor: Cursor, releases: Collection[ReleaseId]) -> dict[ReleaseId, str]:
    """The states stay as they are until the caller's commit; `unknown` of a release that there is not."""
    states: dict[ReleaseId, str] = {}
    for release in sorted(releases):
        cursor.execute(
            "select state from weir.releases where job = %s and number = %s for update", (release.job, release.number)
        )
        states[release] = (cursor.fetchone() or {"state": "unknown"})["state"]
    return states


def fail(cursor: Cursor, release: ReleaseId, reason: str) -> None:
    """Nobody tries it any more: a candidate makes room for another. One that readers may need stays what it is."""
    cursor.execute(
        "select from weir.releases where job = %s and number = %s and state = any(%s) for update",
        (release.job, release.number, list(CANDIDATE)),
    )
    if cursor.fetchone() is not None:
        change(cursor, release, "failed", reason, by="weir")


def revive(cursor: Cursor, release: ReleaseId, by: str) -> None:
    """A failed candidate that is wanted to run is one again, and goes on where it stood; unless there is another."""
    cursor.execute("select state from weir.releases where job = %s and number = %s", (release.job, release.number))
    row = cursor.fetchone()
    if row is not None and row["state"] == "failed":
        _refuse_second(cursor, release.job)
        change(cursor, release, "replaying", "tried again", by=by)


def _row(row: dict[str, Any]) -> Release:
    release = ReleaseId(row.pop("job"), row.pop("number"))
    known = {name: row[name] for name in Release.__dataclass_fields__ if name in row and name != "id"}
    start = known.pop("replay_from", None)
    return Release(id=release, **known, replay_from=None if start is None else StartPosition.of(start))
