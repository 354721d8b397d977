"""Crashes as values: each raises at its place within one chosen batch, once."""

from __future__ import annotations

import pyarrow as pa

from platform_core.control.position import Offsets
from platform_core.stream.batches import Writer
from platform_core.stream.publish import Message
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


class CrashingOutput:
    """A table's writer that may die before and after its commit."""

    def __init__(self, output: Writer, crashes: Crashes) -> None:
        self._output, self._crashes = output, crashes

    @property
    def columns(self) -> list[str]:
        return self._output.columns

    def applied(self) -> int:
        return self._output.applied()

    def write(self, rows: pa.Table, batch: int, metadata: str) -> int:
        self._crashes.reach(Crash.AFTER_REJECTS)
        version = self._output.write(rows, batch, metadata)
        self._crashes.reach(Crash.AFTER_WRITE)
        return version


class MemoryPublisher:
    """The output topic: as the transactional one it knows its newest batch, and skips a repeated one."""

    def __init__(self, crashes: Crashes) -> None:
        self.records: list[Message] = []
        self.progress: Offsets = {}
        self._crashes, self._done = crashes, -1

    def publish(self, messages: list[Message], batch: int, end: Offsets) -> int:
        fresh = messages if batch > self._done else []
        if batch > self._done:  # one transaction: records, batch and progress
            self.records += fresh
            self._done, self.progress = batch, end
        self._crashes.reach(Crash.AFTER_PUBLISH)
        return len(fresh)

    def mirror(self, end: Offsets) -> None:
        self.progress = end
        self._crashes.reach(Crash.AFTER_PUBLISH)
