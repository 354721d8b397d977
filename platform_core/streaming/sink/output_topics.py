"""Where a release's results go in Kafka: the live one's to the topics, a candidate's to its own, or nowhere."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Literal

import duckdb

from platform_core.broker import Broker
from platform_core.declare import StreamingJob, described
from platform_core.names import ReleaseId
from platform_core.settings import Settings
from platform_core.streaming.batch.value import Batch
from platform_core.streaming.checkpoint.files import Checkpoint
from platform_core.streaming.driver.lease_monitor import LeaseMonitor
from platform_core.streaming.sink.encoding import records
from platform_core.streaming.sink.protocol import Remains, Retiring
from platform_core.streaming.sink.publish import Mirror, TransactionalPublisher

Role = Literal["live", "aside", "silent"]


class OutputTopics:
    """One producer at a time. Without one, progress is mirrored in the release's group."""

    def __init__(
        self,
        settings: Settings,
        job: StreamingJob,
        release: ReleaseId,
        monitor: LeaseMonitor,
        checkpoint: Checkpoint,
        duck: duckdb.DuckDBPyConnection,
    ) -> None:
        self._settings, self._job, self._release, self._duck = settings, job, release, duck
        self._monitor, self._checkpoint = monitor, checkpoint
        self._role: Role | None = None
        self.publisher: TransactionalPublisher | None = None
        self._mirror: Mirror | None = None

    def to(self, role: Role) -> None:
        if role != self._role:
            self.close()
            self._open(role)
            self._role = role

    def committed(self) -> int:
        return -1 if self.publisher is None else self.publisher.committed

    def prove(self, checkpoint: Checkpoint) -> None:
        """The broker is asked with the first batch, once it is known to which topic."""

    def commit(self, batch: Batch) -> Batch:
        if self.publisher is None:
            if self._mirror is not None:
                self._mirror.show(batch.position.offsets)
            return batch
        found = records(self._job, batch.changes, self._duck)
        named = {self._named(plain, self._role): messages for plain, messages in found.items()}
        return replace(batch, published=self.publisher.publish(named, batch.number, batch.position.offsets))

    @classmethod
    def remains(cls, of: Retiring) -> Iterable[Remains]:
        """Its group, and its own topics: the plain names belong to the job."""
        broker, group = of.broker, of.release.group
        for plain in described.topics(described.publishes(of.declared)):
            topic = of.release.topic(plain)
            yield Remains(f"topic {topic}", partial(_exists, broker, topic), partial(broker.remove, [topic]))
        yield Remains(f"group {group}", lambda: group in broker.groups(), lambda: broker.forget(group))

    def close(self) -> None:
        for held in (self.publisher, self._mirror):
            if held is not None:
                held.close()
        self.publisher = self._mirror = self._role = None

    def _open(self, role: Role) -> None:
        if not self._job.publishes or role == "silent":
            self._mirror = Mirror(self._settings, self._release.group)
        elif role == "live":
            # the transactional id belongs to the job, not the release: whoever is live fences whoever was
            self.publisher = self._made(self._job.name, role)
        else:
            self.publisher = self._made(self._release.group, role)

    def _named(self, plain: str, role: Role | None) -> str:
        return self._release.topic(plain) if role == "aside" else plain

    def _made(self, identity: str, role: Role) -> TransactionalPublisher:
        self._monitor.write()  # a driver that woke up without its lease must not fence its successor
        marks = self._checkpoint.identity()
        epoch, group = self._monitor.lease.epoch, self._release.group
        topics = [self._named(publish.topic.name, role) for publish in self._job.publishes]
        return TransactionalPublisher(
            self._settings, topics, identity, group, marks, epoch, lambda: self._monitor.owns(role == "live")
        )


def _exists(broker: Broker, topic: str) -> bool:
    return bool(broker.topics([topic]))
