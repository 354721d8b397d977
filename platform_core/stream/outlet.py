"""Where a release's results go in Kafka: the live one's to the topic, a candidate's to its own, a standby's nowhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from platform_core.control.position import Offsets
from platform_core.declare import StreamingJob
from platform_core.names import ReleaseId
from platform_core.settings import Settings
from platform_core.stream.checkpoint import Checkpoint
from platform_core.stream.guard import Guard
from platform_core.stream.publish import Mirror, TransactionalPublisher

Role = Literal["live", "aside", "silent"]
Mirrored = Callable[[Offsets], None]


class Outlet:
    """One producer at a time. Without one, progress is mirrored in the release's group."""

    def __init__(
        self, settings: Settings, job: StreamingJob, release: ReleaseId, guard: Guard, checkpoint: Checkpoint
    ) -> None:
        self._settings, self._job, self._release = settings, job, release
        self._guard, self._checkpoint = guard, checkpoint
        self._role: Role | None = None
        self._publisher: TransactionalPublisher | None = None
        self._mirror: Mirror | None = None

    def to(self, role: Role) -> tuple[TransactionalPublisher | None, Mirrored]:
        if role != self._role:
            self.close()
            self._open(role)
            self._role = role
        return self._publisher, self._mirror.show if self._mirror else _unseen

    def close(self) -> None:
        for held in (self._publisher, self._mirror):
            if held is not None:
                held.close()
        self._publisher = self._mirror = self._role = None

    def _open(self, role: Role) -> None:
        if self._job.publish is None or role == "silent":
            self._mirror = Mirror(self._settings, self._release.group)
            return
        plain = self._job.publish.topic.name
        if role == "live":
            # the transactional id belongs to the job, not the release: whoever is live fences whoever was
            self._publisher = self._made(plain, self._job.name, live=True)
        else:
            self._publisher = self._made(self._release.topic(plain), self._release.group, live=False)

    def _made(self, topic: str, identity: str, live: bool) -> TransactionalPublisher:
        self._guard.write()  # a driver that woke up without its lease must not fence its successor
        marks = self._checkpoint.identity()
        epoch, group = self._guard.lease.epoch, self._release.group
        return TransactionalPublisher(
            self._settings, topic, identity, group, marks, epoch, lambda: self._guard.owns(live)
        )


def _unseen(_: Offsets) -> None:
    """A publisher's transaction carries the group's offsets itself."""
