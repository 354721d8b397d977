"""What a driver tells the control store: each batch's position and facts, and how far the topics are ahead."""

from __future__ import annotations

import datetime as dt
import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from platform_core.control import positions
from platform_core.control.facts import METRICS, BatchFacts
from platform_core.control.leases import Lease
from platform_core.control.position import Places, Position
from platform_core.control.store import ControlStore
from platform_core.errors import Retryable
from platform_core.streaming.batch.value import Batch
from platform_core.streaming.source.kind import Left
from platform_core.streaming.source.release import ReleaseInputs
from platform_core.telemetry import event

logger = logging.getLogger(__name__)
_AT_REST = 5  # times less often while no batch has moved
_KEPT = 10_000  # outcomes, while the store is away


class Ends:
    """The ends of the inputs, asked for in the background: a batch never waits for them."""

    def __init__(self, inputs: ReleaseInputs, every: float = 1.0) -> None:
        self._inputs, self._every = inputs, every
        self._known: Places = {}
        self._asked: Places = {}
        self._ended = threading.Event()
        threading.Thread(target=self._keep, name="ends", daemon=True).start()

    def lag(self, at: Places) -> Left:
        self._asked = at
        return self._inputs.lag(at, self._known)

    def close(self) -> None:
        self._ended.set()

    def _keep(self) -> None:
        told: Places = {}
        while not self._ended.wait(timeout=self._every if self._asked is not told else _AT_REST * self._every):
            told = self._asked
            try:
                self._known = self._inputs.ends(told)
            except Retryable as error:
                event(logger, "ends of inputs unknown", level=logging.WARNING, error=error)


@dataclass(frozen=True)
class Done:
    """A batch that is committed, as the catalogue of metrics looks at it."""

    batch: Batch
    seconds: float
    lag: Left

    @property
    def freshness(self) -> float | None:
        newest = self.batch.measures.newest_record_ms
        return self.batch.readable_at - newest / 1000 if newest else None


class Reports:
    """Records every batch in order. While the store is away they are kept, and told when it is back."""

    def __init__(self, store: ControlStore, lease: Callable[[], Lease], ends: Ends) -> None:
        self._store, self._lease, self._ends = store, lease, ends
        self._kept: deque[tuple[Position, BatchFacts, int]] = deque(maxlen=_KEPT)
        self._last_commit = 0.0

    def tell(self, batch: Batch) -> None:
        facts = self._facts(batch)
        self._kept.append((batch.position, facts, batch.table_version))
        self._send()  # first: one that was superseded while it was frozen has nothing to say any more
        event(
            logger,
            "batch committed",
            release=batch.position.release,
            batch=batch.number,
            records=facts.records_in,
            rows=facts.rows_out,
            rejected=facts.rejected,
            late=facts.late,
            seconds=round(facts.batch_seconds, 3),
            version=batch.table_version,
            repeated=batch.repeated,
        )

    def _send(self) -> None:
        while self._kept:
            position, facts, version = self._kept[0]
            try:
                positions.record(self._store, self._lease(), position, facts, version)
            except Retryable as error:
                event(logger, "position kept until the control store is back", level=logging.WARNING, error=error)
                return
            self._kept.popleft()

    def _facts(self, batch: Batch) -> BatchFacts:
        now = time.time()
        seconds = max(now - max(batch.planned_at_ms / 1000, self._last_commit), 1e-3)
        self._last_commit = now
        done = Done(batch, seconds, self._ends.lag(batch.position.places))
        return BatchFacts(
            at=dt.datetime.fromtimestamp(batch.readable_at, dt.UTC),
            batch=batch.number,
            **{name: metric.of(done) for name, metric in METRICS.items()},
        )
