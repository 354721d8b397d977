"""One catalogue of metrics: a further one is a field there, and is stored, summed, reported and shown by that alone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime

import pytest
from psycopg import sql

from platform_core.control import progress
from platform_core.control.facts import METRICS, BatchFacts, Metric, known, metrics_of
from platform_core.control.position import Position
from platform_core.control.schema import metric_columns
from platform_core.control.store import ControlStore
from platform_core.names import ReleaseId
from platform_core.settings import ROOT
from platform_core.streaming.batch.metrics import BatchMetrics
from platform_core.streaming.batch.value import Batch
from platform_core.streaming.driver.reports import Done

PAGE = ROOT / "infra" / "runbooks" / "metrics.md"
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def more(unit: str, *, counted: bool, kind: str = "bigint") -> Metric:
    return Metric(unit, "a test's", "Nothing.", lambda done: done.batch.number, counted, "", kind)  # type: ignore[arg-type]


@dataclass(frozen=True)
class MoreFacts(BatchFacts):
    """As the catalogue would be with two metrics more."""

    retried: int = field(default=0, metadata={"metric": more("records", counted=True)})
    heap: float | None = field(default=None, metadata={"metric": more("MB", counted=False, kind="double precision")})


def test_each_says_its_unit_what_it_means_and_what_to_do() -> None:
    assert set(METRICS) == {one.name for one in fields(BatchFacts)} - {"at", "batch"}
    for name, metric in METRICS.items():
        assert metric.unit, name
        assert metric.meaning, name
        assert re.fullmatch(r"[A-Z].*\.", metric.do, re.S), name


def test_each_is_worked_out_of_a_batch() -> None:
    batch = Batch(
        position=Position("j@v1", 3, {"t": {0: 9}}, watermark_ms=1_000, newest_ms=2_000),
        measures=BatchMetrics(records=8, used=6, late=1, newest_record_ms=1_500),
        readable_at=2.0,
        late=2,
    )
    done = Done(batch, 0.5, {"t": {0: 4}})
    assert {name: metric.of(done) for name, metric in METRICS.items()} == {
        "records_in": 8,
        "rows_out": 0,
        "used": 5,
        "late": 2,
        "rejected": 0,
        "filtered": 0,
        "batch_seconds": 0.5,
        "lag": {"t": {0: 4}},
        "watermark_ms": 1_000,
        "newest_event_ms": 2_000,
        "freshness_seconds": 0.5,
        "records_per_second": 16.0,
    }


def test_no_column_is_added_for_a_metric_that_has_one() -> None:
    assert list(metric_columns(METRICS)) == []


def test_a_further_one_has_columns_with_a_default_that_older_drivers_leave() -> None:
    added = [one.as_string() for one in metric_columns(metrics_of(MoreFacts))]
    assert added == [
        'alter table "weir"."progress" add column if not exists "retried" bigint not null default 0',
        'alter table "weir"."progress_history" add column if not exists "retried" bigint not null default 0',
        'alter table "weir"."progress" add column if not exists "total_retried" bigint not null default 0',
        'alter table "weir"."progress" add column if not exists "heap" double precision',
        'alter table "weir"."progress_history" add column if not exists "heap" double precision',
    ]


@pytest.fixture
def columns(store: ControlStore) -> Iterator[list[sql.Composed]]:
    """Added, and taken away again: other tests share the store."""
    with store.transaction() as cursor:
        for statement in metric_columns(metrics_of(MoreFacts)):
            cursor.execute(statement)
    yield list(metric_columns(metrics_of(MoreFacts)))
    with store.transaction() as cursor:
        for table, names in (
            ("progress", ("retried", "total_retried", "heap")),
            ("progress_history", ("retried", "heap")),
        ):
            for name in names:
                place = sql.Identifier("weir", table)
                cursor.execute(sql.SQL("alter table {} drop column {}").format(place, sql.Identifier(name)))


@pytest.mark.stack
@pytest.mark.usefixtures("columns")
def test_a_further_one_is_stored_and_summed_and_those_who_do_not_know_it_write_on(store: ControlStore) -> None:
    release = ReleaseId("of_metrics", 1)
    with store.transaction() as cursor:
        progress.add(cursor, release, MoreFacts(NOW, 0, 5, 4, retried=2, heap=1.5))
        progress.add(cursor, release, MoreFacts(NOW, 1, 5, 4, retried=3, lag={"t": {0: 7}}))
        progress.add(cursor, release, BatchFacts(NOW, 2, 1, 1))
        cursor.execute("select * from weir.progress where job = 'of_metrics'")
        (row,) = cursor.fetchall()
        cursor.execute("delete from weir.progress where job = 'of_metrics'")
        cursor.execute("delete from weir.progress_history where job = 'of_metrics'")
    assert (row["batch"], row["total_records_in"], row["total_retried"], row["heap"]) == (2, 11, 5, None)
    assert known(MoreFacts, row)["retried"] == 3, "an older driver leaves what is there"


def test_a_metric_that_a_driver_does_not_report_has_its_default() -> None:
    row = {**{one.name: None for one in fields(MoreFacts)}, "at": NOW, "batch": 1, "records_in": 2, "rows_out": 3}
    assert MoreFacts(**known(MoreFacts, row)) == MoreFacts(NOW, 1, 2, 3)


def page() -> str:
    head = PAGE.read_text().partition("| metric |")[0]
    lines = ["| metric | in | says | what to do |", "|---|---|---|---|"]
    for name, metric in METRICS.items():
        shown = f"`{name}`" + (f", plotted as `{metric.plotted}`" if metric.plotted not in ("", name) else "")
        lines.append(f"| {shown} | {metric.unit} | {metric.meaning} | {metric.do.replace('|', '/')} |")
    return head + "\n".join(lines) + "\n"


def test_the_page_shows_the_catalogue() -> None:
    assert PAGE.read_text() == page()
