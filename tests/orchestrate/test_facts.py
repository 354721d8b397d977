"""What is told, and when."""

from __future__ import annotations

import dagster as dg

from platform_core.orchestrate.facts import NOTHING_YET, LastReport, live_facts, table_facts, topic_facts
from tests.orchestrate.sightings import batch, running, topic

NOW = 1_800_000_000.0


def test_the_first_progress_is_told_at_once() -> None:
    assert NOTHING_YET.due("stock_stats@v1", 100, now=1000.0)


def test_progress_is_told_once_a_minute() -> None:
    told = LastReport("stock_stats@v1", 100, at=1000.0)
    assert not told.due("stock_stats@v1", 200, now=1059.0)
    assert told.due("stock_stats@v1", 200, now=1060.0)


def test_a_stream_that_stands_still_is_not_told_of() -> None:
    assert not LastReport("stock_stats@v1", 100, at=1000.0).due("stock_stats@v1", 100, now=9000.0)


def test_another_release_is_told_at_once() -> None:
    assert LastReport("stock_stats@v1", 100, at=1000.0).due("stock_stats@v2", 100, now=1001.0)


def test_facts_of_a_table_are_of_the_last_minute() -> None:
    old = batch(1, age=200, late=99, rejected=99)
    late, rejected = (
        batch(2, age=30, late=2, freshness_seconds=0.4),
        batch(3, age=2, rejected=1, freshness_seconds=0.6, batch_seconds=0.5),
    )
    told = table_facts(running(old, late, rejected), behind=7, now=NOW)
    assert (told["late"], told["rejected"], told["lag"]) == (2, 1, 7)
    assert (told["freshness_seconds"], told["batch_seconds"]) == (0.5, 0.4)


def test_every_fact_but_the_release_plots() -> None:
    told = table_facts(running(batch()), behind=0, now=NOW)
    assert {name for name, value in told.items() if not isinstance(value, int | float)} == {"release", "watermark"}


def test_the_watermark_is_a_time_and_seconds_behind() -> None:
    told = table_facts(running(watermark_ms=1_800_000_000_000), behind=0, now=1_800_000_012.5)
    assert told["watermark"] == dg.MetadataValue.timestamp(1_800_000_000.0)
    assert told["watermark_behind_seconds"] == 12.5
    assert table_facts(running(), behind=0, now=NOW)["watermark"] == "none yet"


def test_facts_of_an_asset_have_one_shape_whatever_is_known() -> None:
    assert table_facts(running(), None, NOW).keys() == table_facts(running(batch(freshness_seconds=1.0)), 3, NOW).keys()
    assert live_facts(running()).keys() == live_facts(running(driver=None)).keys()


def test_a_topic_has_as_many_records_as_retention_has_left() -> None:
    told = topic_facts(topic(end=900, begin=400))
    assert (told["records"], told["end_offsets"]) == (500, 900)
