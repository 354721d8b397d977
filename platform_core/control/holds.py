"""Claims on history: files of a table, a checkpoint, offsets. Clean-up never passes one that is in force."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, LiteralString

from platform_core.control import releases
from platform_core.control.store import ControlStore, Cursor
from platform_core.errors import UsageError
from platform_core.names import ReleaseId

What = Literal["table", "checkpoint", "offsets"]
_IN_FORCE: LiteralString = "(until is null or until > clock_timestamp())"


@dataclass(frozen=True)
class Hold:
    id: int
    release: ReleaseId
    what: What
    version: int | None  # of the table; None: all there is
    by: str
    claimed_at: datetime
    until: datetime | None  # None: until it is dropped

    def __str__(self) -> str:
        which = self.what if self.version is None else f"{self.what} version {self.version}"
        end = "" if self.until is None else f" until {self.until:%Y-%m-%d %H:%M:%S} UTC"
        return f"{self.by} holds its {which}{end}"


def claim(
    store: ControlStore,
    release: ReleaseId,
    what: What,
    by: str,
    *,
    version: int | None = None,
    seconds: float | None = None,
) -> Hold:
    """Whoever may die before it drops its hold says for how many `seconds` it needs it."""
    with store.transaction() as cursor:
        if releases.locked_states(cursor, [release])[release] in ("retired", "unknown"):
            raise UsageError(f"{release} is retired: nothing of it is left to hold.", remedy="Name another release.")
        cursor.execute(
            "insert into weir.holds (job, number, what, version, by, until) values (%(job)s, %(number)s, %(what)s, "
            "%(version)s, %(by)s, clock_timestamp() + %(seconds)s * interval '1 second') returning *",
            {**vars(release), "what": what, "version": version, "by": by, "seconds": seconds},
        )
        return _row(cursor.fetchone() or {})


def drop(store: ControlStore, hold: int) -> None:
    """Also one that is dropped already."""
    with store.transaction() as cursor:
        cursor.execute("delete from weir.holds where id = %s", (hold,))


def of_release(store: ControlStore, release: ReleaseId) -> list[Hold]:
    with store.transaction() as cursor:
        return in_force(cursor, release)


def in_force(cursor: Cursor, release: ReleaseId) -> list[Hold]:
    """Those that have run out are gone for good."""
    cursor.execute(
        f"delete from weir.holds where job = %s and number = %s and not {_IN_FORCE}", (release.job, release.number)
    )
    cursor.execute("select * from weir.holds where job = %s and number = %s order by id", (release.job, release.number))
    return [_row(row) for row in cursor]


def held_versions(store: ControlStore, release: ReleaseId) -> list[int] | None:
    """The versions of its table that somebody reads; None when all have to stay."""
    with store.transaction() as cursor:
        cursor.execute(
            f"select distinct version from weir.holds "
            f"where job = %s and number = %s and what = 'table' and {_IN_FORCE}",
            (release.job, release.number),
        )
        versions = [row["version"] for row in cursor]
    return None if None in versions else sorted(versions)


def oldest_version(store: ControlStore, release: ReleaseId) -> int | None:
    """The oldest version of its table that somebody reads, 0 when all have to stay; None without holds."""
    held = held_versions(store, release)
    return 0 if held is None else min(held, default=None)


def _row(row: dict[str, Any]) -> Hold:
    release = ReleaseId(row["job"], row["number"])
    return Hold(row["id"], release, row["what"], row["version"], row["by"], row["claimed_at"], row["until"])
