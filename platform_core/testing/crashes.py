"""Crashes as values: each raises at its place within one chosen batch, once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import duckdb

from platform_core.control.position import Offsets
from platform_core.declare import StreamingJob
from platform_core.streaming.batch.value import Batch
from platform_core.streaming.checkpoint.files import Checkpoint
from platform_core.streaming.sink.encoding import Message, records
from platform_core.streaming.sink.protocol import Remains, Retiring
from platform_core.testing.script import Crash


class Crashed(Exception):
    """Ends the batch where a killed process would have ended."""


class Crashes:
    """Armed for one batch of the script; told which one is at hand; disarmed by its crash."""

    def __init__(self) -> None:
        self._armed: tuple[Crash, int] | None = None
        self._now: int | None = None

    def arm(self, crash: Crash, number: int) -> None:
        self._armed = (crash, number)

    def enter(self, number: int | None) -> None:
        self._now = number

    def reach(self, place: Crash) -> None:
        if self._armed is not None and self._armed == (place, self._now):
            self._armed = None
            raise Crashed(place.value)


class CrashPoint:
    """Stands among the sinks, and keeps nothing."""

    def __init__(self, place: Crash, crashes: Crashes) -> None:
        self._place, self._crashes = place, crashes

    def committed(self) -> int:
        return -1

    def prove(self, checkpoint: Checkpoint) -> None:
        """Nothing of it is kept."""

    def commit(self, batch: Batch) -> Batch:
        self._crashes.reach(self._place)
        return batch

    @classmethod
    def remains(cls, of: Retiring) -> Iterable[Remains]:  # noqa: ARG003
        return ()


class MemoryTopics:
    """The output topics: as the transactional producer they know their newest batch, and skip a repeated one."""

    def __init__(self, job: StreamingJob) -> None:
        self.sent: dict[int, dict[str, list[Message]]] = {}  # by batch and topic
        self.progress: Offsets = {}
        self._job, self._done = job, -1

    def committed(self) -> int:
        return self._done

    def prove(self, checkpoint: Checkpoint) -> None:
        """They are as old as the checkpoint."""

    def commit(self, batch: Batch) -> Batch:
        if self._done >= batch.number:
            return batch
        with duckdb.connect(config={"threads": "1"}) as duck:
            found = records(self._job, batch.changes, duck)
        self.sent[batch.number] = found  # one transaction: records, batch and progress
        self._done, self.progress = batch.number, batch.position.offsets
        return replace(batch, published=sum(map(len, found.values())))

    @classmethod
    def remains(cls, of: Retiring) -> Iterable[Remains]:  # noqa: ARG003
        return ()
