"""Where a release's results go in Kafka: the live one's to the topic, a candidate's to its own, a standby's nowhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Literal

import duckdb
import pyarrow as pa

from platform_core.declare import StreamingJob
from platform_core.names import ReleaseId
from platform_core.settings import Settings
from platform_core.streaming.batch.value import Batch
from platform_core.streaming.checkpoint.files import Checkpoint
from platform_core.streaming.driver.lease_monitor import LeaseMonitor
from platform_core.streaming.sink.protocol import Remains, Retiring
from platform_core.streaming.sink.publish import Message, Mirror, TransactionalPublisher, encoded, is_keyed
from platform_core.tables.changes import deleted, upserted

Role = Literal["live", "aside", "silent"]


class OutputTopic:
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
        found = messages(self._job, batch.changes, self._duck)
        return replace(batch, published=self.publisher.publish(found, batch.number, batch.position.offsets))

    @classmethod
    def remains(cls, of: Retiring) -> Iterable[Remains]:
        """Its group, and its own topic: the plain name belongs to the job."""
        publish: Mapping[str, Any] | None = of.declared.get("publish")
        broker, group = of.broker, of.release.group
        if publish is not None:
            topic = of.release.topic(publish["topic"]["name"])
            yield Remains(f"topic {topic}", lambda: bool(broker.topics([topic])), lambda: broker.remove([topic]))
        yield Remains(f"group {group}", lambda: group in broker.groups(), lambda: broker.forget(group))

    def close(self) -> None:
        for held in (self.publisher, self._mirror):
            if held is not None:
                held.close()
        self.publisher = self._mirror = self._role = None

    def _open(self, role: Role) -> None:
        if self._job.publish is None or role == "silent":
            self._mirror = Mirror(self._settings, self._release.group)
            return
        plain = self._job.publish.topic.name
        if role == "live":
            # the transactional id belongs to the job, not the release: whoever is live fences whoever was
            self.publisher = self._made(plain, self._job.name, live=True)
        else:
            self.publisher = self._made(self._release.topic(plain), self._release.group, live=False)

    def _made(self, topic: str, identity: str, live: bool) -> TransactionalPublisher:
        self._monitor.write()  # a driver that woke up without its lease must not fence its successor
        marks = self._checkpoint.identity()
        epoch, group = self._monitor.lease.epoch, self._release.group
        return TransactionalPublisher(
            self._settings, topic, identity, group, marks, epoch, lambda: self._monitor.owns(live)
        )


def messages(job: StreamingJob, changes: pa.Table, duck: duckdb.DuckDBPyConnection) -> list[Message]:
    """The records of a batch's rows. A row that is deleted is a tombstone where its record replaces the one before of
    the same key; a topic of events has no word for it."""
    if job.publish is None:
        return []
    found, gone = encoded(upserted(changes), job.publish, duck), deleted(changes)
    if not gone.num_rows or not is_keyed(job):
        return found
    return found + [(key, None) for key, _ in encoded(gone, job.publish, duck)]
