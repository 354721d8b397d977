"""A platform of one small job on the session's services, and a stand-in for its supervisor and driver."""

from __future__ import annotations

import itertools
import time
from collections.abc import Generator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import dagster as dg
import pytest

import platform_core.broker
from platform_core.control import aliases, drivers, leases, positions, releases, services, wanted
from platform_core.control.facts import BatchFacts
from platform_core.control.leases import Lease
from platform_core.control.owners import Owner
from platform_core.control.position import Position
from platform_core.control.store import ControlStore
from platform_core.declare import Stream, StreamingJob, Table, Topic
from platform_core.names import ReleaseId
from platform_core.orchestrate.platform import Platform
from tests.conftest import Broker, Database

_numbers = itertools.count(1)


@pytest.fixture
def platform(broker: Broker, postgres: Database) -> Generator[Platform]:
    """Its job and topic have names that no other test has."""
    name = f"told_{next(_numbers)}"
    topic = Topic(name=f"{name}.in", value="price BIGINT", partitions=1)
    job = StreamingJob(
        name=name,
        inputs={"trades": Stream(topic)},
        transform=lambda trades: trades,
        output=Table(name=name, schema="price BIGINT"),
    )
    made = Platform(broker.settings, {name: job}, {topic.name: topic}, {}, {})
    assert postgres.settings == broker.settings
    made.store.migrate()
    with made.store.transaction() as cursor:
        cursor.execute("delete from weir.services")
    yield made
    made.store.close()


@dataclass(frozen=True)
class Stage:
    """Plays the supervisor and the driver of the platform's job."""

    platform: Platform

    @property
    def store(self) -> ControlStore:
        return self.platform.store

    @property
    def job(self) -> StreamingJob:
        return next(iter(self.platform.jobs.values()))

    @property
    def topic(self) -> str:
        return self.job.topics[0].name

    @property
    def release(self) -> ReleaseId:
        return ReleaseId(self.job.name, 1)

    def supervise(self) -> None:
        services.beat(self.store, leases.SUPERVISOR, {})

    def freeze(self, topic_id: str) -> None:
        topics = {self.topic: topic_id}
        nothing: dict[str, Any] = {"archive_sha256": "0", "fingerprint": "0", "manifest": {}}
        releases.create(self.store, self.release, topics=topics, by="ann", state="live", **nothing)
        aliases.point(self.store, self.job.output.name, self.release, None, "ann")
        wanted.want(self.store, self.release, "run", "ann")

    @cached_property
    def lease(self) -> Lease:
        owner = Owner.this_process()
        lease = leases.acquire(self.store, leases.driver_lease(self.release), owner, 600)
        drivers.report(self.store, self.release, state="running", owner=owner)
        return lease

    def batch(self, number: int, start: int, end: int, **facts: int) -> None:
        """A batch that took the records from `start` up to `end`."""
        known: dict[str, Any] = {"used": end - start, **facts}
        told = BatchFacts(datetime.now(UTC), number, end - start, 1, batch_seconds=0.2, **known)
        position = Position(str(self.release), number, {self.topic: {0: end}}, {self.topic: {0: start}})
        positions.record(self.store, self.lease, position, told)

    def die(self) -> None:
        """The lease lapses, as when nobody renews it."""
        self.lease  # noqa: B018  takes it, if that has not been done
        lapsing = leases.renew(self.store, self.lease, 0.1)
        deadline = time.monotonic() + 10
        while (row := leases.current(self.store, lapsing.name)) and row.alive and time.monotonic() < deadline:
            time.sleep(0.05)


@pytest.fixture
def stage(platform: Platform, broker: Broker) -> Stage:
    """A live release wanted to run, on a topic with ten records, supervised."""
    made = Stage(platform)
    broker.create(made.topic)
    broker.produce(made.topic, *[(None, b'{"price": 1}')] * 10)
    made.freeze(platform_core.broker.Broker(broker.settings).topics([made.topic])[made.topic].id)
    made.supervise()
    return made


def tick(sensor: dg.SensorDefinition, cursor: str | None = None) -> tuple[list[Any], str]:
    """What a tick reports, and the cursor for the next."""
    with dg.DagsterInstance.ephemeral() as instance, dg.build_sensor_context(instance, cursor=cursor) as context:
        result: Any = sensor(context)
        return list(result.asset_events), str(result.cursor)
