"""Inputs of every kind with the same rows, and a release that reads them: what the contract is held to."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from uuid import uuid4

import duckdb
import pyarrow as pa
from confluent_kafka import TopicPartition
from deltalake import DeltaTable

from platform_core.control import leases, positions, releases
from platform_core.control.owners import Owner
from platform_core.control.position import Places, Position
from platform_core.control.store import ControlStore
from platform_core.declare import Raw, Stream, StreamingJob, Table, Topic, as_landed, raw_table
from platform_core.declare.inputs import Input
from platform_core.declare.schemas import columns
from platform_core.names import PART, ReleaseId
from platform_core.release.declared import declared
from platform_core.release.topics import ids
from platform_core.services.process import until
from platform_core.settings import Settings
from platform_core.streaming.batch.metrics import observed_by
from platform_core.streaming.batch.runner import BatchRunner
from platform_core.streaming.batch.value import Batch
from platform_core.streaming.checkpoint.files import Checkpoint
from platform_core.streaming.checkpoint.planned_batches import PlannedBatches
from platform_core.streaming.driver.lease_monitor import StopRequested
from platform_core.streaming.driver.query import ReleaseQuery
from platform_core.streaming.sink.table import output_of, table_sinks
from platform_core.streaming.source.kind import InputContext, Query
from platform_core.streaming.source.release import inputs_of
from platform_core.streaming.transform.query_plan import streamed
from platform_core.tables.delta import TableWriter
from platform_core.tables.schema import delta_schema
from tests.conftest import Broker
from tests.control.words import facts
from tests.streaming.source.appended import Appended

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SHAPE = "id BIGINT, at TIMESTAMP"
BASE = 1_700_000_000  # row n is of so many seconds, and n


@dataclass(frozen=True)
class Stage:
    settings: Settings
    store: ControlStore
    broker: Broker
    spark: SparkSession


class Case(Protocol):
    """One input, and the rows in it."""

    @property
    def input(self) -> Input: ...

    @property
    def ids(self) -> dict[str, str]:
        """Of its topics."""
        ...

    def add(self, *ids: int) -> None: ...

    def make_again(self) -> None:
        """Under its name, as something else."""
        ...

    def lose(self) -> None:
        """What the first `add` brought, for good."""
        ...


class OfTopic:
    def __init__(self, stage: Stage) -> None:
        name = f"things-{uuid4().hex[:8]}"
        self._stage, self.topic = stage, Topic(name=name, value="id BIGINT NOT NULL", partitions=1)
        stage.broker.create(name)
        self.ids = self._ids()
        self.input: Input = Stream(self.topic, lateness="10 seconds")

    def add(self, *ids: int) -> None:
        for one in ids:
            self._stage.broker.produce(self.topic.name, (None, b'{"id": %d}' % one), at=(BASE + one) * 1000)

    def make_again(self) -> None:
        self._stage.broker.delete(self.topic.name)
        self._stage.broker.create(self.topic.name)

    def lose(self) -> None:
        self.delete(3)

    def delete(self, before: int) -> None:
        for one in self._stage.broker.admin.delete_records([TopicPartition(self.topic.name, 0, before)]).values():
            one.result(20)

    def _ids(self) -> dict[str, str]:
        """The broker shows a topic a moment after the controller has made it."""
        known: dict[str, str] = {}

        def shown() -> bool:
            known.update(ids(self._stage.settings, [self.topic.name]))
            return bool(known)

        assert until(shown, 20), self.topic.name
        return known


class Landed(OfTopic):
    """What the first `add` brings is in the topic's raw table alone."""

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self._landing: ReleaseId | None = None

    def add(self, *ids: int) -> None:
        super().add(*ids)
        if self._landing is None:
            self._landing = self._land(ids)
            self.delete(len(ids))

    def lose(self) -> None:
        """Nobody lands the topic any more."""
        if self._landing is not None:
            releases.set_state(self._stage.store, self._landing, "retired", "a test", by="a test")

    def _land(self, ids: Sequence[int]) -> ReleaseId:
        settings, store, topic = self._stage.settings, self._stage.store, self.topic.name
        raw = raw_table("raw", self.topic)
        job = StreamingJob(
            name=f"{topic.replace('-', '_')}_raw", inputs={"records": Raw(self.topic)}, transform=as_landed, output=raw
        )
        landing = ReleaseId(job.name, 1)
        create(store, landing, job, self.ids, "live")
        names = [*(column.name for column in raw.columns), PART]
        rows = [
            (topic, 0, offset, datetime.fromtimestamp(BASE + one, UTC), None, b'{"id": %d}' % one, "part")
            for offset, one in enumerate(ids)
        ]
        position = Position(str(landing), 0, {topic: {0: len(ids)}})
        table = pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows])
        version = output_of(settings, job, landing).write(table, 0, position.to_json())
        record(store, position, version)
        return landing


class OfTable:
    def __init__(self, stage: Stage) -> None:
        self._stage, self._release = stage, ReleaseId(f"things_{uuid4().hex[:8]}", 1)
        self._batch, self.ids = -1, dict[str, str]()
        self._make()
        self.input: Input = Appended(str(self._release), SHAPE, self._id(), event_time="at", lateness="10 seconds")

    def add(self, *ids: int) -> None:
        self._batch += 1
        rows = [{"id": one, "at": datetime.fromtimestamp(BASE + one, UTC)} for one in ids]
        self._output.write(pa.Table.from_pylist(rows), self._batch, "{}")

    def make_again(self) -> None:
        shutil.rmtree(self._output.place.uri)
        self._make()

    def lose(self) -> None:
        """As Delta cleans up its log: the commits are gone, the table stays."""
        self._output.table.create_checkpoint()
        for version in range(2):
            (self._log / f"{version:020}.json").unlink()

    def _make(self) -> None:
        place = self._stage.settings.storage.table(self._release)
        self._output = TableWriter(place, delta_schema(columns(SHAPE, "a test")), str(self._release))
        assert self._output.applied() == -1

    def _id(self) -> str:
        return str(DeltaTable(self._output.place.uri).metadata().id)

    @property
    def _log(self) -> Path:
        return Path(self._output.place.uri) / "_delta_log"


KINDS = {"a topic": OfTopic, "a topic and its raw table": Landed, "a table": OfTable}


def job_of(*cases: Case) -> StreamingJob:
    """The ids of all that it reads."""
    inputs = {name: case.input for name, case in zip(("things", "others"), cases, strict=False)}
    transform = _ids_of_both if len(cases) == 2 else _ids
    return StreamingJob(name=f"copy_{uuid4().hex[:8]}", inputs=inputs, transform=transform, output=_OUTPUT)


_OUTPUT = Table(name="copy", schema="id BIGINT")


def _ids(things: DataFrame) -> DataFrame:
    return things.select("id")


def _ids_of_both(things: DataFrame, others: DataFrame) -> DataFrame:
    return things.select("id").union(others.select("id"))


class Release:
    """Without a driver: its inputs, steps, query, batches and table are the real ones."""

    def __init__(self, stage: Stage, job: StreamingJob, cases: Sequence[Case], number: int = 1) -> None:
        self._stage, self._job, self.id = stage, job, ReleaseId(job.name, number)
        ids = {topic: known for case in cases for topic, known in case.ids.items()}
        create(stage.store, self.id, job, ids, "replaying")
        self.inputs = inputs_of(InputContext(stage.settings, stage.store, job, self.id))
        self.checkpoint = Checkpoint(stage.settings.storage.checkpoint(self.id).here)
        self.steps = PlannedBatches(self.checkpoint)
        self.outcomes: list[Batch] = []

    def step(self, target: Places, watermark_ms: int = 0) -> None:
        """One batch that ends there, recorded as a driver does."""
        if self.checkpoint.planned < 0:
            self._run(self._refused)
            self.steps.plan_first(target)
        else:
            self.steps.plan(target, watermark_ms)
        self.finish()

    def go_to(self, goal: Places) -> None:
        """In as many steps as it takes to be read from elsewhere first."""
        while (at := self.at) != goal:
            self.step({**self.inputs.ends_but(goal), **self.inputs.reachable(at, goal)})

    @property
    def at(self) -> Places:
        return self.steps.at() or self.inputs.origin

    def finish(self) -> None:
        """What is planned is run, after the proofs of a start."""
        with closing(duckdb.connect()) as duck:
            before, table = table_sinks(self._stage.settings, self._job, self.id, self.checkpoint.path, duck)
            table.prove(self.checkpoint)
            query: list[ReleaseQuery] = []
            batches = BatchRunner(
                job=self._job,
                release=str(self.id),
                positions=self.checkpoint,
                sinks=[*before, table],
                metrics=lambda: observed_by(query[0].query),
                begin=lambda _: None,
                may_write=lambda: None,
                recount=lambda position, last: self.inputs.behind(self._stage.spark, position, last),
                report=self.outcomes.append,
            )
            self._run(batches.run, query)
        record(self._stage.store, self.outcomes[-1].position, self.outcomes[-1].table_version)

    def crash_after_commit(self) -> None:
        """The batch's rows are in the table, and the checkpoint does not know."""
        done = self.checkpoint.done
        for name in (str(done), f".{done}.crc"):
            (self.checkpoint.path / "commits" / name).unlink(missing_ok=True)

    @property
    def output(self) -> TableWriter:
        """As its newest commit has left it."""
        return output_of(self._stage.settings, self._job, self.id)

    @property
    def rows(self) -> list[int]:
        return sorted(self.output.table.to_pyarrow_table()["id"].to_pylist())

    def _run(self, process: Any, keep: list[ReleaseQuery] | None = None) -> None:
        asked = Query(self.inputs.origin, self.at, step=True, over_gaps=False)
        rows = streamed(self._job, self.inputs.source(self._stage.spark, asked))
        query = ReleaseQuery(self._job, rows, self.checkpoint.path, process)
        if keep is not None:
            keep.append(query)
        query.start(empty_batches=False, once=True)
        query.watch(lambda: False)

    def _refused(self, *_: Any) -> None:
        raise StopRequested


def create(store: ControlStore, release: ReleaseId, job: StreamingJob, ids: dict[str, str], state: Any) -> None:
    told: dict[str, Any] = {"declared": declared(job), "output": {"table": release.job, "schema": "", "key": []}}
    common: dict[str, Any] = {"archive_sha256": "", "fingerprint": "", "by": "a test"}
    releases.create(store, release, manifest=told, topics=ids, state=state, **common)


def record(store: ControlStore, position: Position, version: int) -> None:
    release = ReleaseId.parse(position.release)
    lease = leases.acquire(store, leases.driver_lease(release), Owner.this_process(), 30)
    positions.record(store, lease, position, facts(position.batch), version)
    leases.release(store, lease)
