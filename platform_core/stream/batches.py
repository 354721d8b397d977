"""One batch of a release, from its rows to its commits.

The order of writes makes a crash between any two harmless: each is known by the batch's number, and is skipped when the
batch is repeated; the checkpoint's own commit comes last.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Protocol

import duckdb
import pyarrow as pa

from platform_core.control.position import Offsets, Position
from platform_core.declare import StreamingJob
from platform_core.stream.author_errors import placed
from platform_core.stream.intake import job_delay
from platform_core.stream.lookups import LookupTable, Waiting, split
from platform_core.stream.measures import Clock, Dropped, Measures, measured
from platform_core.stream.publish import Message, encoded
from platform_core.stream.rejects import Limit, Rejects

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Positions(Protocol):
    """Where a batch ends and what was fixed before it ran."""

    def position(self, release: str, batch: int, newest_ms: int = 0) -> Position: ...

    def late_before_ms(self, batch: int) -> int: ...

    def planned_at_ms(self, batch: int) -> int: ...


class Writer(Protocol):
    """A table: one commit a batch, and a batch that it has is skipped."""

    @property
    def columns(self) -> list[str]: ...

    def applied(self) -> int: ...

    def write(self, rows: pa.Table, batch: int, metadata: str) -> int: ...


class Publisher(Protocol):
    def publish(self, messages: list[Message], batch: int, end: Offsets) -> int: ...


@dataclass(frozen=True)
class Outcome:
    """What a batch did, for whoever keeps count."""

    position: Position
    measures: Measures
    rows: int
    late: int
    published: int
    table_version: int
    planned_at_ms: int
    readable_at: float
    repeated: bool


@dataclass(kw_only=True)
class Sinks:
    """Everything that a batch writes to."""

    output: Writer
    rejects: Rejects
    lookups: dict[str, LookupTable] = field(default_factory=dict[str, LookupTable])
    waiting: Waiting | None = None
    publisher: Publisher | None = None
    mirror: Callable[[Offsets], None] = lambda _: None


@dataclass(kw_only=True)
class Batches:
    """Called with each batch of the query; `begin` and `may_write` raise when none may begin, or be written."""

    job: StreamingJob
    release: str
    positions: Positions
    sinks: Sinks
    duck: duckdb.DuckDBPyConnection
    metrics: Callable[[], dict[str, dict[str, Any]]]
    begin: Callable[[int], None]
    may_write: Callable[[], None]
    recount: Callable[[Position, int], int]
    dropped: Callable[[], Dropped] = Dropped
    report: Callable[[Outcome], None]
    clock_ms: int = 0
    limit: Limit = field(init=False)

    def __post_init__(self) -> None:
        self.limit = Limit(self.job.reject_limit)

    def run(self, frame: DataFrame, batch: int) -> None:
        """1 compute, 2 refuse, 3 set rejects aside, 4 look up, 5 commit the table, 6 publish, 7 tell."""
        self.begin(batch)
        with placed(lambda: self.positions.position(self.release, batch)):
            rows = frame.toArrow()  # also when the batch is a repeat: it lets the state stores commit
        measures = measured(self.job, self.metrics())
        self.limit.check(self.release, measures.records, measures.rejects)
        self.clock_ms = max(self.clock_ms, measures.newest_ms)
        position = self.positions.position(self.release, batch, self.clock_ms)
        self.may_write()  # the computation may have outlived the lease
        repeated = self.sinks.output.applied() >= batch
        self.sinks.rejects.write(measures.rejects, batch, position.to_json())
        rows = self._finished(rows, batch, position)
        version = self.sinks.output.write(rows, batch, position.to_json())
        readable_at = time.time()
        published = self._publish(rows, position)
        self.report(
            Outcome(
                position=position,
                measures=measures,
                rows=rows.num_rows,
                late=self._late(measures, position),
                published=published,
                table_version=version,
                planned_at_ms=self.positions.planned_at_ms(batch),
                readable_at=readable_at,
                repeated=repeated,
            )
        )

    def _finished(self, rows: pa.Table, batch: int, position: Position) -> pa.Table:
        """The transform's rows with their lookups, one a key."""
        if self.job.lookups:
            rows, versions = split(rows, self.job.lookups)
            for name, table in self.sinks.lookups.items():
                table.add(versions[name], batch, position.to_json())
        if self.sinks.waiting is not None:
            rows = self.sinks.waiting.released(rows, self.clock_ms, batch)
        for table in self.sinks.lookups.values():
            rows = table.joined(rows, self.sinks.output.columns)
        return self._newest_a_key(rows)

    def _newest_a_key(self, rows: pa.Table) -> pa.Table:
        if "record" not in rows.column_names or "record" in {column.name for column in self.job.output.columns}:
            return rows
        if not self.job.output.keyed:
            return rows.drop_columns(["record"])
        key = ", ".join(f'"{name}"' for name in self.job.output.key)
        newest = "record.timestamp DESC, record.partition DESC, record.offset DESC"
        self.duck.register("rows_", rows)
        try:
            ranked = f"SELECT * FROM rows_ QUALIFY row_number() OVER (PARTITION BY {key} ORDER BY {newest}) = 1"
            return self.duck.sql(ranked).to_arrow_table().drop_columns(["record"])
        finally:
            self.duck.unregister("rows_")

    def _publish(self, rows: pa.Table, position: Position) -> int:
        if self.sinks.publisher is None or self.job.publish is None:
            self.sinks.mirror(position.offsets)
            return 0
        messages = encoded(rows, self.job.publish, self.duck)
        return self.sinks.publisher.publish(messages, position.batch, position.offsets)

    def _late(self, measures: Measures, position: Position) -> int:
        """Late by their own timestamps, and behind the watermark that applied to this batch."""
        before, delay = self.positions.late_before_ms(position.batch), job_delay(self.job)
        if delay is None:
            return measures.late
        clock = Clock(before, self.positions.planned_at_ms(position.batch), delay // timedelta(milliseconds=1))
        return measures.late + measures.dropped(clock, self.dropped, lambda last: self.recount(position, last))
