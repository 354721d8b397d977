"""The tables of verdicts. Only ever added to, as schema.py says."""

from __future__ import annotations

from typing import LiteralString

_COMPARISONS: LiteralString = """
create table if not exists weir.comparisons (
    id bigint generated always as identity primary key,
    job text not null,
    left_number int not null,
    right_number int not null,
    left_version bigint not null,
    right_version bigint not null,
    position jsonb not null,
    passed boolean not null,
    reasons jsonb not null,
    notes jsonb not null default '[]',
    figures jsonb not null,
    by text not null,
    seconds double precision not null,
    at timestamptz not null default clock_timestamp()
)"""

_CHECKS: LiteralString = """
create table if not exists weir.checks (
    job text not null,
    number int not null,
    name text not null,
    passed boolean not null,
    grave boolean not null,
    says text not null,
    at timestamptz not null default clock_timestamp(),
    primary key (job, number, name)
)"""

STATEMENTS: tuple[LiteralString, ...] = (
    _COMPARISONS,
    _CHECKS,
    "create index if not exists comparisons_of_pair on weir.comparisons (job, right_number, left_number, id)",
)
