"""Tables for changing a running job: cutovers, clients, holds. Only ever added to, as schema.py says."""

from __future__ import annotations

from typing import LiteralString

_CUTOVERS: LiteralString = """
create table if not exists weir.cutovers (
    id bigint generated always as identity primary key,
    kind text not null,
    phase text not null default 'requested',
    by text not null,
    reason text not null default '',
    why text not null default '',
    requested_at timestamptz not null default clock_timestamp(),
    deadline_at timestamptz not null,
    held_at timestamptz,
    aligned_at timestamptz,
    flipped_at timestamptz,
    ended_at timestamptz
)"""

_CUTOVER_MOVES: LiteralString = """
create table if not exists weir.cutover_moves (
    cutover bigint not null,
    table_name text not null,
    old_job text not null,
    old_number int not null,
    new_job text not null,
    new_number int not null,
    held jsonb,
    held_epoch bigint,
    aligned jsonb,
    aligned_version bigint,
    aligned_epoch bigint,
    swapped boolean not null default false,
    open boolean not null default true,
    primary key (cutover, table_name)
)"""

_CLIENTS: LiteralString = """
create table if not exists weir.clients (
    name text not null,
    table_name text not null,
    job text,
    number int,
    bound_at timestamptz not null default clock_timestamp(),
    by text not null,
    primary key (name, table_name)
)"""

_HOLDS: LiteralString = """
create table if not exists weir.holds (
    id bigint generated always as identity primary key,
    job text not null,
    number int not null,
    what text not null,
    version bigint,
    by text not null,
    claimed_at timestamptz not null default clock_timestamp(),
    until timestamptz
)"""

_GAPS: LiteralString = """
create table if not exists weir.gaps (
    job text not null,
    number int not null,
    topic text not null,
    partition int not null,
    first bigint not null,
    last bigint not null,
    found_at timestamptz not null default clock_timestamp(),
    accepted_by text,
    accepted_at timestamptz,
    primary key (job, number, topic, partition, first)
)"""

STATEMENTS: tuple[LiteralString, ...] = (
    _GAPS,
    _CUTOVERS,
    _CUTOVER_MOVES,
    "create unique index if not exists one_cutover_a_table on weir.cutover_moves (table_name) where open",
    _CLIENTS,
    _HOLDS,
    "create index if not exists holds_of_release on weir.holds (job, number)",
    "alter table weir.alias_history add column if not exists logged boolean not null default false",
    "create index if not exists aliases_to_log on weir.alias_history (id) where not logged",
)
