"""Everything that a running release holds: session, sinks, query; built in order, given back in reverse."""

from __future__ import annotations

import gc
import logging
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import duckdb

from platform_core.control import holds, positions, releases
from platform_core.control.position import Places, Position
from platform_core.control.store import ControlStore
from platform_core.declare import StreamingJob
from platform_core.names import ReleaseId
from platform_core.settings import Settings
from platform_core.streaming.batch.metrics import dropped_by, observed_by
from platform_core.streaming.batch.runner import BatchRunner
from platform_core.streaming.batch.value import Batch
from platform_core.streaming.checkpoint.files import Checkpoint
from platform_core.streaming.checkpoint.planned_batches import PlannedBatches
from platform_core.streaming.driver.lease_monitor import LeaseMonitor
from platform_core.streaming.driver.pacing import Pace
from platform_core.streaming.driver.query import ReleaseQuery
from platform_core.streaming.driver.reports import Ends, Reports
from platform_core.streaming.driver.session import session
from platform_core.streaming.sink.encoding import Records
from platform_core.streaming.sink.fetch import KafkaFetcher
from platform_core.streaming.sink.output_topics import OutputTopics, Role
from platform_core.streaming.sink.protocol import Sink
from platform_core.streaming.sink.table import TableSink, table_sinks
from platform_core.streaming.source.kind import InputContext, Query, largest_batch
from platform_core.streaming.source.parsing import job_delay
from platform_core.streaming.source.release import inputs_of
from platform_core.streaming.transform.query_plan import keeps_time, streamed
from platform_core.tables import history
from platform_core.tables.maintenance import TableMaintenance
from platform_core.telemetry import event

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)
_LOOKED_AT, _MAINTENANCE = 10_000, 100  # of commits: further back nobody asks; those that carry no position


class ReleaseRuntime:
    def __init__(
        self, settings: Settings, store: ControlStore, job: StreamingJob, release: ReleaseId, monitor: LeaseMonitor
    ) -> None:
        self.settings, self.store, self.job, self.release, self.monitor = settings, store, job, release, monitor
        self.checkpoint = Checkpoint(settings.storage.checkpoint(release).here)
        self.steps = PlannedBatches(self.checkpoint)
        self.inputs = inputs_of(InputContext(settings, store, job, release))
        self._held = ExitStack()
        self._keeps_time = True
        self._query: ReleaseQuery | None = None  # the newest

    def open(self) -> None:
        """Proves where the release is, then makes all that its queries share."""
        duck = duckdb.connect(config={"threads": "2"})
        self._held.callback(duck.close)
        self._output_topics = OutputTopics(self.settings, self.job, self.release, self.monitor, self.checkpoint, duck)
        sinks, self._table = self._made_sinks(duck)
        for sink in reversed(sinks):  # the table first: it can tell the most
            sink.prove(self.checkpoint)
        committed = self._table.position()
        self._found_planned = self.checkpoint.planned
        if self.steps.unfinished:
            self.monitor.gate.must_finish(self._found_planned)
        self.monitor.standing = committed
        self._tell_unrecorded()
        self.spark = session(self.settings, str(self.release))
        self._held.callback(self.spark.stop)
        self._output_topics.to("silent")
        self._held.callback(self._output_topics.close)
        self._batches = self._made_batches(self.spark, sinks, committed)
        # What is here stays: without it a look for garbage is quick and comes often. The JVM keeps whatever a batch
        # handed to Python until then: measured, 750 MB of a heap of 1 GB instead of 190.
        gc.collect()
        gc.freeze()
        gc.collect()  # which now counts next to nothing as old, and by that decides when to look again

    def start(self, over_gaps: bool = False, **trigger: Any) -> ReleaseQuery:
        """A query from where the checkpoint is; with the release's own pace when no trigger is named."""
        release = releases.get(self.store, self.release)
        begins = release.replay_from.places if release.replay_from else None
        asked = Query(begins, self.steps.at() or begins or {}, bool(trigger.get("once")), over_gaps)
        rows = streamed(self.job, self.inputs.source(self.spark, asked))
        self._keeps_time = keeps_time(rows)
        query = ReleaseQuery(self.job, rows, self.checkpoint.path, self._batches.run, self.monitor.wakeup)
        self._query = query
        self._batches.metrics = lambda: observed_by(query.query)
        self._batches.dropped = lambda: dropped_by(query.query)
        self.monitor.recall(False)
        if trigger:
            query.start(**trigger)
        else:
            query.start(Pace.of(self.job, largest_batch(self.settings, self.job)), empty_batches=self.emits_by_time)
        return query

    def step(self, target: Places, watermark_ms: int) -> None:
        """One batch that ends there."""
        if self.checkpoint.planned < 0:
            self.plan_first(target)
        else:
            self.steps.plan(target, watermark_ms)
        self.finish()

    def finish(self, over_gaps: bool = False) -> None:
        """Runs what is planned, to its end."""
        if not self.steps.unfinished or self.monitor.ending:
            return
        query = self.start(over_gaps, once=True)
        query.watch(lambda: self.monitor.ending)
        gc.collect()  # what py4j hands out stands in circles, and the JVM keeps each step's query until they are gone

    def plan_first(self, target: Places) -> None:
        """The first batch, ending at `target`: Spark plans it, with its own settings and sources, and may not begin."""
        self.monitor.gate.block("planning")
        query = self.start(once=True)
        try:
            query.until(lambda: self.checkpoint.planned >= 0)
        finally:
            self.monitor.recall()
            query.watch(lambda: True)
            self.monitor.gate.unblock("planning")
        self.steps.plan_first(target)

    def withdraw(self) -> None:
        """After a query: what it had planned and was not let begin shall not run later in place of something else."""
        self.steps.withdraw(max(self.monitor.gate.begun, self._found_planned))

    def publish_as(self, role: Role) -> None:
        """`live`: to the topic itself, from now on alone; `aside`: to one of the release's own; `silent`: to none."""
        self._output_topics.to(role)

    def hand_over(self, records: Records, cutover: int, at: Position) -> None:
        """Writes what the topics lack to be this release's, where both stood."""
        publisher = self._output_topics.publisher
        if publisher is not None:
            count = publisher.hand_over(records, cutover, at.batch, at.offsets)
            event(logger, "topics handed over", release=self.release, cutover=cutover, records=count)

    @property
    def clocked(self) -> bool:
        return job_delay(self.job) is not None

    @property
    def emits_by_time(self) -> bool:
        """Whether the clock alone, without records, brings rows."""
        return self.clocked and (self.job.output_mode == "append" or self._keeps_time)

    def close(self) -> None:
        self._held.close()

    def _tell_unrecorded(self) -> None:
        """Commits whose driver died while the control store was away: followers and comparisons go by them. The batch
        that is repeated now is told then, with its facts."""
        stands, done = positions.latest(self.store, self.release), self.checkpoint.done
        last = stands[0].batch if stands else -1
        if last >= done:
            return
        newest = history.commits(self._table.output.place, limit=min(done - last, _LOOKED_AT) + _MAINTENANCE)
        found = [(Position.from_json(one["userMetadata"]), one["version"]) for one in newest if "userMetadata" in one]
        missing = [(position, version) for position, version in found if last < position.batch <= done]
        positions.fill(self.store, self.monitor.lease, missing)
        event(logger, "unrecorded commits told", release=self.release, after=last, commits=len(missing))

    def _made_sinks(self, duck: duckdb.DuckDBPyConnection) -> tuple[list[Sink], TableSink]:
        before, table = table_sinks(
            self.settings, self.job, self.release, self.checkpoint.path, duck, KafkaFetcher(self.settings)
        )
        return [*before, table, self._output_topics], table

    def _made_batches(self, spark: SparkSession, sinks: list[Sink], committed: Position | None) -> BatchRunner:
        ends = Ends(self.inputs)
        self._held.callback(ends.close)
        reports, maintenance = Reports(self.store, lambda: self.monitor.lease, ends), self._maintenance()

        def after(batch: Batch) -> None:
            reports.tell(batch)
            self.monitor.committed(batch.position)
            if self._query is not None:
                self._query.committed(batch.measures.records)
            maintenance.after_batch()

        return BatchRunner(
            job=self.job,
            release=str(self.release),
            positions=self.checkpoint,
            sinks=sinks,
            metrics=dict,
            begin=self.monitor.begin,
            may_write=self.monitor.write,
            recount=lambda position, last_ms: self.inputs.behind(spark, position, last_ms),
            report=after,
            clock_ms=committed.newest_ms if committed else 0,
        )

    def _maintenance(self) -> TableMaintenance:
        return TableMaintenance(self._table.output, held=lambda: holds.held_versions(self.store, self.release))
