"""How each release gets on: its newest batch, its totals, and a day of history at one row a second."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

from psycopg import sql
from psycopg.types.json import Jsonb

from platform_core.control.facts import METRICS, BatchFacts, known, metrics_of
from platform_core.control.position import as_numbers, as_text
from platform_core.control.store import ControlStore, Cursor
from platform_core.names import ReleaseId

TOTAL = "total_"  # in front of the column of a metric's sum


@dataclass(frozen=True)
class Progress:
    """`totals` are the sums of what is counted over all batches that the release ever recorded."""

    release: ReleaseId
    facts: BatchFacts
    totals: Mapping[str, int]
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
    kinds = metrics_of(type(facts))
    values = {name: Jsonb(as_text(value)) if _is_json(kinds, name) else value for name, value in vars(facts).items()}
    for statement in _statements(type(facts)):
        cursor.execute(statement, {**values, "job": release.job, "number": release.number})


def sweep(cursor: Cursor, release: ReleaseId) -> None:
    """A day is kept."""
    cursor.execute(
        "delete from weir.progress_history where job = %s and number = %s "
        "and recorded_at < clock_timestamp() - interval '24 hours'",
        (release.job, release.number),
    )


@cache
def _statements(kind: type[BatchFacts]) -> tuple[bytes, bytes]:
    """The newest batch with the sums over all, and the second's newest batch with the sums over the second."""
    metrics = metrics_of(kind)
    counted = [name for name, metric in metrics.items() if metric.counted]
    newest = ["batch", "at", *(name for name in metrics if name not in counted), "recorded_at"]
    every = ["job", "number", "batch", "at", *metrics]
    given, values = _names(every), _list(map(sql.Placeholder, every))
    totals, sums = _names(TOTAL + name for name in counted), _list(map(sql.Placeholder, counted))
    progress = sql.SQL(
        "insert into weir.progress as p ({}, {}) values ({}, {}) on conflict (job, number) do update set {}"
    ).format(given, totals, values, sums, _list([*map(_newer, [*newest, *counted]), *map(_total, counted)]))
    history = sql.SQL(
        "insert into weir.progress_history as p ({}, second) values ({}, date_trunc('second', clock_timestamp())) "
        "on conflict (job, number, second) do update set {}"
    ).format(given, values, _list([*map(_newer, newest), *map(_added, counted)]))
    return progress.as_bytes(), history.as_bytes()


def _newer(name: str) -> sql.Composable:
    return sql.SQL("{0} = excluded.{0}").format(sql.Identifier(name))


def _added(name: str) -> sql.Composable:
    return sql.SQL("{0} = p.{0} + excluded.{0}").format(sql.Identifier(name))


def _total(name: str) -> sql.Composable:
    return sql.SQL("{0} = p.{0} + excluded.{1}").format(sql.Identifier(TOTAL + name), sql.Identifier(name))


def _names(names: Iterable[str]) -> sql.Composed:
    return _list(map(sql.Identifier, names))


def _list(parts: Iterable[sql.Composable]) -> sql.Composed:
    return sql.SQL(", ").join(parts)


def _progress(row: dict[str, Any]) -> Progress:
    totals = {name: row[TOTAL + name] for name, metric in METRICS.items() if metric.counted}
    return Progress(_release(row), _facts(row), totals, row["recorded_at"], row["age"])


def _facts(row: dict[str, Any]) -> BatchFacts:
    numbers = {name: as_numbers(value) for name, value in row.items() if _is_json(METRICS, name)}
    return BatchFacts(**known(BatchFacts, {**row, **numbers}))


def _is_json(metrics: Mapping[str, Any], name: str) -> bool:
    return name in metrics and metrics[name].kind == "jsonb"


def _release(row: dict[str, Any]) -> ReleaseId:
    return ReleaseId(row["job"], row["number"])
