"""Verdicts on pairs of releases: figures and reasons, no rows. The newest one of a pair is a gate of its cutover."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg.types.json import Jsonb

from platform_core.control import audit
from platform_core.control.position import Position, same_place
from platform_core.control.positions import Committed, history
from platform_core.control.store import ControlStore
from platform_core.names import ReleaseId

KEPT = 1000  # newest verdicts a pair
_LOOK_BACK = 1000  # positions of the newer release
_NEWEST = 200  # positions of each, where their topics or partitions are not the same ones


@dataclass(frozen=True)
class ComparisonRecord:
    """`left` is the older release: what the right one has otherwise was asked."""

    id: int
    left: ReleaseId
    right: ReleaseId
    left_version: int
    right_version: int
    position: Position  # the right one's; the left one stood at the same offsets
    passed: bool
    reasons: tuple[str, ...]
    notes: tuple[str, ...]
    figures: Mapping[str, Any]
    by: str
    seconds: float
    at: datetime


def keep(
    store: ControlStore,
    left: tuple[ReleaseId, int],
    right: tuple[ReleaseId, int],
    position: Position,
    *,
    passed: bool,
    reasons: Sequence[str],
    notes: Sequence[str],
    figures: Mapping[str, Any],
    seconds: float,
    by: str,
) -> ComparisonRecord:
    """Each side with the version of its table. The audit has a line where the verdict is another than the last one."""
    (old, old_version), (new, new_version) = left, right
    last = newest(store, old, new)
    with store.transaction() as cursor:
        cursor.execute(
            "insert into weir.comparisons (job, left_number, right_number, left_version, right_version, position, "
            "passed, reasons, notes, figures, by, seconds) "
            "values (%s, %s, %s, %s, %s, %s::jsonb, %s, %s, %s, %s, %s, %s) returning *",
            (
                *(new.job, old.number, new.number, old_version, new_version, position.to_json(), passed),
                *(Jsonb(list(reasons)), Jsonb(list(notes)), Jsonb(dict(figures)), by, seconds),
            ),
        )
        row = _row(cursor.fetchone() or {})
        cursor.execute(
            "delete from weir.comparisons where job = %s and left_number = %s and right_number = %s and id in "
            "(select id from weir.comparisons where job = %s and left_number = %s and right_number = %s "
            "order by id desc offset %s)",
            (*(new.job, old.number, new.number) * 2, KEPT),
        )
        if last is None or (last.passed, last.reasons) != (row.passed, row.reasons):
            told = {"with": str(old), "passed": passed, "reasons": list(reasons)}
            audit.write(cursor, by, "compare", str(new), told)
    return row


def newest(store: ControlStore, one: ReleaseId, other: ReleaseId) -> ComparisonRecord | None:
    """Of the two, whichever is the older."""
    numbers = sorted((one.number, other.number))
    with store.transaction() as cursor:
        cursor.execute(
            "select * from weir.comparisons where job = %s and left_number = %s and right_number = %s "
            "order by id desc limit 1",
            (one.job, *numbers),
        )
        row = cursor.fetchone()
    return None if row is None else _row(row)


def of_job(store: ControlStore, job: str, limit: int = 100) -> list[ComparisonRecord]:
    """The newest first."""
    with store.transaction() as cursor:
        cursor.execute("select * from weir.comparisons where job = %s order by id desc limit %s", (job, limit))
        return [_row(row) for row in cursor]


def met(store: ControlStore, left: ReleaseId, right: ReleaseId) -> tuple[Committed, Committed] | None:
    """The newest commits of the two at which they stood at the same offsets and versions of tables."""
    with store.transaction() as cursor:
        cursor.execute(
            "select l.batch as left_batch, r.batch as right_batch from weir.positions l join "
            "(select * from weir.positions where job = %s and number = %s and table_version is not null "
            "order by batch desc limit %s) r on l.position -> 'offsets' = r.position -> 'offsets' "
            "and l.position -> 'tables' is not distinct from r.position -> 'tables' "
            "where l.job = %s and l.number = %s and l.table_version is not null "
            "order by r.batch desc, l.batch desc limit 1",
            (right.job, right.number, _LOOK_BACK, left.job, left.number),
        )
        row = cursor.fetchone()
    if row is None:
        return _met_of_newest(store, left, right)
    return _at(store, left, row["left_batch"]), _at(store, right, row["right_batch"])


def _met_of_newest(store: ControlStore, left: ReleaseId, right: ReleaseId) -> tuple[Committed, Committed] | None:
    """One may read another topic more, or not know of a partition yet."""
    there = [one for one in history(store, left, _NEWEST) if one.table_version is not None]
    for new in history(store, right, _NEWEST):
        if new.table_version is not None:
            for old in there:
                if same_place(old.position.places, new.position.places):
                    return old, new
    return None


def _at(store: ControlStore, release: ReleaseId, batch: int) -> Committed:
    return history(store, release, 1, after=batch - 1)[0]


def _row(row: dict[str, Any]) -> ComparisonRecord:
    pair = {side: ReleaseId(row["job"], row[f"{side}_number"]) for side in ("left", "right")}
    position = Position.from_json(json.dumps(row["position"]))
    reasons, notes = tuple(row["reasons"]), tuple(row["notes"])
    plain = ("id", "left_version", "right_version", "passed", "figures", "by", "seconds", "at")
    same = {name: row[name] for name in plain}
    return ComparisonRecord(**pair, position=position, reasons=reasons, notes=notes, **same)
