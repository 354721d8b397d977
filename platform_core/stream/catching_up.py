"""From far behind to where the live release is, in steps by record time: a replay, and a follower that slept for long.

What the broker has no more is read from raw tables, to their end; the steps after that are the broker's again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from platform_core.broker import Broker
from platform_core.control import positions, releases
from platform_core.control.position import Offsets, records_between
from platform_core.control.store import ControlStore
from platform_core.names import ReleaseId
from platform_core.settings import Settings
from platform_core.stream.courtesy import standing_back
from platform_core.stream.fetch import KafkaStamps
from platform_core.stream.guard import Guard
from platform_core.stream.landed import Landed, bounded
from platform_core.stream.replay import Walk, prove_kept
from platform_core.stream.source import event_topics
from platform_core.stream.workshop import Workshop
from platform_core.telemetry import event

logger = logging.getLogger(__name__)


class CatchingUp:
    def __init__(
        self, settings: Settings, store: ControlStore, release: ReleaseId, guard: Guard, workshop: Workshop
    ) -> None:
        self._settings, self._store, self._release, self._guard = settings, store, release, guard
        self._workshop, self._steps, self._moves = workshop, workshop.steps, settings.moves
        self._broker = Broker(settings)
        self._tables: dict[str, Landed] = {}  # from which the steps are reading

    def prove_kept(self) -> None:
        """Raises when records that it still needs are gone for good."""
        at = self._steps.at()
        self._within_tables(at, at)

    @property
    def needs_steps(self) -> bool:
        """Whether the next records come from elsewhere than the release's own query reads: from tables, or at all."""
        return bool(self._tables) or self._workshop.checkpoint.planned < 0

    def far_from(self, goal: Offsets) -> bool:
        """Whether it is too far to go there in one step, or the broker has no more what lies between."""
        at = self._steps.at()
        shared = {topic: parts for topic, parts in goal.items() if topic in at}
        return self.needs_steps or records_between(at, shared) > self._moves.replay_records

    def walk(self, while_true: Callable[[], bool]) -> bool:
        """Whether the live release was reached."""
        stamps = KafkaStamps(self._settings)
        try:
            with standing_back():
                return self._walk(Walk(self._since, stamps.of, self._moves.replay_records), while_true)
        finally:
            stamps.close()

    def _walk(self, walk: Walk, while_true: Callable[[], bool]) -> bool:
        """1 what is left of history, and where, 2 the step's end, 3 the step, 4 a pause for the live one."""
        release = releases.get(self._store, self._release)
        begins = release.replay_from.offsets if release.replay_from else {}
        while while_true() and not self._guard.ending:
            self._workshop.finish()
            at, whole = self._steps.at() or begins, self._bound()
            bound = self._within_tables(at, whole)
            # lookups are read ahead of the events: they are joined by time
            target = {**bound, **walk.target(self._events(at), self._events(bound))}
            began = time.monotonic()
            if self._steps.at() != target:
                self._workshop.step(target, self._workshop.checkpoint.next_watermark_ms())
            if target == whole:
                return True
            self._guard.wait((time.monotonic() - began) * (1 / self._moves.replay_share - 1))
        return False

    def unknown_to(self, offsets: Offsets) -> Offsets:
        """Topics that this release reads and the live one does not: as far as they go."""
        mine = self._workshop.job.topics
        return self._broker.ends({t.name: range(t.partitions) for t in mine if t.name not in offsets})

    def _within_tables(self, at: Offsets, whole: Offsets) -> Offsets:
        """How far the next steps can go: what the broker has no more is read to the end of its raw table first."""
        tables = self._workshop.history.tables(at)
        prove_kept({t: parts for t, parts in at.items() if t not in tables}, self._broker.starts(whole))
        if tables.keys() != self._tables.keys():
            told = {topic: table.release for topic, table in tables.items()}
            event(logger, "history comes from raw tables" if tables else "history comes from the broker", tables=told)
        self._tables = tables
        return bounded(at, whole, tables)

    def _bound(self) -> Offsets:
        """Where it may read to: where the live one is; its own topics' ends where there is none."""
        live = releases.live_of(self._store, self._release.job)
        stands = positions.latest(self._store, live) if live else None
        known = stands[0].offsets if stands else {}
        mine = {topic.name for topic in self._workshop.job.topics}
        return {**self.unknown_to(known), **{t: parts for t, parts in known.items() if t in mine}}

    def _since(self, at_ms: int) -> Offsets:
        topics = {t.name: range(t.partitions) for t in event_topics(self._workshop.job) if t.name not in self._tables}
        return {**self._broker.since(topics, at_ms), **{t: one.since(at_ms) for t, one in self._tables.items()}}

    def _events(self, offsets: Offsets) -> Offsets:
        names = {topic.name for topic in event_topics(self._workshop.job)}
        return {topic: parts for topic, parts in offsets.items() if topic in names}
