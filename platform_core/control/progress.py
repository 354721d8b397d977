"""How each release gets on: its newest batch, its totals, and a day of history at one row a second."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, LiteralString

from psycopg.types.json import Jsonb

from platform_core.control.facts import BatchFacts
from platform_core.control.position import as_numbers, as_text
from platform_core.control.store import ControlStore, Cursor
from platform_core.names import ReleaseId

_COUNTS = ("records_in", "rows_out", "used", "late", "rejected", "filtered")
_COLUMNS: LiteralString = (
    "batch, at, records_in, rows_out, used, late, rejected, filtered, batch_seconds, lag, watermark_ms, "
    "newest_event_ms, freshness_seconds, records_per_second"
)
_VALUES: LiteralString = (
    "%(batch)s, %(at)s, %(records_in)s, %(rows_out)s, %(used)s, %(late)s, %(rejected)s, %(filtered)s, "
    "%(batch_seconds)s, %(lag)s, %(watermark_ms)s, %(newest_event_ms)s, %(freshness_seconds)s, %(records_per_second)s"
)
_NEWER: LiteralString = (
    "batch = excluded.batch, at = excluded.at, batch_seconds = excluded.batch_seconds, lag = excluded.lag, "
    "watermark_ms = excluded.watermark_ms, newest_event_ms = excluded.newest_event_ms, "
    "freshness_seconds = excluded.freshness_seconds, records_per_second = excluded.records_per_second, "
    "recorded_at = excluded.recorded_at"
)


@dataclass(frozen=True)
class Totals:
    """Sums over all batches that the release ever recorded."""

    records_in: int
    rows_out: int
    used: int
    late: int
    rejected: int
    filtered: int


@dataclass(frozen=True)
class Progress:
    release: ReleaseId
    facts: BatchFacts
    totals: Totals
    recorded_at: datetime
    age_seconds: float  # since then, on Postgres's clock


def latest(store: ControlStore) -> dict[ReleaseId, Progress]:
    """The newest batch of every release that has one."""
    with store.transaction() as cursor:
        cursor.execute(
            "select *, extract(epoch from clock_timestamp() - recorded_at)::float8 as age from weir.progress "
            "order by job, number"
        )
        return {_release(row): _progress(row) for row in cursor}


def recent(store: ControlStore, release: ReleaseId, since: datetime) -> list[BatchFacts]:
    """The oldest first, one a second: the second's newest batch, with the counts of all batches of that second."""
    with store.transaction() as cursor:
        cursor.execute(
            "select * from weir.progress_history where job = %s and number = %s and recorded_at >= %s order by second",
            (release.job, release.number, since),
        )
        return [_facts(row) for row in cursor]


def add(cursor: Cursor, release: ReleaseId, facts: BatchFacts) -> None:
    """Within the transaction that records the batch's position; once a batch."""
    values: dict[str, Any] = {**vars(facts), "lag": Jsonb(as_text(facts.lag)), "job": release.job}
    values["number"] = release.number
    cursor.execute(
        f"insert into weir.progress as p (job, number, {_COLUMNS}, total_records_in, total_rows_out, total_used, "
        f"total_late, total_rejected, total_filtered) values (%(job)s, %(number)s, {_VALUES}, %(records_in)s, "
        f"%(rows_out)s, %(used)s, %(late)s, %(rejected)s, %(filtered)s) "
        f"on conflict (job, number) do update set {_NEWER}, "
        "records_in = excluded.records_in, rows_out = excluded.rows_out, used = excluded.used, late = excluded.late, "
        "rejected = excluded.rejected, filtered = excluded.filtered, "
        "total_records_in = p.total_records_in + excluded.records_in, "
        "total_rows_out = p.total_rows_out + excluded.rows_out, total_used = p.total_used + excluded.used, "
        "total_late = p.total_late + excluded.late, "
        "total_rejected = p.total_rejected + excluded.rejected, total_filtered = p.total_filtered + excluded.filtered",
        values,
    )
    cursor.execute(
        f"insert into weir.progress_history as h (job, number, second, {_COLUMNS}) values (%(job)s, %(number)s, "
        f"date_trunc('second', clock_timestamp()), {_VALUES}) "
        f"on conflict (job, number, second) do update set {_NEWER}, "
        "records_in = h.records_in + excluded.records_in, rows_out = h.rows_out + excluded.rows_out, "
        "used = h.used + excluded.used, "
        "late = h.late + excluded.late, rejected = h.rejected + excluded.rejected, "
        "filtered = h.filtered + excluded.filtered",
        values,
    )


def sweep(cursor: Cursor, release: ReleaseId) -> None:
    """A day is kept."""
    cursor.execute(
        "delete from weir.progress_history where job = %s and number = %s "
        "and recorded_at < clock_timestamp() - interval '24 hours'",
        (release.job, release.number),
    )


def _progress(row: dict[str, Any]) -> Progress:
    totals = Totals(**{name: row[f"total_{name}"] for name in _COUNTS})
    return Progress(_release(row), _facts(row), totals, row["recorded_at"], row["age"])


def _facts(row: dict[str, Any]) -> BatchFacts:
    known: dict[str, Any] = {name: row[name] for name in BatchFacts.__dataclass_fields__}
    known["lag"] = as_numbers(row["lag"])
    return BatchFacts(**known)


def _release(row: dict[str, Any]) -> ReleaseId:
    return ReleaseId(row["job"], row["number"])
