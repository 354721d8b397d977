"""One batch of a release, from its rows to its commits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Protocol

from platform_core.control.position import Position
from platform_core.declare import StreamingJob
from platform_core.streaming.batch.author_errors import placed
from platform_core.streaming.batch.metrics import Dropped, measured
from platform_core.streaming.batch.value import Batch
from platform_core.streaming.sink.lookups import split
from platform_core.streaming.sink.protocol import Sink
from platform_core.streaming.sink.rejects import Limit
from platform_core.streaming.source.parsing import job_delay

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Positions(Protocol):
    """Where a batch ends and what was fixed before it ran."""

    def position(self, release: str, batch: int, newest_ms: int = 0) -> Position: ...

    def late_before_ms(self, batch: int) -> int: ...

    def planned_at_ms(self, batch: int) -> int: ...


@dataclass(kw_only=True)
class BatchRunner:
    """Called with each batch of the query; `begin` and `may_write` raise when none may begin, or be written."""

    job: StreamingJob
    release: str
    positions: Positions
    sinks: Sequence[Sink]
    metrics: Callable[[], dict[str, dict[str, Any]]]
    begin: Callable[[int], None]
    may_write: Callable[[], None]
    recount: Callable[[Position, int], int]
    dropped: Callable[[], Dropped] = Dropped
    report: Callable[[Batch], None]
    clock_ms: int = 0
    limit: Limit = field(init=False)

    def __post_init__(self) -> None:
        self.limit = Limit(self.job.reject_limit)

    def run(self, frame: DataFrame, number: int) -> None:
        """1 begin, 2 compute, 3 refuse, 4 commit to each sink, 5 tell."""
        self.begin(number)
        batch = self._computed(frame, number)
        self.limit.check(self.release, batch.measures.records, batch.measures.rejects)
        self.may_write()  # the computation may have outlived the lease
        for sink in self.sinks:
            batch = sink.commit(batch)
        self.report(replace(batch, late=self._late(batch)))

    def _computed(self, frame: DataFrame, number: int) -> Batch:
        with placed(lambda: self.positions.position(self.release, number)):
            rows = frame.toArrow()  # also when the batch is a repeat: it lets the state stores commit
        measures = measured(self.job, self.metrics())
        self.clock_ms = max(self.clock_ms, measures.newest_ms)
        rows, lookups = split(rows, self.job.lookups)
        return Batch(
            position=self.positions.position(self.release, number, self.clock_ms),
            planned_at_ms=self.positions.planned_at_ms(number),
            late_before_ms=self.positions.late_before_ms(number),
            measures=measures,
            changes=rows,
            lookups=lookups,
        )

    def _late(self, batch: Batch) -> int:
        """Late by their own timestamps, and behind the watermark that applied to this batch."""
        delay = job_delay(self.job)
        if delay is None:
            return batch.measures.late
        behind = batch.dropped(
            delay // timedelta(milliseconds=1), self.dropped, lambda last: self.recount(batch.position, last)
        )
        return batch.measures.late + behind
