"""What an output topic lacks when another release takes it over: the rows that differ there, and tombstones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa

from platform_core.declare import Publish, StreamingJob, Table
from platform_core.declare.described import Described, plain
from platform_core.storage import Place
from platform_core.streaming.sink.encoding import Message, chosen, encoded, is_keyed, tombstones


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
    """`published` is the old release's table as far as its topics have it: a driver may die before it gets to `old`."""

    published: TableAtVersion
    old: TableAtVersion
    new: TableAtVersion
    wrote: Sequence[Described] = ()  # what the old release published, as its manifest has it

    def alike(self, publish: Publish) -> bool:
        """Whether the old release wrote records of the same rows to the topic, in the same way."""
        return any(_way(one) == _way(plain(publish)) for one in self.wrote)


def lacking(job: StreamingJob, change: TopicHandover) -> dict[str, list[Message]]:
    """By topic. A keyed one gets what differs from the new release's rows; one of events what the old release had left
    to write, and nothing where that one did not write to it: its events begin with the new release."""
    with duckdb.connect(config={"threads": "2"}) as duck:
        return {publish.topic.name: _lacking(duck, job, publish, change) for publish in job.publishes}


def _lacking(
    duck: duckdb.DuckDBPyConnection, job: StreamingJob, publish: Publish, change: TopicHandover
) -> list[Message]:
    alike = change.alike(publish)
    if is_keyed(job, publish):
        return difference(duck, job, publish, change.published, change.new, alike)
    if change.published == change.old or not alike:
        return []
    before, after = change.published.rows(job.output), change.old.rows(job.output)
    duck.register("before_", before)
    duck.register("after_", after)
    left = duck.sql("SELECT * FROM after_ EXCEPT ALL SELECT * FROM before_").to_arrow_table().cast(after.schema)
    return encoded(chosen(publish, left, duck)[0], publish, duck)


def difference(
    duck: duckdb.DuckDBPyConnection,
    job: StreamingJob,
    publish: Publish,
    old: TableAtVersion,
    new: TableAtVersion,
    alike: bool = True,
) -> list[Message]:
    """The records that turn a topic with `old`'s results into one with `new`'s; all of them, where the old ones are not
    `alike`."""
    before, after = old.rows(job.output), new.rows(job.output)
    after, _ = chosen(publish, after, duck)
    if alike and before.schema.names == after.schema.names:
        before, _ = chosen(publish, before, duck)
    duck.register("before_", before)
    duck.register("after_", after)
    changed = _changed(duck, before, after) if alike else after
    return encoded(changed, publish, duck) + tombstones(_gone(duck, job, before, after), publish, duck)


def _way(described: Described) -> tuple[Any, ...]:
    """Where one that an older platform has described has no condition."""
    return (described["topic"]["name"], described["key"], described["value"], described.get("where"))


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
