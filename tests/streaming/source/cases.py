"""Inputs of every kind with the same rows, and a release that reads them: what the contract is held to."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from uuid import uuid4

import pyarrow as pa
from confluent_kafka import TopicPartition
from deltalake import DeltaTable

from platform_core.control import leases, positions, releases
from platform_core.control.owners import Owner
from platform_core.control.position import Position
from platform_core.control.store import ControlStore
from platform_core.declare import Raw, Stream, StreamingJob, Topic, as_landed, raw_table
from platform_core.declare.inputs import Input
from platform_core.declare.schemas import columns
from platform_core.names import PART, ReleaseId
from platform_core.release.declared import declared
from platform_core.release.topics import ids
from platform_core.services.process import until
from platform_core.settings import Settings
from platform_core.streaming.sink.table import output_of
from platform_core.tables.delta import TableWriter
from platform_core.tables.schema import delta_schema
from tests.conftest import Broker
from tests.control.words import created, facts
from tests.streaming.source.appended import Appended

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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


def create(store: ControlStore, release: ReleaseId, job: StreamingJob, ids: dict[str, str], state: Any) -> None:
    told: dict[str, Any] = {"declared": declared(job), "output": {"table": release.job, "schema": "", "key": []}}
    created(store, release, state, told, ids)


def record(store: ControlStore, position: Position, version: int) -> None:
    release = ReleaseId.parse(position.release)
    lease = leases.acquire(store, leases.driver_lease(release), Owner.this_process(), 30)
    positions.record(store, lease, position, facts(position.batch), version)
    leases.release(store, lease)
