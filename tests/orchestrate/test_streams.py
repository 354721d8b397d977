"""Sensors on a real control store and broker."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import dagster as dg
import pytest

from platform_core.orchestrate.keys import live_key, table_key, topic_key
from platform_core.orchestrate.platform import Platform
from platform_core.orchestrate.streams import stream_facts, stream_health, topics_seen
from platform_core.services import ports, process
from tests.conftest import Broker
from tests.orchestrate.conftest import Stage, tick

pytestmark = pytest.mark.stack


def checks(events: list[Any]) -> dict[str, bool]:
    return {event.check_name: event.passed for event in events if isinstance(event, dg.AssetCheckEvaluation)}


def numbers(event: Any) -> dict[str, Any]:
    return {name: value.value for name, value in event.metadata.items()}


def test_progress_is_told_as_a_materialization_of_the_table_with_its_numbers(stage: Stage) -> None:
    stage.batch(0, 0, 7, used=6, rejected=1)
    told, _ = tick(stream_facts(stage.platform))
    tables = [event for event in told if event.asset_key == table_key(stage.job.output.name)]
    assert [type(event) for event in tables] == [dg.AssetMaterialization]
    facts = numbers(tables[0])
    assert (facts["lag"], facts["rejected"], facts["batch"], facts["position"]) == (3, 1, 0, 7)
    assert facts["release"] == str(stage.release)


def test_a_driver_that_begins_is_told_on_the_live_release(stage: Stage) -> None:
    stage.batch(0, 0, 7)
    told, cursor = tick(stream_facts(stage.platform))
    assert [event.asset_key for event in told].count(live_key(stage.job.name)) == 1
    assert tick(stream_facts(stage.platform), cursor)[0] == []


def test_progress_within_the_minute_is_not_told_again(stage: Stage) -> None:
    stage.batch(0, 0, 7)
    _, cursor = tick(stream_facts(stage.platform))
    stage.batch(1, 7, 10)
    assert tick(stream_facts(stage.platform), cursor)[0] == []


def test_a_working_stream_passes_every_check(stage: Stage) -> None:
    stage.batch(0, 0, 10)
    told, cursor = tick(stream_health(stage.platform))
    assert set(checks(told).values()) == {True}
    assert len(told) == 5
    assert tick(stream_health(stage.platform), cursor)[0] == []


def test_a_dead_driver_shows(stage: Stage) -> None:
    stage.batch(0, 0, 10)
    _, cursor = tick(stream_health(stage.platform))
    _age(stage, "wanted", "at")
    stage.die()
    assert checks(tick(stream_health(stage.platform), cursor)[0]) == {"driver_alive": False}


def test_a_stopped_supervisor_shows(stage: Stage) -> None:
    stage.batch(0, 0, 10)
    _, cursor = tick(stream_health(stage.platform))
    _age(stage, "services", "beat_at")
    assert checks(tick(stream_health(stage.platform), cursor)[0]) == {"supervised": False}


def test_a_dead_broker_shows_on_streams_and_on_topics_well_within_a_minute(stage: Stage) -> None:
    stage.batch(0, 0, 10)
    _, cursor = tick(stream_health(stage.platform))
    (port,) = ports.free(1)
    kafka = stage.platform.settings.kafka.model_copy(update={"port": port})
    lost = replace(stage.platform, settings=stage.platform.settings.model_copy(update={"kafka": kafka}))
    began = time.monotonic()
    assert checks(tick(stream_health(lost), cursor)[0]) == {"lag_bounded": False}
    assert checks(tick(topics_seen(lost))[0]) == {"as_declared": False}
    assert time.monotonic() - began < 30


def test_a_record_that_a_batch_lost_shows(stage: Stage) -> None:
    stage.batch(0, 0, 10, used=9)
    assert checks(tick(stream_health(stage.platform))[0])["accounted"] is False


def test_topics_are_observed_when_they_grow(stage: Stage) -> None:
    told, cursor = tick(topics_seen(stage.platform))
    seen = [event for event in told if isinstance(event, dg.AssetObservation)]
    assert [event.asset_key for event in seen] == [topic_key(stage.topic)]
    assert (numbers(seen[0])["records"], numbers(seen[0])["partitions"]) == (10, 1)
    assert checks(told) == {"as_declared": True}
    assert tick(topics_seen(stage.platform), cursor)[0] == []


def test_a_topic_made_again_under_its_name_shows(stage: Stage, broker: Broker) -> None:
    _, cursor = tick(topics_seen(stage.platform))
    broker.delete(stage.topic)
    _created_again(broker, stage.topic)
    assert checks(tick(topics_seen(stage.platform), cursor)[0]) == {"as_declared": False}


def test_a_topic_that_nobody_made_yet_is_a_warning(platform: Platform) -> None:
    told, _ = tick(topics_seen(platform))
    assert [(event.passed, event.severity) for event in told] == [(False, dg.AssetCheckSeverity.WARN)]


def _created_again(broker: Broker, topic: str) -> None:
    """Deletion takes effect a moment after it was accepted."""
    assert process.until(lambda: topic not in broker.admin.list_topics(timeout=10).topics, 20)
    broker.create(topic)


def _age(stage: Stage, table: str, column: str) -> None:
    """Lets five minutes pass for what stands there."""
    with stage.store.transaction() as cursor:
        cursor.execute(f"update weir.{table} set {column} = {column} - interval '5 minutes'")  # type: ignore[arg-type]
