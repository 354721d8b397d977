"""When a live query's next batch begins: as late as the job's promise allows, so that there are as few as keep it.

A record that comes right after a batch was planned waits for the next batch to begin, and for that one's own time. So
the next begins `updates_every` after this one, less the time that a batch takes. Batches differ: to go by the slowest
of the last minutes made twice as many on a busy machine, which made it busier. A record in a hundred may be late.

Spark fixes a trigger's interval when the query starts, and aligns it to the epoch, which makes all drivers of a machine
begin at once. Here Spark's trigger asks a clock of ours instead, between two batches: nothing is planned meanwhile, so
that a stop and a cutover take effect at once.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from platform_core.declare import StreamingJob
from platform_core.declare.durations import duration

_SHARE = 0.005  # of the records may be readable later than promised: p99 is kept, with as much again to spare
_REMEMBERED = 200  # batches, by whose times the next ones are judged
_STEPS = 12  # of a bisection: a four-thousandth of what was promised
_FULL = 0.5  # of the largest batch: there is more to read, which nothing is gained by waiting for
_LOOKS = 0.005  # seconds, while Spark ends the query


class Pace:
    """Pure bookkeeping of seconds: what was promised, what batches take."""

    def __init__(self, promised: float, largest: int) -> None:
        """`largest` is how many records a batch can have."""
        self._promised, self._largest = promised, largest
        self._took: deque[float] = deque(maxlen=_REMEMBERED)
        self._behind = True

    @classmethod
    def of(cls, job: StreamingJob, largest: int) -> Pace:
        return cls(duration(job.updates_every, f"job {job.name!r}.updates_every").total_seconds(), largest)

    def committed(self, took: float, records: int) -> None:
        """From the batch's trigger to the moment at which its rows could be read."""
        self._took.append(took)
        self._behind = records >= _FULL * self._largest

    def period(self) -> float:
        """Seconds from one trigger to the next: as long as keeps the promise for all but a share of the records.

        Where none does, as batches alone take longer than was promised, what was promised is the period: batches at
        once after each other would take what is left of the machine, and be slower still.
        """
        if self._behind or not self._took:
            return 0.0
        if self._tardy(self._promised) <= _SHARE or self._tardy(0.0) > _SHARE:
            return self._promised
        kept, broken = 0.0, self._promised
        for _ in range(_STEPS):
            period = (kept + broken) / 2
            kept, broken = (period, broken) if self._tardy(period) <= _SHARE else (kept, period)
        return kept

    def _tardy(self, period: float) -> float:
        """The share of records that are readable too late at that period, if batches go on as they did: those that had
        to wait longer for the next trigger than the promise leaves beside their batch's own time."""
        if not period:
            return sum(took > self._promised for took in self._took) / len(self._took)
        spare = (min(max(self._promised - took, 0.0), period) for took in self._took)
        return 1.0 - sum(spare) / (period * len(self._took))


class TriggerClock:
    """The clock of one query's trigger: its time stands still, and a wait on it ends when the next batch is due."""

    class Java:
        implements = ("org.apache.spark.util.Clock",)

    def __init__(self, pace: Pace, active: Callable[[], bool], now: Callable[[], float] = time.monotonic) -> None:
        """`active`: whether Spark still runs the query; once it does not, it must not be let begin another batch."""
        self._pace, self._active, self._now = pace, active, now
        self._ending = threading.Event()
        self._triggered = now()

    def committed(self, records: int) -> None:
        """The batch of the newest trigger can be read."""
        self._pace.committed(self._now() - self._triggered, records)

    def end(self) -> None:
        """The query is being stopped: whoever waits returns once Spark knows."""
        self._ending.set()

    def getTimeMillis(self) -> int:
        return 0  # asked for no more than how late a trigger is; it is as late as we make it

    def nanoTime(self) -> int:
        return 0

    def waitTillTime(self, _: int) -> int:
        if self._ending.wait(max(self._triggered + self._pace.period() - self._now(), 0.0)):
            while self._active():
                time.sleep(_LOOKS)
        self._triggered = self._now()
        return 0


def keep_time(query: Any, clock: TriggerClock) -> None:
    """Has the trigger of a running query ask `clock` from its next wait on.

    Spark takes a clock of the caller's in its own tests alone; there is no public way.
    """
    running = query._jsq.streamingQuery()
    while (executor := running.triggerExecutor()) is None:  # its thread makes it before the first batch
        if not running.isActive():
            return
        time.sleep(_LOOKS)
    field = executor.getClass().getDeclaredField("clock")
    field.setAccessible(True)
    field.set(executor, clock)
