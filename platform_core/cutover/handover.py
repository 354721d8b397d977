"""What a keyed output topic lacks when another release takes it over: the rows that differ there, and tombstones."""

from __future__ import annotations

from dataclasses import dataclass

import duckdb
import pyarrow as pa

from platform_core.declare import Publish, StreamingJob, Table
from platform_core.storage import Place
from platform_core.streaming.sink.publish import Message, encoded, is_keyed


@dataclass(frozen=True)
class TableAtVersion:
    """A release's table at one position."""

    place: Place
    number: int

    def rows(self, table: Table) -> pa.Table:
        """The columns that it has of those declared: an older release may lack some."""
        found = self.place.table(self.number).to_pyarrow_dataset()
        return found.to_table(columns=[column.name for column in table.columns if column.name in found.schema.names])


@dataclass(frozen=True)
class TopicHandover:
    """`published` is the old release's table as far as its topic has it: a driver may die before it gets to `old`."""

    published: TableAtVersion
    old: TableAtVersion
    new: TableAtVersion


def lacking(job: StreamingJob, publish: Publish, change: TopicHandover) -> list[Message]:
    """A keyed topic gets what differs from the new release's rows; one of events what the old one had left to write."""
    if is_keyed(job):
        return difference(job, publish, change.published, change.new)
    if change.published == change.old:
        return []
    before, after = change.published.rows(job.output), change.old.rows(job.output)
    with duckdb.connect(config={"threads": "2"}) as duck:
        duck.register("before_", before)
        duck.register("after_", after)
        left = duck.sql("SELECT * FROM after_ EXCEPT ALL SELECT * FROM before_").to_arrow_table()
        return encoded(left.cast(after.schema), publish, duck)


def difference(job: StreamingJob, publish: Publish, old: TableAtVersion, new: TableAtVersion) -> list[Message]:
    """The records that turn a topic with `old`'s results into one with `new`'s."""
    before, after = old.rows(job.output), new.rows(job.output)
    with duckdb.connect(config={"threads": "2"}) as duck:
        duck.register("before_", before)
        duck.register("after_", after)
        changed = encoded(_changed(duck, before, after), publish, duck)
        return changed + [(key, None) for key, _ in encoded(_gone(duck, job, before, after), publish, duck)]


def _changed(duck: duckdb.DuckDBPyConnection, before: pa.Table, after: pa.Table) -> pa.Table:
    if before.schema.names != after.schema.names:  # every record has another shape now
        return after
    return duck.sql("SELECT * FROM after_ EXCEPT SELECT * FROM before_").to_arrow_table().cast(after.schema)


def _gone(duck: duckdb.DuckDBPyConnection, job: StreamingJob, before: pa.Table, after: pa.Table) -> pa.Table:
    """As rows of the new shape: only their keys are written."""
    if not set(job.output.key) <= set(before.schema.names):
        return after.slice(0, 0)
    key = ", ".join(f'"{name}"' for name in job.output.key)
    there = duck.sql(f"SELECT DISTINCT {key} FROM (SELECT * FROM before_ ANTI JOIN after_ USING ({key}))")
    keys = there.to_arrow_table()
    filled = [
        keys[field.name].cast(field.type) if field.name in job.output.key else pa.nulls(keys.num_rows, field.type)
        for field in after.schema
    ]
    return pa.Table.from_arrays(filled, schema=after.schema)
