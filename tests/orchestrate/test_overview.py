"""All streams at a glance."""

from __future__ import annotations

from typing import Any

import dagster as dg
import pytest

from platform_core.orchestrate.keys import OVERVIEW
from platform_core.orchestrate.overview import StreamSummary, does, numbers, overview_told, table
from tests.orchestrate.conftest import Stage
from tests.orchestrate.sightings import DEAD, batch, running

NOW = 1_800_000_000.0
RUNS = StreamSummary(
    "stock_stats", running(batch(records_per_second=48.0, freshness_seconds=0.4), watermark_ms=1_799_999_990_000), 7
)
NEVER = StreamSummary("clickstream", None, None)


def test_each_stream_is_a_line_that_leads_to_its_page() -> None:
    _, _, *lines = table([NEVER, RUNS], NOW).splitlines()
    assert lines == [
        "| [clickstream](/assets/releases/clickstream_live) | - | never started | - | - | - | - |  |",
        "| [stock_stats](/assets/releases/stock_stats_live) | stock_stats@v1 | running | 48.0 | 7 | 0.4 s | 10.0 s ago "
        "|  |",
    ]


def test_a_stream_that_should_run_and_does_not_says_so() -> None:
    assert does(StreamSummary("stock_stats", running(driver=DEAD), 0)) == "wanted to run, no driver"
    assert does(StreamSummary("stock_stats", running(wanted="pause"), 0)) == "paused"


def test_its_numbers_have_one_shape_whatever_is_known() -> None:
    before, now = numbers([StreamSummary("stock_stats", None, None)], [], NOW), numbers([RUNS], ["a run"], NOW)
    assert before.keys() == now.keys()
    assert (now["records/s of stock_stats"], now["behind of stock_stats"]) == (48.0, 7)


def ticked(stage: Stage, cursor: str | None = None, queued: bool = False) -> Any:
    sensor: Any = overview_told(stage.platform)
    with dg.DagsterInstance.ephemeral() as instance, dg.build_sensor_context(instance, cursor=cursor) as context:
        if queued:
            instance.create_run_for_job(_job(), status=dg.DagsterRunStatus.QUEUED)
        return sensor(context)


@dg.job
def _nothing() -> None:
    pass


def _job() -> dg.JobDefinition:
    return _nothing


@pytest.mark.stack
def test_it_is_told_once_a_minute_at_most(stage: Stage) -> None:
    stage.batch(0, 0, 7)
    first = ticked(stage)
    (event,) = first.asset_events
    assert event.asset_key == OVERVIEW
    assert str(stage.release) in event.metadata["streams"].value
    stage.batch(1, 7, 10)
    assert not ticked(stage, first.cursor).asset_events
