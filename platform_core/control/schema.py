"""The control store's tables. Only ever added to: code of old releases, frozen years ago, writes here too.

So: `create table if not exists`, then `add column if not exists` with a default, below the table; never a rename,
never a new constraint. Times are Postgres's: the one clock that all machines share.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import LiteralString

from psycopg import sql

from platform_core.control import schema_changes, schema_comparisons, schema_releases
from platform_core.control.facts import METRICS, Metric

_RELEASES: LiteralString = """
create table if not exists weir.releases (
    job text not null,
    number int not null,
    state text not null,
    archive_sha256 text not null,
    fingerprint text not null,
    manifest jsonb not null,
    topics jsonb not null,
    created_at timestamptz not null default clock_timestamp(),
    created_by text not null,
    reason text not null default '',
    changed_at timestamptz not null default clock_timestamp(),
    primary key (job, number)
)"""

_LEASES: LiteralString = """
create table if not exists weir.leases (
    name text primary key,
    epoch bigint not null,
    host text not null,
    pid int not null,
    started_at double precision not null,
    acquired_at timestamptz not null,
    renewed_at timestamptz not null,
    expires_at timestamptz not null,
    released boolean not null default false
)"""

_WANTED: LiteralString = """
create table if not exists weir.wanted (
    job text not null,
    number int not null,
    state text not null,
    generation int not null default 1,
    by text not null,
    reason text not null default '',
    at timestamptz not null default clock_timestamp(),
    primary key (job, number)
)"""

_DRIVERS: LiteralString = """
create table if not exists weir.drivers (
    job text not null,
    number int not null,
    state text not null default 'stopped',
    host text not null default '',
    pid int,
    started_at double precision not null default 0,
    generation int not null default 0,
    failures int not null default 0,
    restarts int not null default 0,
    next_try_at timestamptz,
    running_since timestamptz,
    reason text not null default '',
    permanent boolean not null default false,
    given_up boolean not null default false,
    updated_at timestamptz not null default clock_timestamp(),
    primary key (job, number)
)"""

_POSITIONS: LiteralString = """
create table if not exists weir.positions (
    job text not null,
    number int not null,
    batch bigint not null,
    position jsonb not null,
    watermark_ms bigint not null,
    table_version bigint,
    committed_at timestamptz not null default clock_timestamp(),
    primary key (job, number, batch)
)"""

_BATCH_COLUMNS: LiteralString = """
    job text not null,
    number int not null,
    batch bigint not null,
    at timestamptz not null,
    records_in bigint not null,
    rows_out bigint not null,
    used bigint not null default 0,
    late bigint not null,
    rejected bigint not null,
    filtered bigint not null,
    batch_seconds double precision not null,
    lag jsonb not null,
    watermark_ms bigint not null,
    newest_event_ms bigint,
    freshness_seconds double precision,
    records_per_second double precision not null,
    recorded_at timestamptz not null default clock_timestamp(),
"""

_PROGRESS: LiteralString = f"""
create table if not exists weir.progress ({_BATCH_COLUMNS}
    total_records_in bigint not null default 0,
    total_rows_out bigint not null default 0,
    total_used bigint not null default 0,
    total_late bigint not null default 0,
    total_rejected bigint not null default 0,
    total_filtered bigint not null default 0,
    primary key (job, number)
)"""

_PROGRESS_HISTORY: LiteralString = f"""
create table if not exists weir.progress_history ({_BATCH_COLUMNS}
    second timestamptz not null,
    primary key (job, number, second)
)"""


def metric_columns(metrics: Mapping[str, Metric]) -> Iterator[sql.Composed]:
    """For the metrics that came after these columns. Drivers frozen before then leave them as they are by default."""
    for name, metric in metrics.items():
        if f"    {name} " not in _BATCH_COLUMNS:
            kind = sql.SQL(f"{metric.kind} not null default 0" if metric.counted else metric.kind)
            yield from (_column(table, name, kind) for table in ("progress", "progress_history"))
            if metric.counted:
                yield _column("progress", f"total_{name}", kind)


def _column(table: str, name: str, kind: sql.SQL) -> sql.Composed:
    place = sql.Identifier("weir", table)
    return sql.SQL("alter table {} add column if not exists {} {}").format(place, sql.Identifier(name), kind)


_ALIASES: LiteralString = """
create table if not exists weir.aliases (
    table_name text primary key,
    job text not null,
    number int not null,
    position jsonb,
    by text not null,
    since timestamptz not null default clock_timestamp()
)"""

_ALIAS_HISTORY: LiteralString = """
create table if not exists weir.alias_history (
    id bigint generated always as identity primary key,
    table_name text not null,
    job text not null,
    number int not null,
    position jsonb,
    by text not null,
    since timestamptz not null
)"""

_AUDIT: LiteralString = """
create table if not exists weir.audit (
    id bigint generated always as identity primary key,
    at timestamptz not null default clock_timestamp(),
    who text not null,
    action text not null,
    subject text not null,
    detail jsonb not null default '{}'
)"""

_SERVICES: LiteralString = """
create table if not exists weir.services (
    name text primary key,
    beat_at timestamptz not null default clock_timestamp(),
    detail jsonb not null default '{}'
)"""

STATEMENTS: tuple[LiteralString | sql.Composed, ...] = (
    "create schema if not exists weir",
    _RELEASES,
    _LEASES,
    _WANTED,
    _DRIVERS,
    _POSITIONS,
    "create index if not exists positions_by_time on weir.positions (job, number, committed_at)",
    _PROGRESS,
    _PROGRESS_HISTORY,
    "create index if not exists progress_history_by_time on weir.progress_history (recorded_at)",
    _ALIASES,
    _ALIAS_HISTORY,
    "create index if not exists alias_history_by_table on weir.alias_history (table_name, id)",
    _AUDIT,
    "create index if not exists audit_by_subject on weir.audit (subject, id)",
    _SERVICES,
    *metric_columns(METRICS),
    *schema_changes.STATEMENTS,
    *schema_releases.STATEMENTS,
    *schema_comparisons.STATEMENTS,
)
