"""Everything that a batch is written to, in the order of the writes.

    Rejects      refused records
    Waiting      rows that still wait for a lookup's record
    LookupTable  every version of a lookup; it gives the rows their columns
    TableSink    the job's output
    OutputTopics  the same in Kafka, or the group's offsets alone

A crash between any two is harmless: each knows a batch by its number, and skips one that it has. The checkpoint's own
commit comes last. A further sink is a class with this interface, in its place here.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import duckdb
import pyarrow as pa

from platform_core.control.position import Position
from platform_core.declare import StreamingJob, Table
from platform_core.names import ReleaseId
from platform_core.settings import Settings
from platform_core.streaming.batch.value import Batch
from platform_core.streaming.checkpoint.files import Checkpoint, prove
from platform_core.streaming.sink.lookups import LookupTable, Waiting
from platform_core.streaming.sink.output_topics import OutputTopics
from platform_core.streaming.sink.protocol import Remains, Retiring, Sink
from platform_core.streaming.sink.rejects import Fetcher, Rejects
from platform_core.tables.delta import TableWriter
from platform_core.tables.schema import table_schema


class TableSink:
    """The table, one row a key; its commits carry the position."""

    def __init__(self, output: TableWriter, table: Table, duck: duckdb.DuckDBPyConnection) -> None:
        self.output, self._table, self._duck = output, table, duck

    def committed(self) -> int:
        return self.output.applied()

    def position(self) -> Position | None:
        return self.output.position()

    def prove(self, checkpoint: Checkpoint) -> None:
        prove(checkpoint, self.committed(), self.position(), str(self.output.place))

    def commit(self, batch: Batch) -> Batch:
        repeated, rows = self.committed() >= batch.number, newest_a_key(batch.changes, self._table, self._duck)
        version = self.output.write(rows, batch.number, batch.metadata)
        return replace(batch, changes=rows, repeated=repeated, table_version=version, readable_at=time.time())

    @classmethod
    def remains(cls, of: Retiring) -> Iterable[Remains]:
        return (Remains.of("table", of.settings.storage.table(of.release)),)


def newest_a_key(rows: pa.Table, table: Table, duck: duckdb.DuckDBPyConnection) -> pa.Table:
    """Of several rows of a key the one of the newest record, where the transform kept `record`."""
    if "record" not in rows.column_names or "record" in {column.name for column in table.columns}:
        return rows
    if not table.keyed:
        return rows.drop_columns(["record"])
    key = ", ".join(f'"{name}"' for name in table.key)
    newest = "record.timestamp DESC, record.partition DESC, record.offset DESC"
    duck.register("rows_", rows)
    try:
        ranked = f"SELECT * FROM rows_ QUALIFY row_number() OVER (PARTITION BY {key} ORDER BY {newest}) = 1"
        return duck.sql(ranked).to_arrow_table().drop_columns(["record"])
    finally:
        duck.unregister("rows_")


SINKS: tuple[type[Sink], ...] = (Rejects, Waiting, LookupTable, TableSink, OutputTopics)


def output_of(settings: Settings, job: StreamingJob, release: ReleaseId) -> TableWriter:
    table, place = job.output, settings.storage.table(release)
    return TableWriter(place, table_schema(table), str(release), table.key, table.description)


def table_sinks(
    settings: Settings,
    job: StreamingJob,
    release: ReleaseId,
    checkpoint: Path,
    duck: duckdb.DuckDBPyConnection,
    fetcher: Fetcher | None = None,
) -> tuple[list[Sink], TableSink]:
    """All but Kafka: what comes before the table, and the table."""
    storage, name = settings.storage, str(release)
    before: list[Sink] = [Rejects(storage.rejects(job.name), name, fetcher)]
    if job.lookups:
        before.append(Waiting(checkpoint / "waiting", job.output, job.lookups))
    before += [
        LookupTable(part, lookup, storage.lookup(release, part), name, job.output, duck)
        for part, lookup in job.lookups.items()
    ]
    return before, TableSink(output_of(settings, job, release), job.output, duck)


def remains(of: Retiring) -> list[Remains]:
    """All that the sinks of a release leave behind."""
    return [one for sink in SINKS for one in sink.remains(of)]
