"""What people want of each release. UI, CLI and code write it here; the supervisor makes it true."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from platform_core.control import audit, releases
from platform_core.control.store import ControlStore, Cursor
from platform_core.errors import UsageError
from platform_core.names import ReleaseId

State = Literal["run", "stop", "pause"]


@dataclass(frozen=True)
class Wanted:
    """A driver of an older generation ends and a new one begins; so does the count of failures."""

    release: ReleaseId
    state: State
    generation: int
    by: str
    reason: str
    at: datetime


def want(store: ControlStore, release: ReleaseId, state: State, by: str, reason: str = "") -> Wanted:
    """Wanting what runs already changes nothing but the reason. To want a driver that was given up tries it afresh."""
    with store.transaction() as cursor:
        return ask(cursor, release, state, by, reason)


def restart(store: ControlStore, release: ReleaseId, by: str, reason: str = "") -> Wanted:
    """Ends the running driver after its batch and starts another; the count of failures starts over."""
    with store.transaction() as cursor:
        cursor.execute(
            "update weir.wanted set state = 'run', generation = generation + 1, by = %s, reason = %s, "
            "at = clock_timestamp() where job = %s and number = %s returning *",
            (by, reason, release.job, release.number),
        )
        row = cursor.fetchone()
        if row is None:
            raise UsageError(f"{release} was never started.", remedy=f"Run `weir start {release.job}`.")
        audit.write(cursor, by, "restart", str(release), {"generation": row["generation"], "reason": reason})
        releases.revive(cursor, release, by)
    return _row(row)


def ask(cursor: Cursor, release: ReleaseId, state: State, by: str, reason: str) -> Wanted:
    """`want` within the caller's transaction, so that several releases change together."""
    cursor.execute(
        "insert into weir.wanted as w (job, number, state, by, reason) values (%(job)s, %(number)s, %(state)s, %(by)s, "
        "%(reason)s) on conflict (job, number) do update set state = excluded.state, by = excluded.by, "
        "reason = excluded.reason, at = clock_timestamp(), "
        "generation = w.generation + (excluded.state = 'run' and (w.state <> 'run' or exists ("
        "select from weir.drivers d where d.job = w.job and d.number = w.number and d.given_up)))::int returning *",
        {"job": release.job, "number": release.number, "state": state, "by": by, "reason": reason},
    )
    wanted = _row(cursor.fetchone() or {})
    audit.write(cursor, by, state, str(release), {"generation": wanted.generation, "reason": reason})
    if state == "run":
        releases.revive(cursor, release, by)
    return wanted


def renew(cursor: Cursor, release: ReleaseId, by: str, reason: str) -> None:
    """Within the caller's transaction: what is wanted to run starts over, what is not stays as it is."""
    cursor.execute(
        "update weir.wanted set generation = generation + 1, by = %s, reason = %s, at = clock_timestamp() "
        "where job = %s and number = %s and state = 'run' returning generation",
        (by, reason, release.job, release.number),
    )
    row = cursor.fetchone()
    if row is not None:
        audit.write(cursor, by, "restart", str(release), {"generation": row["generation"], "reason": reason})


def of(store: ControlStore, release: ReleaseId) -> Wanted | None:
    with store.transaction() as cursor:
        cursor.execute("select * from weir.wanted where job = %s and number = %s", (release.job, release.number))
        row = cursor.fetchone()
    return None if row is None else _row(row)


def all(store: ControlStore) -> dict[ReleaseId, Wanted]:
    with store.transaction() as cursor:
        return read_all(cursor)


def read_all(cursor: Cursor) -> dict[ReleaseId, Wanted]:
    cursor.execute("select * from weir.wanted order by job, number")
    return {wanted.release: wanted for wanted in map(_row, cursor)}


def _row(row: dict[str, Any]) -> Wanted:
    release = ReleaseId(row["job"], row["number"])
    return Wanted(release, row["state"], row["generation"], row["by"], row["reason"], row["at"])
