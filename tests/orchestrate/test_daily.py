"""When days are computed: after new records, and once more when they are over."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import dagster as dg
import pytest

from analytics.daily_prices.table import daily_prices
from platform_core.orchestrate import first_days
from platform_core.orchestrate.daily import daily_definitions, daily_job, daily_schedule, daily_sensor
from tests.conftest import Broker

ZONE = ZoneInfo(daily_prices.zone)


def scheduled(moment: datetime) -> Any:
    context = dg.build_schedule_context(scheduled_execution_time=moment)
    return daily_schedule(daily_prices, daily_job(daily_prices))(context)


def test_the_schedule_computes_the_day_that_has_ended_in_the_tables_zone() -> None:
    assert scheduled(datetime(2026, 3, 10, 5, tzinfo=UTC)).partition_key == "2026-03-09"  # 01:00 in New York


def test_the_schedule_runs_when_late_records_are_in() -> None:
    schedule = daily_schedule(daily_prices, daily_job(daily_prices))
    assert (schedule.cron_schedule, schedule.execution_timezone) == ("0 1 * * *", daily_prices.zone)


def test_no_day_before_the_first_is_computed() -> None:
    first = datetime.combine(daily_prices.since, datetime.min.time(), ZONE)
    assert isinstance(scheduled(first), dg.SkipReason)


@pytest.mark.stack
def test_the_sensor_asks_for_today_when_the_topic_has_grown_and_the_interval_has_passed(broker: Broker) -> None:
    topic = broker.create("refreshed.in")
    stream = replace(daily_prices.input, topic=replace(daily_prices.input.topic, name=topic))
    sensor = daily_sensor(replace(daily_prices, input=stream), broker.settings, daily_job(daily_prices))

    def ticked(cursor: str | None) -> Any:
        with dg.build_sensor_context(cursor=cursor) as context:
            return sensor(context)

    first = ticked(None)
    assert not first.run_requests
    broker.produce(topic, (b"MMM", b"{}"))
    assert isinstance(ticked(first.cursor), dg.SkipReason)
    long_ago = {**json.loads(first.cursor), "at": time.time() - daily_prices.refreshes_every.total_seconds() - 1}
    asked = ticked(json.dumps(long_ago))
    today = datetime.now(ZONE).date()
    assert today in {date.fromisoformat(request.partition_key) for request in asked.run_requests}
    assert isinstance(ticked(asked.cursor), dg.SkipReason)


@pytest.mark.stack
def test_the_sensor_waits_for_a_topic_that_does_not_exist(broker: Broker) -> None:
    stream = replace(daily_prices.input, topic=replace(daily_prices.input.topic, name="never.made"))
    sensor = daily_sensor(replace(daily_prices, input=stream), broker.settings, daily_job(daily_prices))
    with dg.build_sensor_context() as context:
        skipped: Any = sensor(context)
    assert "does not exist yet" in skipped.skip_message


@pytest.mark.parametrize("days_before", [0, 1, 5, 400])
def test_the_first_day_is_found_wherever_it_lies(days_before: int) -> None:
    today, since = date(2026, 3, 10), date(2025, 1, 1)
    first = today - timedelta(days=days_before)
    assert first_days.earliest(since, today, lambda day: day >= first) == first
    assert first_days.earliest(since, today, lambda _: False) == today


@pytest.mark.stack
def test_partitions_begin_at_the_day_of_the_first_record(broker: Broker, tmp_path: Path) -> None:
    topic, now = broker.create("begun.in", partitions=2), datetime.now(ZONE)
    table = replace(
        daily_prices, input=replace(daily_prices.input, topic=replace(daily_prices.input.topic, name=topic))
    )
    settings = broker.settings.model_copy(update={"home": tmp_path})

    def partitions() -> list[str]:
        asset = next(iter(daily_definitions(table, settings).assets or ()))
        assert isinstance(asset, dg.AssetsDefinition)
        (spec,) = asset.specs
        assert spec.partitions_def is not None
        return list(spec.partitions_def.get_partition_keys())

    assert first_days.find(settings, table, now) is None
    assert len(partitions()) > 365
    two_days_ago = now - timedelta(days=2)
    broker.produce(topic, (b"MMM", b"{}"), partition=0)
    broker.produce(topic, (b"MMM", b"{}"), partition=1, at=int(two_days_ago.timestamp() * 1000))
    with dg.build_sensor_context() as context:
        daily_sensor(table, settings, daily_job(table))(context)
    assert partitions()[0] == str(two_days_ago.date())
    assert len(partitions()) == 3
