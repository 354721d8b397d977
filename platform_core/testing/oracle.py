"""The oracle: what a release's table, topic and rejects must hold, recomputed as one batch over the same offsets.

The job's transform runs over every record up to the position that the table's newest commit carries. What the
watermark dropped is left out as the release left it out: each commit says which records its batch read and which
watermark held. Whole tables are compared, so that a lost row shows as much as a doubled one.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa

from platform_core.declare import Lookup, Publish, StreamingJob
from platform_core.declare.durations import duration
from platform_core.declare.inputs import OfTopic
from platform_core.names import PART, ReleaseId
from platform_core.settings import Settings
from platform_core.streaming.sink.encoding import chosen, encoded
from platform_core.streaming.source.parsing import admitted, parsed_at_rest
from platform_core.streaming.transform.query_plan import laid_out
from platform_core.testing.commits import Commits
from platform_core.testing.matching import Candidates, Matching, Pending, Row, milliseconds, unlike

if TYPE_CHECKING:
    from pyspark.sql import Column as Expression
    from pyspark.sql import DataFrame, SparkSession

_REJECT = ("topic", "partition", "offset", "key", "value", "reason")


@dataclass(frozen=True)
class Closing:
    """How the watermark ends a job's rows: the output column that it has to pass, and how long after its event.

    For windows the window's end and its length; for joins the event's own time and nothing.
    """

    column: str
    window: str = "0 seconds"

    @property
    def window_ms(self) -> int:
        return int(duration(self.window, "window").total_seconds() * 1000)


class Oracle:
    """For one release; `job` is the value that its archive declares, so that the transform is the release's own."""

    def __init__(
        self,
        spark: SparkSession,
        settings: Settings,
        job: StreamingJob,
        release: ReleaseId,
        closing: Closing | None = None,
    ) -> None:
        self._spark, self._settings, self._job, self._release = spark, settings, job, release
        self._closing = closing
        self._columns = [column.name for column in job.output.columns]

    def table(self, version: int | None = None) -> list[str]:
        """How the table, at its newest or that version, differs from the batch; nothing when it does not."""
        commits = Commits.of(self._settings.storage.table(self._release), version)
        records = commits.records(self._spark, self._settings).cache()
        try:
            expected = self._expected(records, commits)
            found = Matching(self._actual(commits), expected, self._pending(commits))
            return [*commits.broken(), *found.differences()]
        finally:
            records.unpersist()

    def topic(self) -> list[str]:
        """How the output topics, as a read_committed reader sees them, differ from the table as it stands."""
        table = self._settings.storage.table(self._release).table().to_pyarrow_table()
        rows = table.drop_columns([PART] if PART in table.column_names else [])
        return [wrong for publish in self._job.publishes for wrong in self._differs(rows, publish)]

    def _differs(self, rows: pa.Table, publish: Publish) -> list[str]:
        topic, duck = publish.topic.name, _duck()
        told = encoded(chosen(publish, rows, duck)[0], publish, duck)
        sent = committed_records(self._settings, topic)
        if self._job.output.keyed:
            newest = [(key, value) for key, value in dict(sent).items() if value is not None]
            return unlike(Counter(newest), Counter(told), f"newest records of topic {topic} and rows of table")
        return unlike(Counter(sent), Counter(told), f"records of topic {topic} and rows of table")

    def rejects(self) -> list[str]:
        """How the rejects differ from the records that the declared inputs refuse, by coordinates, bytes and reason.

        Up to the table's position: rejects of a batch are written before its rows, of which a driver at work has one.
        """
        commits = Commits.of(self._settings.storage.table(self._release))
        records = commits.records(self._spark, self._settings)
        refused = Counter({row for part in self._job.of_topics.values() for row in _refused(records, part)})
        place = self._settings.storage.rejects(self._job.name)
        there = place.table().to_pyarrow_table().to_pylist() if place.has_table() else []
        read = commits.last.offsets
        ours = [row for row in there if row["release"] == str(self._release)]
        ours = [row for row in ours if row["offset"] < read.get(row["topic"], {}).get(row["partition"], 0)]
        kept = Counter(tuple(row[name] for name in _REJECT) for row in ours)
        return unlike(kept, refused, "rejects of table and batch")

    def _expected(self, records: DataFrame, commits: Commits) -> list[Candidates]:
        rows = [row for frame in self._computed(records) for row in frame.toArrow().to_pylist()]
        lookups = {name: Versions(records, part) for name, part in self._job.lookups.items()}
        return [self._candidates(row, lookups, commits) for row in rows]

    def _computed(self, records: DataFrame) -> Iterable[DataFrame]:
        """The transform's rows. Where an event came too late for some of its windows, these are computed without it.

        An event counts for a window that its watermark had not reached. Windows that lie apart share no event, so
        that one pass computes them all: as many passes as windows overlap, however many batches there were.
        """
        from pyspark.sql import functions as F

        if self._closing is None:
            yield self._transformed(records, F.lit(True))
            return
        event_ms, late_before = F.unix_millis("event_time"), F.col("late_before")
        kept = event_ms + self._closing.window_ms > late_before
        if not self._closing.window_ms:
            yield self._transformed(records, kept)
            return
        ends = F.unix_millis(self._closing.column)
        known = self._transformed(records, kept).select(ends).distinct().collect()
        for some in _apart(sorted(row[0] for row in known), self._closing.window_ms):
            closes = F.array_min(F.filter(F.lit(some), lambda end: end > event_ms))
            counts = (event_ms >= late_before) | closes.isNull() | (closes > late_before)
            yield self._transformed(records, kept & counts).where(ends.isin(some))

    def _transformed(self, records: DataFrame, kept: Expression) -> DataFrame:
        inputs = {
            name: admitted(parsed_at_rest(records, part).where(kept), part) for name, part in self._job.streams.items()
        }
        return laid_out(self._job.transform(**inputs), self._job).drop(PART)

    def _candidates(self, row: dict[str, Any], lookups: Mapping[str, Versions], commits: Commits) -> Candidates:
        """The row with what was known of its lookups, by the batch from which on it was known."""
        if not lookups:
            return Candidates([(0, self._as_row(row))], row)
        waits = [(part.at, int(part.waits.total_seconds() * 1000)) for part in self._job.lookups.values()]
        first = max(commits.first_with_clock(milliseconds(row[at]) + wait) for at, wait in waits)
        moments = sorted({first, *(b for one in lookups.values() for b in one.changes(row) if b > first)})
        found = [(moment, _joined(row, lookups, moment)) for moment in moments]
        rows = [(moment, None if joined is None else self._as_row(joined)) for moment, joined in found]
        return Candidates(rows, row)

    def _as_row(self, row: Mapping[str, Any]) -> Row:
        return tuple(_plain(row[name]) for name in self._columns)

    def _actual(self, commits: Commits) -> list[tuple[int | None, Row]]:
        """The table's rows; with the batch that appended each one where that matters."""
        if not self._job.lookups:
            return [(0, self._as_row(row)) for row in commits.table.to_pyarrow_table().to_pylist()]
        dataset = commits.table.to_pyarrow_dataset()
        batches = commits.added()
        return [
            (batches.get(Path(part.path).name), self._as_row(row))
            for part in dataset.get_fragments()
            for row in part.to_table(schema=dataset.schema).to_pylist()
        ]

    def _pending(self, commits: Commits) -> Pending:
        final = self._job.output_mode == "append"
        wait = max((int(part.waits.total_seconds() * 1000) for part in self._job.lookups.values()), default=0)
        column = self._closing.column if self._closing and final else None
        return Pending(column, min(commits.last.watermark_ms, commits.last.newest_ms - wait))


def _apart(ends: Sequence[int], length: int) -> list[list[int]]:
    """The ends of windows, sorted into groups whose windows do not overlap."""
    groups: list[list[int]] = []
    for end in ends:
        fitting = next((group for group in groups if group[-1] + length <= end), None)
        if fitting is None:
            groups.append([end])
        else:
            fitting.append(end)
    return groups


class Versions:
    """Every version of a lookup's keys."""

    def __init__(self, records: DataFrame, part: Lookup) -> None:
        self._part = part
        self._of: dict[str, list[tuple[int, int, int, dict[str, Any] | None]]] = defaultdict(list)
        for row in parsed_at_rest(records, part).where("reason is null").toArrow().to_pylist():
            dated = {} if part.dated is None else {part.dated: row["event_time"]}
            values = None if row["value"] is None else {name: row["v"][name] for name in part.takes} | dated
            at = milliseconds(row["event_time"])
            self._of[row["key"].decode()].append((at, row["offset"], row["batch"], values))

    def changes(self, row: Mapping[str, Any]) -> set[int]:
        """The batches that brought a version which may count for the row."""
        return {batch for _, _, batch, _ in self._until(row)}

    def of(self, row: Mapping[str, Any], known_by: int) -> dict[str, Any] | None:
        """The newest version not later than the row, of those that had been read by a batch; None: no row then."""
        there = [one for one in self._until(row) if one[2] <= known_by]
        values = max(there, key=lambda one: one[:2])[3] if there else None
        if values is None and self._part.required:
            return None
        return dict.fromkeys(self._part.fills) | dict(self._part.otherwise) if values is None else values

    def _until(self, row: Mapping[str, Any]) -> list[tuple[int, int, int, dict[str, Any] | None]]:
        if row[self._part.on] is None:
            return []  # a null equals nothing
        moment = milliseconds(row[self._part.at])
        return [one for one in self._of.get(str(row[self._part.on]), []) if one[0] <= moment]


def _joined(row: Mapping[str, Any], lookups: Mapping[str, Versions], known_by: int) -> dict[str, Any] | None:
    found = [one.of(row, known_by) for one in lookups.values()]
    if None in found:
        return None
    return {**row, **{name: value for taken in found for name, value in (taken or {}).items()}}


def committed_records(settings: Settings, topic: str) -> list[tuple[bytes | None, bytes | None]]:
    """All of the topic that a read_committed reader gets, each partition in its order."""
    from confluent_kafka import Consumer, TopicPartition

    common = {**settings.kafka.client, "bootstrap.servers": settings.kafka.servers}
    quiet = {"enable.auto.commit": False, "enable.partition.eof": True, "isolation.level": "read_committed"}
    consumer = Consumer({**common, **quiet, "group.id": "oracle"})
    try:
        parts = consumer.list_topics(topic, timeout=30).topics[topic].partitions
        consumer.assign([TopicPartition(topic, partition, 0) for partition in parts])
        found: list[tuple[bytes | None, bytes | None]] = []
        ended: set[int | None] = set()
        while len(ended) < len(parts):
            for message in consumer.consume(10_000, 1.0):
                if message.error():
                    ended.add(message.partition())
                else:
                    found.append((message.key(), message.value()))
        return found
    finally:
        consumer.close()


def _refused(records: DataFrame, part: OfTopic) -> set[Row]:
    rows = parsed_at_rest(records, part).where("reason is not null").select(*_REJECT).collect()
    return {tuple(_bytes(value) for value in row) for row in rows}


def _bytes(value: Any) -> Any:
    return bytes(value) if isinstance(value, bytearray) else value


def _plain(value: Any) -> Any:
    return tuple(_plain(part) for part in value) if isinstance(value, list) else value


def _duck() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"threads": "2"})
