"""A suite follows its table."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from platform_core.control import aliases
from platform_core.control.store import ControlStore
from platform_core.declare import Expect, Stream, StreamingJob, Suite, Table, Topic
from platform_core.orchestrate.platform import Platform
from platform_core.orchestrate.quality import quality_followed
from tests.compare.paired import Job
from tests.compare.tables import stat
from tests.conftest import Database

pytestmark = pytest.mark.stack
SCHEMA = "ticker STRING, window_start TIMESTAMP, trade_count BIGINT, avg_price DECIMAL(18,6)"
FEW = Expect("few", "expect_column_values_to_be_between", {"column": "trade_count", "max_value": 9})


@pytest.fixture
def job(postgres: Database, tmp_path: Path) -> Iterator[Job]:
    """A live release with a row."""
    store = ControlStore.open(postgres.settings)
    store.migrate()
    (tmp_path / "postgres.password").write_text(postgres.settings.password())
    made = Job(postgres.settings.model_copy(update={"home": tmp_path}), store)
    made.release(1, "live")
    aliases.point(store, made.name, made.id(1), None, "a test")
    made.commit(1, [stat("A")], at=10)
    yield made
    store.close()


@pytest.fixture
def followed(job: Job) -> Platform:
    topic = Topic(name=f"{job.name}.in", value="price BIGINT", partitions=1)
    table = Table(name=job.name, schema=SCHEMA, key=("ticker", "window_start"))
    declared = StreamingJob(
        name=job.name, inputs={"trades": Stream(topic)}, transform=lambda trades: trades, output=table
    )
    suite = Suite(table=job.name, newest_by="window_start", newest="1 hour", expectations=(FEW,))
    return Platform(job.settings, {job.name: declared}, {topic.name: topic}, {}, {job.name: suite})


def ticked(platform: Platform, cursor: str | None = None) -> tuple[list[bool], str]:
    sensor: Any = quality_followed(platform)
    with dg.DagsterInstance.ephemeral() as instance, dg.build_sensor_context(instance, cursor=cursor) as context:
        told = sensor(context)
    return [event.passed for event in told.asset_events], told.cursor


def told_ago(cursor: str, seconds: float) -> str:
    """The cursor as it would be when everything in it was told so long ago."""
    told = json.loads(cursor).items()
    return json.dumps({name: [subject, place, time.time() - seconds] for name, (subject, place, _) in told})


def test_a_row_that_should_not_be_there_shows_with_the_next_report_of_its_table(followed: Platform, job: Job) -> None:
    passed, cursor = ticked(followed)
    assert passed == [True]
    job.commit(1, [stat("C", count=10)], at=20)
    assert ticked(followed, told_ago(cursor, 1))[0] == [], "not within the minute"
    assert ticked(followed, told_ago(cursor, 61))[0] == [False]


def test_a_verdict_that_stays_is_not_told_each_minute(followed: Platform, job: Job) -> None:
    _, cursor = ticked(followed)
    job.commit(1, [stat("C")], at=20)
    assert ticked(followed, told_ago(cursor, 61))[0] == []
