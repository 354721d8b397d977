"""A script performed by the real engine: parse, batches, sinks, checkpoint; only the brokers are in memory.

A life of the query lasts from its start to a crash or a move of the clock; the next begins from the same checkpoint.
"""

from __future__ import annotations

import threading
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import duckdb

from platform_core.control.position import Position
from platform_core.declare import StreamingJob
from platform_core.errors import WeirError
from platform_core.names import ReleaseId
from platform_core.settings import Settings
from platform_core.storage import Place
from platform_core.streaming.batch.metrics import behind, dropped_by, observed_by
from platform_core.streaming.batch.runner import BatchRunner
from platform_core.streaming.batch.value import Batch
from platform_core.streaming.driver.query import ReleaseQuery
from platform_core.streaming.sink.protocol import Sink
from platform_core.streaming.sink.table import table_sinks
from platform_core.streaming.source.parsing import job_delay
from platform_core.streaming.transform.query_plan import streamed
from platform_core.tables.changes import upserted
from platform_core.testing.crashes import Crashed, Crashes, CrashPoint, MemoryTopics
from platform_core.testing.positions import ScriptCheckpoint
from platform_core.testing.result import Result, Row, Written, decoded, in_order, refused
from platform_core.testing.script import Clock, Crash, Mark, Record, Script, records_of
from platform_core.testing.topics import ScriptSource, ScriptTopics

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_AFTER_ALL = timedelta(days=3650)
_BETWEEN = (Crash.AFTER_REJECTS, Crash.AFTER_WRITE, Crash.AFTER_PUBLISH)  # the sinks


@dataclass(kw_only=True)
class Stage:
    spark: SparkSession
    job: StreamingJob
    settings: Settings
    _done: dict[int, Batch] = field(default_factory=dict[int, Batch])
    _pending: list[Record] = field(default_factory=list[Record])
    _clock_ms: int = 0

    def __post_init__(self) -> None:
        self._release = ReleaseId(self.job.name, 1)
        self._topics = ScriptTopics(self.job, self.settings.home / "topics")
        self._checkpoint = ScriptCheckpoint(self.settings.storage.checkpoint(self._release).here, self._topics)
        self._crashes = Crashes()
        self._topics_out = MemoryTopics(self.job)
        self._showing = threading.Lock()
        self._life: _Life | None = None

    def perform(self, script: Script) -> Result:
        steps = list(script)
        last = max((record.at for record in records_of(steps)), default=datetime.now(UTC))
        try:
            for step in steps:
                self._take(step, last + _AFTER_ALL)
            self._until_quiet()
        finally:
            self._end_life()
        return self._result()

    def _take(self, step: Record | Mark | Crash | Clock, after_all: datetime) -> None:
        match step:
            case Record():
                self._pending.append(step)
            case Mark.BATCH:
                self._close_batch()
            case Mark.QUIET:
                self._until_quiet()
            case Mark.END:
                self._move_clock(after_all)
            case Clock(to):
                self._move_clock(to)
            case Crash():
                self._crash(step)

    def _close_batch(self) -> None:
        if self._pending:
            self._topics.append(self._pending)
            self._pending = []

    def _until_quiet(self) -> None:
        self._close_batch()
        life = self._alive()
        life.finish()

    def _crash(self, crash: Crash) -> None:
        """Within the batch at hand; between two batches where none is."""
        if self._pending:
            self._close_batch()
            self._crashes.arm(crash, self._topics.newest)
            self._alive().die()
        else:
            self._until_quiet()
        self._end_life()
        self._forget_state()

    def _move_clock(self, to: datetime) -> None:
        """Plans a batch without records and with the watermark that a record of that time would have brought."""
        self._until_quiet()
        self._end_life()
        moved, delay = _ms(to), job_delay(self.job)
        self._clock_ms = max(self._clock_ms, moved)
        self._checkpoint.plan(0 if delay is None else moved - _millis(delay))
        self._until_quiet()

    def _alive(self) -> _Life:
        """The query at hand, or a new life of it; all that the script has brought by now can be seen."""
        if self._life is None:
            if self._topics.newest < 0:
                self._topics.append([])  # a batch without records, as the query has to begin with one
            self._topics.show()
            self._life = self._new_life()
        else:
            with self._showing:  # a batch waits meanwhile: it must find all of these or none
                self._topics.show()
        return self._life

    def _end_life(self) -> None:
        if self._life is not None:
            life, self._life = self._life, None
            life.end()

    def _new_life(self) -> _Life:
        held = ExitStack()
        duck = duckdb.connect(config={"threads": "1"})
        held.callback(duck.close)
        before, table = table_sinks(self.settings, self.job, self._release, self._checkpoint.path, duck)
        after_rejects, after_write, after_publish = (CrashPoint(place, self._crashes) for place in _BETWEEN)
        sinks: list[Sink] = [*before, after_rejects, table, after_write, self._topics_out, after_publish]
        for sink in reversed(sinks):
            sink.prove(self._checkpoint)
        batches = self._batches(sinks, table.position())
        source = ScriptSource(self._topics, self.job, self.spark)
        running = [batches]  # dropped at the end: the JVM keeps the function itself
        held.callback(running.clear)
        query = ReleaseQuery(
            self.job,
            streamed(self.job, source),
            self._checkpoint.path,
            lambda frame, batch: self._run(running[0], frame, batch),
        )
        batches.metrics = lambda: observed_by(query.query)
        batches.dropped = lambda: dropped_by(query.query)
        query.start(processingTime="0 seconds")
        return _Life(query, held)

    def _batches(self, sinks: list[Sink], committed: Position | None) -> BatchRunner:
        return BatchRunner(
            job=self.job,
            release=str(self._release),
            positions=self._checkpoint,
            sinks=sinks,
            metrics=dict,
            begin=lambda _: None,
            may_write=lambda: self._crashes.reach(Crash.BEFORE_WRITES),
            recount=self._recount,
            report=self._keep,
            clock_ms=max(self._clock_ms, committed.newest_ms if committed else 0),
        )

    def _run(self, batches: BatchRunner, frame: DataFrame, batch: int) -> None:
        with self._showing:
            brings = self._checkpoint.brings_records(batch)
            self._crashes.enter(self._checkpoint.number(batch) if brings else None)
        batches.run(frame, batch)

    def _recount(self, position: Position, last_ms: int) -> int:
        return behind(self._topics.between(self.spark, position.start, position.offsets), self.job, last_ms)

    def _keep(self, batch: Batch) -> None:
        self._done[batch.number] = batch

    def _forget_state(self) -> None:
        """What a dead process loses: state held in memory, which is then read from the checkpoint again."""
        jvm: Any = self.spark._jvm  # pyright: ignore[reportPrivateUsage]
        jvm.org.apache.spark.sql.execution.streaming.state.StateStore.stop()

    def _result(self) -> Result:
        batches = [self._done[number] for number in sorted(self._done)]
        watermark = batches[-1].position.watermark_ms if batches else 0
        return Result(
            rows=in_order(_rows(self.settings.storage.table(self._release)), self.job),
            written=[one for one in map(self._written, batches) if one.rows or one.published],
            rejects=refused(_rows(self.settings.storage.rejects(self.job.name))),
            late=sum(batch.late for batch in batches),
            batches=batches,
            watermark=datetime.fromtimestamp(watermark / 1000, UTC) if watermark else None,
        )

    def _written(self, batch: Batch) -> Written:
        rows = upserted(batch.changes).to_pylist()
        sent = self._topics_out.sent.get(batch.number, {})
        return Written(in_order(rows, self.job), decoded(sent, self.job.publishes))


@dataclass(frozen=True)
class _Life:
    """One query, from its start to its end."""

    query: ReleaseQuery
    held: ExitStack

    def finish(self) -> None:
        """Returns when all that can be seen is processed; raises what ended the query otherwise."""
        from pyspark.errors import StreamingQueryException

        try:
            self.query.query.processAllAvailable()
        except StreamingQueryException:
            self.query.watch(lambda: False)
            raise

    def die(self) -> None:
        try:
            self.query.watch(lambda: False)
        except WeirError:
            if not isinstance(self.query.failure, Crashed):
                raise

    def end(self) -> None:
        try:
            self.query.close()
        finally:
            self.held.close()


def _rows(place: Place) -> list[Row]:
    rows: list[Row] = place.table().to_pyarrow_table().to_pylist() if place.has_table() else []
    return rows


def _ms(moment: datetime) -> int:
    return _millis(moment - datetime.fromtimestamp(0, UTC))


def _millis(span: timedelta) -> int:
    return span // timedelta(milliseconds=1)
