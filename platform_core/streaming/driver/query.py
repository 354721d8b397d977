"""The release's streaming query: started from its checkpoint, watched, and stopped between batches."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from platform_core.declare import StreamingJob
from platform_core.errors import BatchFailed, WeirError
from platform_core.streaming.batch.author_errors import in_brief
from platform_core.streaming.driver import spark_log
from platform_core.streaming.driver.lease_monitor import StopRequested
from platform_core.streaming.driver.pacing import Pace, TriggerClock, keep_time
from platform_core.streaming.driver.wakeup import Wakeup

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

_PROVIDERS = "org.apache.spark.sql.execution.streaming.state"
STATE_STORE = "spark.sql.streaming.stateStore.providerClass"
EMPTY_BATCHES = "spark.sql.streaming.noDataMicroBatches.enabled"
_CATALYST, _DELTA = "org.apache.spark.sql.catalyst.optimizer", "org.apache.spark.sql.delta"
# Each batch is optimized anew, and these rules found nothing in any job: a fourth of the optimizer's time. Delta's are
# for MERGE and Z-ORDER, which no stream runs.
IDLE_RULES = (
    f"{_DELTA}.metric.OptimizeConditionalIncrementMetric",
    f"{_DELTA}.optimizer.RangePartitionIdRewrite",
    f"{_CATALYST}.EliminateAggregateFilter",
    f"{_CATALYST}.OptimizeCsvJsonExprs",
    f"{_CATALYST}.ReorderAssociativeOperator",
)
_UNTIL_PACED = "50 milliseconds"  # Spark's own interval, for the one wait before the clock is ours
_LOOKS, _STOPS = 0.5, 0.05  # seconds between two looks at a query that goes on for ever, and at one that ends
_STORES = {"disk": f"{_PROVIDERS}.RocksDBStateStoreProvider", "memory": f"{_PROVIDERS}.HDFSBackedStateStoreProvider"}
Process = Callable[["DataFrame", int], None]


class ReleaseQuery:
    """Runs `process` for each batch. A failure inside it is kept as it was raised, not as Spark retells it."""

    def __init__(
        self, job: StreamingJob, rows: DataFrame, checkpoint: Path, process: Process, wakeup: Wakeup | None = None
    ) -> None:
        """`wakeup` is rung by whoever changes what `watch` is told to watch for."""
        self._job, self._rows, self._checkpoint, self._process = job, rows, checkpoint, process
        self._wakeup = wakeup or Wakeup()
        self._clock: TriggerClock | None = None
        self._query: StreamingQuery | None = None
        self._started = threading.Event()
        self._error: Exception | None = None
        self.failure: BaseException | None = None

    @property
    def query(self) -> StreamingQuery:
        self._started.wait()  # the first batch can begin before start() has returned
        assert_started = self._query
        if assert_started is None:
            raise BatchFailed("The query did not start.", remedy="See the driver's log.")
        return assert_started

    @property
    def active(self) -> bool:
        return self._query is not None and self._query.isActive

    def start(self, pace: Pace | None = None, empty_batches: bool = True, **trigger: Any) -> None:
        """With `pace` it goes on for ever, at that pace; else as the trigger says. `empty_batches`: whether a clock
        that has moved is worth a batch without records."""
        # fixed by the first batch; a checkpoint keeps the store that it was begun with
        spark_log.started(self._rows.sparkSession)
        self._rows.sparkSession.conf.set(STATE_STORE, _STORES[self._job.state])
        self._rows.sparkSession.conf.set(EMPTY_BATCHES, str(empty_batches).lower())
        self._rows.sparkSession.conf.set("spark.sql.optimizer.excludedRules", ",".join(IDLE_RULES))
        writer = self._rows.writeStream.queryName(self._job.name).outputMode(self._job.output_mode)
        writer = writer.option("checkpointLocation", str(self._checkpoint)).foreachBatch(self._guarded)
        try:
            self._query = writer.trigger(**(trigger or {"processingTime": _UNTIL_PACED})).start()
            if pace is not None:
                self._clock = TriggerClock(pace, lambda: self.active)
                keep_time(self._query, self._clock)
        finally:
            self._started.set()

    def until(self, condition: Callable[[], bool]) -> None:
        """Returns when the condition holds, or the query has ended."""
        while self.active and not condition():
            time.sleep(0.02)

    def watch(self, stopping: Callable[[], bool], patience: float = 120.0) -> None:
        """Returns when the query has ended as asked; raises what ended it otherwise.

        The thread polls and never waits inside the JVM: a signal handler has to find it in Python. A stop lets the
        batch at hand end: between batches the query is stopped, within one the gate refuses the next.
        """
        asked: float | None = None
        try:
            while self.active:
                if asked is None and stopping():
                    asked = time.monotonic()
                idle = asked is not None and not self.query.status["isTriggerActive"]
                if idle or (asked is not None and time.monotonic() - asked > patience):
                    self._stop()
                self._wakeup.wait(_LOOKS if asked is None and self._clock is not None else _STOPS)
            if self._query is not None:
                self._error = self._query.exception()
        finally:
            self.close()
        self._raise()

    def close(self) -> None:
        """Stops the query and drops it: the JVM keeps the batches' function, and through it this and the query would be
        kept for ever, as neither side's collector sees the other's half. The steps of a replay filled the heap."""
        try:
            if self._query is not None and self._query.isActive:
                self._stop()
        finally:
            self._query = self._clock = None

    def committed(self, records: int) -> None:
        """The batch at hand can be read: what the pace goes by."""
        if self._clock is not None:
            self._clock.committed(records)

    def _stop(self) -> None:
        """Spark waits for its thread to end, which may be waiting for the next batch on our clock."""
        if self._clock is not None:
            self._clock.end()
        self.query.stop()

    def _guarded(self, frame: DataFrame, batch: int) -> None:
        try:
            self._process(frame, batch)
        except BaseException as error:
            self.failure = error
            self._wakeup.ring()
            if isinstance(error, StopRequested):
                spark_log.refused(self._rows.sparkSession)
            raise

    def _raise(self) -> None:
        if isinstance(self.failure, WeirError):
            raise self.failure
        if self.failure is not None and not isinstance(self.failure, StopRequested):
            raise BatchFailed(
                f"{self._job.name}: a batch failed with {in_brief(self.failure)}.",
                remedy="See the driver's log; it is tried again.",
            ) from self.failure
        error = self._error
        if error is not None and self.failure is None:
            raise BatchFailed(
                f"{self._job.name}: Spark ended the query: {in_brief(error)}.",
                remedy="See the driver's log; it is tried again.",
            ) from error
