"""The release's streaming query: started from its checkpoint, watched, and stopped between batches."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from platform_core.declare import StreamingJob
from platform_core.declare.durations import duration
from platform_core.errors import BatchFailed, WeirError
from platform_core.stream import spark_log
from platform_core.stream.guard import StopRequested

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

_PROVIDERS = "org.apache.spark.sql.execution.streaming.state"
STATE_STORE = "spark.sql.streaming.stateStore.providerClass"
_STORES = {"disk": f"{_PROVIDERS}.RocksDBStateStoreProvider", "memory": f"{_PROVIDERS}.HDFSBackedStateStoreProvider"}
Process = Callable[["DataFrame", int], None]


class ReleaseQuery:
    """Runs `process` for each batch. A failure inside it is kept as it was raised, not as Spark retells it."""

    def __init__(self, job: StreamingJob, rows: DataFrame, checkpoint: Path, process: Process) -> None:
        self._job, self._rows, self._checkpoint, self._process = job, rows, checkpoint, process
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

    def start(self, **trigger: Any) -> None:
        # fixed by the first batch; a checkpoint keeps the store that it was begun with
        spark_log.started(self._rows.sparkSession)
        self._rows.sparkSession.conf.set(STATE_STORE, _STORES[self._job.state])
        writer = self._rows.writeStream.queryName(self._job.name).outputMode(self._job.output_mode)
        writer = writer.option("checkpointLocation", str(self._checkpoint)).foreachBatch(self._guarded)
        try:
            self._query = writer.trigger(**(trigger or {"processingTime": pace(self._job)})).start()
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
                    self.query.stop()
                time.sleep(0.05)
            if self._query is not None:
                self._error = self._query.exception()
        finally:
            self.close()
        self._raise()

    def close(self) -> None:
        """Stopped, and let go of: the JVM keeps the batches' function, and through it this and the query would be kept
        for ever, as neither side's collector sees the other's half. The steps of a replay filled the heap."""
        try:
            if self._query is not None and self._query.isActive:
                self._query.stop()
        finally:
            self._query = None

    def _guarded(self, frame: DataFrame, batch: int) -> None:
        try:
            self._process(frame, batch)
        except BaseException as error:
            self.failure = error
            if isinstance(error, StopRequested):
                spark_log.refused(self._rows.sparkSession)
            raise

    def _raise(self) -> None:
        if isinstance(self.failure, WeirError):
            raise self.failure
        if self.failure is not None and not isinstance(self.failure, StopRequested):
            raise BatchFailed(
                f"{self._job.name}: a batch failed with {type(self.failure).__name__}: {first_line(self.failure)}",
                remedy="See the driver's log; it is tried again.",
            ) from self.failure
        error = self._error
        if error is not None and self.failure is None:
            raise BatchFailed(
                f"{self._job.name}: Spark ended the query: {first_line(error)}",
                remedy="See the driver's log; it is tried again.",
            ) from error


def pace(job: StreamingJob) -> str:
    """A fourth of how often the job promises to update: waiting for a trigger is then a small part of the freshness."""
    promised = duration(job.updates_every, f"job {job.name!r}.updates_every")
    return f"{max(int(promised.total_seconds() * 250), 50)} milliseconds"


def first_line(error: BaseException) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)[:500]
