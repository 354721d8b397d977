"""The positions that each release has committed: what a follower plans by, and where a release stands."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from platform_core.control import leases, progress
from platform_core.control.facts import BatchFacts
from platform_core.control.leases import Lease
from platform_core.control.position import Position
from platform_core.control.store import ControlStore, Cursor
from platform_core.errors import UsageError
from platform_core.names import ReleaseId

KEPT = 100_000  # newest positions a release
_SWEEP_EVERY = 500  # batches


@dataclass(frozen=True)
class Committed:
    """A position with the version of the table in which it became readable."""

    position: Position
    table_version: int | None
    committed_at: datetime


def record(
    store: ControlStore, lease: Lease, position: Position, facts: BatchFacts, table_version: int | None = None
) -> None:
    """After the batch's commit, in one transaction. Superseded, and nothing written, when the lease is another's.

    A repeated batch replaces its position and adds nothing to the totals: after a crash it is safe to record it again.
    """
    release = ReleaseId.parse(position.release)
    if lease.name != leases.driver_lease(release):
        raise UsageError(f"A position of {release} came with lease {lease.name}.", remedy="Record with its own lease.")
    with store.transaction() as cursor:
        leases.check(cursor, lease)
        if _insert(cursor, release, position, table_version):
            progress.add(cursor, release, facts)
        if position.batch % _SWEEP_EVERY == 0:
            _sweep(cursor, release, position.batch)
            progress.sweep(cursor, release)


def add(cursor: Cursor, release: ReleaseId, position: Position, table_version: int | None) -> None:
    """Within the caller's transaction: a commit that its driver did not live to record. Its counts are lost."""
    cursor.execute(
        "select from weir.positions where job = %s and number = %s and batch = %s",
        (release.job, release.number, position.batch),
    )
    if cursor.fetchone() is None:
        _insert(cursor, release, position, table_version)


def fill(store: ControlStore, lease: Lease, told: Sequence[tuple[Position, int]]) -> None:
    """Commits with their tables' versions, of a driver that died while the store was away. Superseded as `record`."""
    with store.transaction() as cursor:
        leases.check(cursor, lease)
        for position, version in told:
            add(cursor, ReleaseId.parse(position.release), position, version)


def latest(store: ControlStore, release: ReleaseId) -> tuple[Position, int | None] | None:
    newest = history(store, release, 1)
    return (newest[0].position, newest[0].table_version) if newest else None


def history(store: ControlStore, release: ReleaseId, limit: int, *, after: int | None = None) -> list[Committed]:
    """The newest first; with `after`, those of later batches, the oldest first, as a follower walks them."""
    with store.transaction() as cursor:
        if after is None:
            cursor.execute(
                "select * from weir.positions where job = %s and number = %s order by batch desc limit %s",
                (release.job, release.number, limit),
            )
        else:
            cursor.execute(
                "select * from weir.positions where job = %s and number = %s and batch > %s order by batch limit %s",
                (release.job, release.number, after, limit),
            )
        return [_row(row) for row in cursor]


def _insert(cursor: Cursor, release: ReleaseId, position: Position, table_version: int | None) -> bool:
    """Whether the batch was new."""
    cursor.execute(
        "insert into weir.positions (job, number, batch, position, watermark_ms, table_version) "
        "values (%s, %s, %s, %s::jsonb, %s, %s) on conflict (job, number, batch) do update set "
        "position = excluded.position, watermark_ms = excluded.watermark_ms, table_version = excluded.table_version "
        "returning xmax = 0 as new",
        (release.job, release.number, position.batch, position.to_json(), position.watermark_ms, table_version),
    )
    return bool((cursor.fetchone() or {"new": False})["new"])


def _sweep(cursor: Cursor, release: ReleaseId, batch: int) -> None:
    cursor.execute(
        "delete from weir.positions where job = %s and number = %s and batch <= %s",
        (release.job, release.number, batch - KEPT),
    )


def _row(row: dict[str, Any]) -> Committed:
    return Committed(Position.from_json(json.dumps(row["position"])), row["table_version"], row["committed_at"])
