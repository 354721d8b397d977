"""Kafka records as DataFrames, as a stream or as a batch over chosen offsets."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import timedelta
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING

from platform_core.control.position import Offsets, as_text, records_between
from platform_core.declare import StreamingJob, Topic
from platform_core.names import ReleaseId
from platform_core.settings import Settings
from platform_core.streaming.source.kind import largest_batch
from platform_core.streaming.source.parsing import taken
from platform_core.streaming.source.raw_history import RawHistory, stream_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_LARGEST_POLL = 100_000  # records


def event_topics(job: StreamingJob) -> list[Topic]:
    return list({part.topic.name: part.topic for part in job.streams.values()}.values())


def lookup_topics(job: StreamingJob) -> list[Topic]:
    return list({part.topic.name: part.topic for part in job.lookups.values()}.values())


class KafkaStream:
    """The live source of a release.

    Events of all topics come through one subscription: Spark shares the batch's size among partitions by what is left
    in each, so that they advance together; a subscription a topic would let a small topic run ahead of the clock.
    Lookups are read without a bound: reading them ahead is harmless, as they are joined by time.
    """

    def __init__(
        self,
        spark: SparkSession,
        settings: Settings,
        job: StreamingJob,
        release: ReleaseId,
        begins: Offsets | None = None,
        over_gaps: bool = False,
        tables: Mapping[str, RawHistory] = MappingProxyType({}),
    ) -> None:
        """`begins` is where the first batch begins; None: at the earliest that the broker has. `over_gaps`: records
        that retention has removed are not missed; only where somebody has said so. `tables`: of these topics, all of a
        reading, the records come from their raw tables."""
        self._spark, self._settings, self._job, self._release = spark, settings, job, release
        self._begins, self._over_gaps, self._tables = begins, over_gaps, tables

    def rows(self, name: str, delay: timedelta | None) -> DataFrame:
        return taken(self._events, name, self._job.streams[name], delay)

    @cached_property
    def _events(self) -> DataFrame:
        return self._read(event_topics(self._job), str(largest_batch(self._settings, self._job)))

    def lookups(self) -> DataFrame | None:
        topics = lookup_topics(self._job)
        return self._read(topics, None) if topics else None

    def _read(self, topics: Iterable[Topic], most: str | None) -> DataFrame:
        tables = {topic.name: self._tables[topic.name] for topic in topics if topic.name in self._tables}
        if tables:
            return stream_of(self._spark, tables, self._begins or {})
        reader = self._spark.readStream.format("kafka").options(**_reading(self._settings))
        reader = reader.option("subscribe", ",".join(topic.name for topic in topics))
        reader = reader.option("groupIdPrefix", self._release.group).option("startingOffsets", self._first(topics))
        reader = reader.option("kafka.fetch.max.wait.ms", "20")
        reader = reader.option("failOnDataLoss", str(not self._over_gaps).lower())
        records = (reader.option("maxOffsetsPerTrigger", most) if most else reader).load()
        return self._in_few_tasks(records)

    def _in_few_tasks(self, records: DataFrame) -> DataFrame:
        """Spark makes one task for each partition that has records, 8 ms of CPU before the first of them; more than
        there are processors gain nothing. A cluster's processors come and go: there it stays as it is."""
        master = self._settings.spark.master
        return records.coalesce(self._spark.sparkContext.defaultParallelism) if master.startswith("local") else records

    def _first(self, topics: Iterable[Topic]) -> str:
        if self._begins is None:
            return "earliest"
        return json.dumps(as_text({topic.name: self._begins[topic.name] for topic in topics}))


def records_in(spark: SparkSession, settings: Settings, start: Offsets, end: Offsets) -> DataFrame:
    """The records between two positions, as a batch; a partition that `start` does not know begins at 0.

    Spark keeps the consumers of each reading for minutes, with the rest of their last poll: none is larger than what is
    read. Of a stream that was a minute behind and had late records in each batch, they filled a heap of 1 GB."""
    most = max(min(records_between(start, end), _LARGEST_POLL), 1)
    begin = {t: {p: start.get(t, {}).get(p, 0) for p in parts} for t, parts in end.items()}
    reader = spark.read.format("kafka").options(**_reading(settings, most))
    reader = reader.option("subscribe", ",".join(sorted(end)))
    reader = reader.option("startingOffsets", json.dumps(as_text(begin)))
    return reader.option("endingOffsets", json.dumps(as_text(end))).load()


def _reading(settings: Settings, largest_poll: int = _LARGEST_POLL) -> dict[str, str]:
    """Polls as large as what was fetched. After each one Spark asks the broker where the partition begins and ends, and
    throws away what was fetched ahead: with the client's 500 records a poll most is fetched several times over.
    Measured, 2 million trades: 0.3 s of the broker's CPU instead of 0.9 to 1.3, and 1.9 s of Spark's instead of 2.3."""
    return {"kafka.max.poll.records": str(largest_poll), **connection(settings)}


def connection(settings: Settings) -> dict[str, str]:
    """The options by which Spark reaches the brokers; records of open or aborted transactions are not read."""
    options = {f"kafka.{key}": value for key, value in settings.kafka.spark.items()}
    return {"kafka.bootstrap.servers": settings.kafka.servers, "kafka.isolation.level": "read_committed", **options}
