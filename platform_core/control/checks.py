"""What checks said of a release, the newest of each: one that fails is a gate of its cutover."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from platform_core.control.store import ControlStore
from platform_core.names import ReleaseId


@dataclass(frozen=True)
class Said:
    """A verdict to be kept; one that is not grave warns, and stops nothing."""

    check: str
    passed: bool
    grave: bool
    says: str


@dataclass(frozen=True)
class Checked:
    release: ReleaseId
    check: str
    passed: bool
    grave: bool
    says: str
    at: datetime


def keep(store: ControlStore, release: ReleaseId, said: Sequence[Said]) -> None:
    with store.transaction() as cursor:
        for one in said:
            cursor.execute(
                "insert into weir.checks (job, number, name, passed, grave, says) values (%s, %s, %s, %s, %s, %s) "
                "on conflict (job, number, name) do update set passed = excluded.passed, grave = excluded.grave, "
                "says = excluded.says, at = clock_timestamp()",
                (release.job, release.number, one.check, one.passed, one.grave, one.says),
            )


def of_release(store: ControlStore, release: ReleaseId) -> list[Checked]:
    """By name."""
    with store.transaction() as cursor:
        cursor.execute(
            "select name, passed, grave, says, at from weir.checks where job = %s and number = %s order by name",
            (release.job, release.number),
        )
        return [Checked(release, row["name"], row["passed"], row["grave"], row["says"], row["at"]) for row in cursor]


def failing(store: ControlStore, release: ReleaseId) -> list[Checked]:
    return [one for one in of_release(store, release) if one.grave and not one.passed]
