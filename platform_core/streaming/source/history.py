"""What a release can read again: from the broker what it has, what it has no more from raw tables."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from platform_core.broker import Broker
from platform_core.control import gaps
from platform_core.control.position import Offsets
from platform_core.control.store import ControlStore
from platform_core.declare import StreamingJob
from platform_core.settings import Settings
from platform_core.streaming.source.kafka_source import event_topics, lookup_topics, records_in
from platform_core.streaming.source.raw_history import RawHistory, landed, needed
from platform_core.streaming.source.raw_history_source import COLUMNS, SCHEMA

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LOOK_AGAIN = 600.0  # seconds; well within the hours that a version of a table stays readable


class History:
    def __init__(
        self, settings: Settings, store: Callable[[], ControlStore], job: StreamingJob, ids: Mapping[str, str]
    ) -> None:
        """`ids` says which topics are meant: one that was made again under its name has other records. The store is
        asked only where the broker has lost some."""
        self._settings, self._store, self._ids = settings, store, ids
        self._broker = Broker(settings)
        self._readings = [[topic.name for topic in topics] for topics in (event_topics(job), lookup_topics(job))]
        self._tables: dict[str, RawHistory] = {}
        self._looked = float("-inf")

    def tables(self, at: Offsets) -> dict[str, RawHistory]:
        """The raw tables from which a batch that begins there is read; none where the broker has all that is left."""
        starts = self._broker.starts(at)
        if not gaps.between(at, starts):
            return {}
        found = needed(self._readings, at, starts, self._known())
        if any(gap.topic not in found for gap in gaps.between(at, starts)):  # it may have been landed since we looked
            self._looked = float("-inf")
            found = needed(self._readings, at, starts, self._known())
        return found

    def _known(self) -> dict[str, RawHistory]:
        """Looked up now and then: to know a table's times takes a reading of it."""
        if time.monotonic() - self._looked > _LOOK_AGAIN:
            self._tables = landed(self._settings, self._store(), self._ids)
            self._looked = time.monotonic()
        return self._tables

    def records(self, spark: SparkSession, start: Offsets, end: Offsets) -> DataFrame:
        """The records between two positions, as a batch; a partition that `start` does not know begins at 0."""
        begin = {t: {p: start.get(t, {}).get(p, 0) for p in parts} for t, parts in end.items()}
        starts = self._broker.starts(begin)
        lost = {gap.topic for gap in gaps.between(begin, starts)}
        tables = {topic: table for topic, table in (self._known() if lost else {}).items() if topic in lost}
        kept = {
            t: {p: min(max(o, starts[t].get(p, 0)), end[t][p]) if t in tables else o for p, o in parts.items()}
            for t, parts in begin.items()
        }
        read = records_in(spark, self._settings, kept, end).select(*COLUMNS)
        for topic, table in tables.items():
            read = read.unionByName(_from_table(spark, table, begin[topic], kept[topic]))
        return read


def _from_table(spark: SparkSession, table: RawHistory, start: Mapping[int, int], end: Mapping[int, int]) -> DataFrame:
    from pyspark.sql import functions as F

    read = spark.read.format("delta").option("versionAsOf", table.version).load(table.place.uri).select(*COLUMNS)
    ranges = [
        (F.col("partition") == partition) & (F.col("offset") >= first) & (F.col("offset") < end[partition])
        for partition, first in start.items()
        if first < end[partition]
    ]
    if not ranges:
        return spark.createDataFrame([], SCHEMA)
    wanted = ranges[0]
    for one in ranges[1:]:
        wanted = wanted | one
    return read.where((F.col("topic") == table.topic) & wanted)
