"""Records that retention removed before a release had read them: which, how many, and who goes on without them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from platform_core.control import audit
from platform_core.control.position import Offsets
from platform_core.control.store import ControlStore
from platform_core.names import ReleaseId


@dataclass(frozen=True)
class Gap:
    """`first` to `last`, both gone."""

    topic: str
    partition: int
    first: int
    last: int

    @property
    def records(self) -> int:
        return self.last - self.first + 1

    def __str__(self) -> str:
        return f"{self.topic}[{self.partition}] {self.first}..{self.last}"


@dataclass(frozen=True)
class Found:
    gap: Gap
    found_at: datetime
    accepted_by: str  # empty: nobody has yet


def between(at: Offsets, starts: Offsets) -> list[Gap]:
    """What lies between where a release stands and the oldest record that is left."""
    return [
        Gap(topic, partition, offset, oldest - 1)
        for topic, parts in sorted(at.items())
        for partition, offset in sorted(parts.items())
        if (oldest := starts.get(topic, {}).get(partition, 0)) > offset
    ]


def told(found: Sequence[Gap]) -> str:
    lost = sum(gap.records for gap in found)
    return f"Retention has removed {lost} records that were not read yet: {', '.join(map(str, found))}"


def record(store: ControlStore, release: ReleaseId, found: Sequence[Gap]) -> bool:
    """Whether somebody has said to go on without all of them. A gap that grew meanwhile is the same one, and larger."""
    with store.transaction() as cursor:
        for gap in found:
            cursor.execute(
                "insert into weir.gaps (job, number, topic, partition, first, last) values (%s, %s, %s, %s, %s, %s) "
                "on conflict (job, number, topic, partition, first) do update set last = excluded.last",
                (release.job, release.number, gap.topic, gap.partition, gap.first, gap.last),
            )
    accepted = {(one.gap.topic, one.gap.partition, one.gap.first) for one in of(store, release) if one.accepted_by}
    return all((gap.topic, gap.partition, gap.first) in accepted for gap in found)


def accept(store: ControlStore, release: ReleaseId, by: str) -> list[Gap]:
    """Those that nobody had accepted: the release may go on without them."""
    waiting = [one.gap for one in of(store, release) if not one.accepted_by]
    with store.transaction() as cursor:
        cursor.execute(
            "update weir.gaps set accepted_by = %s, accepted_at = clock_timestamp() "
            "where job = %s and number = %s and accepted_by is null",
            (by, release.job, release.number),
        )
        if waiting:
            audit.write(cursor, by, "accept gap", str(release), {"lost": [str(gap) for gap in waiting]})
    return waiting


def of(store: ControlStore, release: ReleaseId) -> list[Found]:
    with store.transaction() as cursor:
        cursor.execute(
            "select * from weir.gaps where job = %s and number = %s order by found_at, topic, partition, first",
            (release.job, release.number),
        )
        return [
            Found(
                Gap(row["topic"], row["partition"], row["first"], row["last"]),
                row["found_at"],
                row["accepted_by"] or "",
            )
            for row in cursor
        ]
