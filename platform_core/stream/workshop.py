"""Everything that a running release holds: session, sinks, query; built in order, given back in reverse."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import duckdb

from platform_core.broker import Broker
from platform_core.control.position import Position
from platform_core.control.store import ControlStore
from platform_core.declare import StreamingJob
from platform_core.names import ReleaseId
from platform_core.settings import Settings
from platform_core.stream.batches import Batches, Outcome, Sinks, Writer
from platform_core.stream.checkpoint import Checkpoint, prove
from platform_core.stream.fetch import KafkaFetcher
from platform_core.stream.guard import Guard
from platform_core.stream.lookups import LookupTable, Waiting
from platform_core.stream.measures import behind, dropped_by, observed_by
from platform_core.stream.plan import streamed
from platform_core.stream.publish import Mirror, TransactionalPublisher
from platform_core.stream.query import ReleaseQuery
from platform_core.stream.rejects import Rejects
from platform_core.stream.reports import Ends, Reports
from platform_core.stream.session import session
from platform_core.stream.source import KafkaStream, event_topics, records_in
from platform_core.tables.delta import Output
from platform_core.tables.maintenance import Upkeep
from platform_core.tables.schema import table_schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Workshop:
    def __init__(
        self, settings: Settings, store: ControlStore, job: StreamingJob, release: ReleaseId, guard: Guard
    ) -> None:
        self._settings, self._store, self._job, self._release, self._guard = settings, store, job, release, guard
        self.checkpoint = Checkpoint(settings.checkpoint(release))
        self._output = output_of(settings, job, release)
        self._held = ExitStack()

    def open(self) -> None:
        """Proves where the release is, then makes all that its queries share."""
        committed = self._output.position()
        prove(self.checkpoint, self._output.applied(), committed, self._output.uri)
        self.spark = session(self._settings, str(self._release))
        self._held.callback(self.spark.stop)
        duck = duckdb.connect(config={"threads": "2"})
        self._held.callback(duck.close)
        self._batches = self._made_batches(self.spark, duck, committed)

    def start(self, **trigger: Any) -> ReleaseQuery:
        """A query from where the checkpoint is; with the release's own pace when no trigger is named."""
        source = KafkaStream(self.spark, self._settings, self._job, self._release)
        query = ReleaseQuery(self._job, streamed(self._job, source), self.checkpoint.path, self._batches.run)
        self._batches.metrics = lambda: observed_by(query.query)
        self._batches.dropped = lambda: dropped_by(query.query)
        query.start(**trigger)
        return query

    def close(self) -> None:
        self._held.close()

    def _made_batches(
        self, spark: SparkSession, duck: duckdb.DuckDBPyConnection, committed: Position | None
    ) -> Batches:
        ends = Ends(Broker(self._settings))
        self._held.callback(ends.close)
        reports, upkeep = Reports(self._store, lambda: self._guard.lease, ends), Upkeep(self._output)

        def after(outcome: Outcome) -> None:
            reports.tell(outcome)
            upkeep.after_batch()

        return Batches(
            job=self._job,
            release=str(self._release),
            positions=self.checkpoint,
            sinks=self._sinks(duck),
            duck=duck,
            metrics=dict,
            begin=self._guard.begin,
            may_write=self._guard.write,
            recount=self._recount(spark),
            report=after,
            clock_ms=committed.newest_ms if committed else 0,
        )

    def _sinks(self, duck: duckdb.DuckDBPyConnection) -> Sinks:
        uri, release = self._settings.table_uri(self._release), str(self._release)
        sinks = Sinks(
            output=self._output,
            rejects=Rejects(self._settings.rejects_uri(self._job.name), release, KafkaFetcher(self._settings)),
            lookups={
                name: LookupTable(name, part, f"{uri}_lookup_{name}", release, duck)
                for name, part in self._job.lookups.items()
            },
        )
        if self._job.lookups:
            sinks.waiting = Waiting(self.checkpoint.path / "waiting", self._job.output, self._job.lookups)
        if self._job.publish is None:
            mirror = Mirror(self._settings, self._release.group)
            self._held.callback(mirror.close)
            sinks.mirror = mirror.show
        else:
            sinks.publisher = self._publisher(self._job.publish.topic.name)
        return sinks

    def _publisher(self, topic: str) -> TransactionalPublisher:
        """The transactional id belongs to the job, not the release: whoever is live fences whoever was."""
        self._guard.write()  # a driver that woke up without its lease must not fence its successor
        publisher = TransactionalPublisher(
            self._settings,
            topic,
            self._job.name,
            self._release.group,
            self.checkpoint.identity(),
            self._guard.lease.epoch,
        )
        self._held.callback(publisher.close)
        return publisher

    def _recount(self, spark: SparkSession) -> Callable[[Position, int], int]:
        """How many events of a batch are behind a watermark, by reading it again: only for a stream that catches up."""

        def count(position: Position, before_ms: int) -> int:
            events = {topic.name: position.offsets[topic.name] for topic in event_topics(self._job)}
            return behind(records_in(spark, self._settings, position.start, events), self._job, before_ms)

        return count


def output_of(settings: Settings, job: StreamingJob, release: ReleaseId) -> Output:
    table = job.output
    return Output(settings.table_uri(release), table_schema(table), str(release), table.key, table.description)


def table_sinks(
    settings: Settings, job: StreamingJob, release: ReleaseId, output: Writer, duck: duckdb.DuckDBPyConnection
) -> Sinks:
    """All that a batch writes to, but Kafka."""
    uri, name = settings.table_uri(release), str(release)
    sinks = Sinks(
        output=output,
        rejects=Rejects(settings.rejects_uri(job.name), name),
        lookups={
            part: LookupTable(part, lookup, f"{uri}_lookup_{part}", name, duck) for part, lookup in job.lookups.items()
        },
    )
    if job.lookups:
        sinks.waiting = Waiting(Checkpoint(settings.checkpoint(release)).path / "waiting", job.output, job.lookups)
    return sinks
