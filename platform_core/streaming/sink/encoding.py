"""What a batch's rows are in Kafka: the records of each topic that the job publishes to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute

from platform_core.declare import Publish, StreamingJob
from platform_core.declare.conditions import in_duckdb
from platform_core.formats import codec
from platform_core.formats.sql import evaluated
from platform_core.tables.changes import deleted, upserted

Message = tuple[bytes | None, bytes | None]  # key and value
Records = Mapping[str, Sequence[Message]]  # by topic
pc: Any = pyarrow.compute  # its functions are made at import, where no type checker sees them


def records(job: StreamingJob, changes: pa.Table, duck: duckdb.DuckDBPyConnection) -> dict[str, list[Message]]:
    """Of a batch's rows, by the declared name of the topic."""
    return {publish.topic.name: messages(job, publish, changes, duck) for publish in job.publishes}


def messages(job: StreamingJob, publish: Publish, changes: pa.Table, duck: duckdb.DuckDBPyConnection) -> list[Message]:
    """A row that is deleted, or for which the condition does not hold, is a tombstone where its record replaces the one
    before of the same key; a topic of events has no word for it."""
    rows, others = chosen(publish, upserted(changes), duck)
    found = encoded(rows, publish, duck)
    if not is_keyed(job, publish):
        return found
    gone = (deleted(changes), others)
    return found + [message for some in gone if some.num_rows for message in tombstones(some, publish, duck)]


def chosen(publish: Publish, rows: pa.Table, duck: duckdb.DuckDBPyConnection) -> tuple[pa.Table, pa.Table]:
    """The rows that are published, and those for which the condition does not hold."""
    if publish.where is None:
        return rows, rows.slice(0, 0)
    (holds,) = evaluated([in_duckdb(publish.where)], rows, duck)
    return rows.filter(holds), rows.filter(pc.invert(holds))


def encoded(rows: pa.Table, publish: Publish, duck: duckdb.DuckDBPyConnection) -> list[Message]:
    """Key and value of each row's record, in the order of the key."""
    keys, values = _bytes(rows, publish, duck)
    order = pc.sort_indices(keys)
    return list(zip(keys.take(order).to_pylist(), values.take(order).to_pylist(), strict=True))


def tombstones(rows: pa.Table, publish: Publish, duck: duckdb.DuckDBPyConnection) -> list[Message]:
    return [(key, None) for key, _ in encoded(rows, publish, duck)]


def is_keyed(job: StreamingJob, publish: Publish) -> bool:
    """Whether a record of the topic replaces the one before it of the same key, as a row of the table does."""
    return job.output.keyed and set(publish.key.names) == set(job.output.key)


def _bytes(rows: pa.Table, publish: Publish, duck: duckdb.DuckDBPyConnection) -> list[pa.ChunkedArray]:
    key, value = publish.key, publish.value
    if key.format is value.format:
        return codec(key.format).encode(rows, [key.names, value.names], duck)
    return [found for part in (key, value) for found in codec(part.format).encode(rows, [part.names], duck)]
