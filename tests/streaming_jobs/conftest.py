"""Inputs and outcomes of a transform as lists: seconds of event time in, whole tables out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from platform_core.declare import Topic

START = datetime(2025, 3, 1, 12, tzinfo=UTC)
PLATFORMS_OWN = (
    "event_time TIMESTAMP, key STRING, "
    "record STRUCT<topic: STRING, partition: INT, offset: BIGINT, timestamp: TIMESTAMP>"
)

Row = dict[str, Any]
Batch = Callable[[Topic, list[Row]], DataFrame]
TableOf = Callable[[DataFrame], list[tuple[Any, ...]]]


@pytest.fixture(scope="session")
def batch(spark: SparkSession) -> Batch:
    """Records as the platform hands them to a transform; `second` is a record's time, counted from START."""

    def build(topic: Topic, rows: list[Row]) -> DataFrame:
        names = [column.name for column in topic.columns]
        data = [(*(row[name] for name in names), *_platforms_own(topic, place, row)) for place, row in enumerate(rows)]
        return spark.createDataFrame(data, f"{topic.value}, {PLATFORMS_OWN}")

    return build


@pytest.fixture(scope="session")
def table_of() -> TableOf:
    """All rows, sorted; times as seconds from START."""

    def read(frame: DataFrame) -> list[tuple[Any, ...]]:
        seconds = [
            ((F.unix_millis(name) - int(START.timestamp() * 1000)) / 1000).alias(name) if kind == "timestamp" else name
            for name, kind in frame.dtypes
        ]
        rows: Sequence[tuple[Any, ...]] = frame.select(*seconds).collect()
        return sorted((tuple(row) for row in rows), key=repr)

    return read


def _platforms_own(topic: Topic, place: int, row: Row) -> tuple[Any, ...]:
    at = START + timedelta(seconds=row.get("second", 0))
    return at, row.get("key"), (topic.name, 0, place, at)
