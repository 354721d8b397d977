"""Topics in memory: they give records their coordinates, as a broker would, and hand them to Spark as files."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import parquet

from platform_core.control.position import Offsets
from platform_core.declare import StreamingJob
from platform_core.errors import UsageError
from platform_core.streaming.source.parsing import taken
from platform_core.testing.script import Record

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = pa.schema(
    [
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("timestamp", pa.timestamp("us", "UTC")),
    ]
)
_DDL = "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP"
_FIRST_WRITTEN = 1_700_000_000  # files are read by the time of their last change: a second apart, in order


class ScriptTopics:
    """The input topics of a job. Each batch of a script is one file, so that the stream takes it as one batch."""

    def __init__(self, job: StreamingJob, folder: Path) -> None:
        self._job, self._folder = job, folder
        self._next = {topic.name: dict.fromkeys(range(topic.partitions), 0) for topic in job.topics}
        self._ends: list[Offsets] = []
        self._rows: list[dict[str, Any]] = []
        self._unseen: list[tuple[Path, Path]] = []
        folder.mkdir(parents=True, exist_ok=True)

    @property
    def newest(self) -> int:
        """The number of the newest batch, -1 without."""
        return len(self._ends) - 1

    def end(self, number: int) -> Offsets:
        return self._ends[number]

    def append(self, records: Iterable[Record]) -> None:
        """The next batch; it can be seen after `show`."""
        rows = [self._placed(record) for record in records]
        self._rows += rows
        self._ends.append({topic: dict(parts) for topic, parts in self._next.items()})
        name = f"{self.newest:06d}.parquet"
        hidden, file = self._folder / f".{name}", self._folder / name
        parquet.write_table(pa.Table.from_pylist(rows, schema=SCHEMA), hidden, compression="none")
        written = _FIRST_WRITTEN + self.newest
        os.utime(hidden, (written, written))
        self._unseen.append((hidden, file))

    def show(self) -> None:
        for hidden, file in self._unseen:
            hidden.rename(file)
        self._unseen.clear()

    def stream(self, spark: SparkSession) -> DataFrame:
        return spark.readStream.schema(_DDL).option("maxFilesPerTrigger", 1).parquet(str(self._folder))

    def between(self, spark: SparkSession, start: Offsets, end: Offsets) -> DataFrame:
        """The records from one position to another, at rest."""
        rows = [row for row in self._rows if _of(start, row) <= row["offset"] < _of(end, row)]
        return spark.createDataFrame(pa.Table.from_pylist(rows, schema=SCHEMA))

    def _placed(self, record: Record) -> dict[str, Any]:
        parts = self._next.get(record.topic.name)
        if parts is None:
            raise UsageError(
                f"A record of topic {record.topic.name!r} in a script for job {self._job.name!r}.",
                remedy=f"Its inputs are {', '.join(self._next)}.",
            )
        partition = zlib.crc32(record.key or b"") % len(parts) if record.partition is None else record.partition
        offset = parts[partition] if record.offset is None else record.offset
        if offset < parts[partition]:
            raise UsageError(
                f"{record.topic.name}[{partition}]@{offset} in a script, the next there is {parts[partition]}.",
                remedy="Leave the offset out, or let offsets rise.",
            )
        parts[partition] = offset + 1
        return {
            "key": record.key,
            "value": record.value,
            "topic": record.topic.name,
            "partition": partition,
            "offset": offset,
            "timestamp": record.at,
        }


class ScriptSource:
    """Events and lookups in one reading: so both come with the same batch of the script."""

    def __init__(self, topics: ScriptTopics, job: StreamingJob, spark: SparkSession) -> None:
        self._records, self._job = topics.stream(spark), job

    def rows(self, name: str, delay: timedelta | None) -> DataFrame:
        return taken(self._records, name, self._job.streams[name], delay)

    def lookups(self) -> DataFrame | None:
        return self._records if self._job.lookups else None


def _of(offsets: Offsets, row: dict[str, Any]) -> int:
    return offsets.get(row["topic"], {}).get(row["partition"], 0)
