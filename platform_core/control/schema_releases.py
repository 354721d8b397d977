"""What a release was given later: where it begins to read, and revisions of its code. Only ever added to."""

from __future__ import annotations

from typing import LiteralString

_REVISIONS: LiteralString = """
create table if not exists weir.revisions (
    job text not null,
    number int not null,
    revision int not null,
    archive_sha256 text not null,
    fingerprint text not null,
    manifest jsonb not null,
    created_at timestamptz not null default clock_timestamp(),
    created_by text not null,
    reason text not null default '',
    primary key (job, number, revision)
)"""

STATEMENTS: tuple[LiteralString, ...] = (
    "alter table weir.releases add column if not exists replay_from jsonb",
    "alter table weir.releases add column if not exists revision int not null default 0",
    _REVISIONS,
)
