"""Spark's streaming source over raw tables, with the offsets of Kafka's source.

Both write the same lines into the offset log. So a query that is stopped between two batches goes on with the other
one: what it has of history comes from the tables, the rest from the broker, and its state knows of no difference.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import pyarrow as pa
from deltalake import DeltaTable
from pyarrow import compute as pc
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit

NAME = "weir_landed"
SCHEMA = "topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, key BINARY, value BINARY"
COLUMNS = ("topic", "partition", "offset", "timestamp", "key", "value")
_LARGEST = 100_000  # records that one task reads
_Places = dict[str, dict[str, int]]


@dataclass
class Chunk(InputPartition):
    """The records of one partition of a topic, `start` to before `end`."""

    topic: str
    partition: int
    start: int
    end: int


class RawHistorySource(DataSource):
    """Options: `tables` says where each topic's raw table is, and in which version; `begins`, `ends` are offsets."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> str:
        return SCHEMA

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: ARG002 - Spark's signature
        return RawHistoryReader({name: json.loads(self.options[name]) for name in ("tables", "begins", "ends")})


class RawHistoryReader(DataSourceStreamReader):
    def __init__(self, options: dict[str, dict[str, Any]]) -> None:
        self._tables, self._begins, self._ends = options["tables"], options["begins"], options["ends"]

    def initialOffset(self) -> dict[str, Any]:
        return self._begins

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: ARG002
        """Steps are planned from outside, so that no limit is needed."""
        return self._ends

    def partitions(self, start: _Places, end: _Places) -> list[InputPartition]:
        self._refuse_beyond(end)
        return [
            Chunk(topic, int(partition), first, min(first + _LARGEST, last))
            for topic, parts in end.items()
            for partition, last in parts.items()
            for first in range(start.get(topic, {}).get(partition, 0), last, _LARGEST)
        ]

    def _refuse_beyond(self, end: _Places) -> None:
        """What was planned of the broker, and is gone there before it ran: the table may not have it yet."""
        for topic, parts in end.items():
            for partition, last in parts.items():
                if last > self._ends[topic].get(partition, 0):
                    raise ValueError(f"{topic}[{partition}]@{last} is not landed yet in {self._tables[topic]['uri']}.")

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """In the order of offsets, as the broker gives them."""
        chunk = cast("Chunk", partition)
        where = self._tables[chunk.topic]
        own = (pc.field("partition") == chunk.partition) & (pc.field("topic") == chunk.topic)
        wanted = own & (pc.field("offset") >= chunk.start) & (pc.field("offset") < chunk.end)
        table = DeltaTable(where["uri"], version=where["version"], storage_options=where["options"])
        found = table.to_pyarrow_dataset().to_table(columns=list(COLUMNS), filter=wanted)
        yield from found.sort_by("offset").to_batches()
