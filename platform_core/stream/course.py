"""What a driver does with its release: live, it runs by itself; else it steps to where the live one is.

    replaying            steps by record time from where it begins, until one step is left
    following, standby   every few seconds a step to the live release's newest commit
    live                 its own pace

A cutover is taken in between: a follower steps to where the live one stands still, starts its own query with the first
batch waiting at the gate, and goes on the moment that it is the live one.
"""

from __future__ import annotations

import logging
import time

from platform_core.broker import Broker
from platform_core.control import cutovers, gaps, positions, releases
from platform_core.control.cutovers import Cutover, Move
from platform_core.control.gaps import Gap
from platform_core.control.position import Offsets
from platform_core.control.store import ControlStore
from platform_core.errors import PositionError, UsageError
from platform_core.names import ReleaseId
from platform_core.settings import Settings
from platform_core.stream.fetch import KafkaStamps
from platform_core.stream.follow import Leg, arrived, leg
from platform_core.stream.guard import Guard
from platform_core.stream.handover import Change, Version
from platform_core.stream.landed import Landed, bounded
from platform_core.stream.publish import published_by
from platform_core.stream.query import ReleaseQuery
from platform_core.stream.replay import Walk, prove_kept
from platform_core.stream.source import event_topics
from platform_core.stream.workshop import Workshop
from platform_core.telemetry import event

logger = logging.getLogger(__name__)
_LOOK_BACK = 5_000  # of the live release's commits
_HANDOVER = "handover"


class Course:
    def __init__(
        self, settings: Settings, store: ControlStore, release: ReleaseId, guard: Guard, workshop: Workshop
    ) -> None:
        self._settings, self._store, self._release, self._guard = settings, store, release, guard
        self._workshop, self._steps = workshop, workshop.steps
        self._broker = Broker(settings)
        self._tables: dict[str, Landed] = {}  # from which the replay is reading

    def run(self) -> None:
        """Until the driver shall end."""
        while not self._guard.ending:
            match self._guard.role:
                case "live":
                    self._live()
                case "replaying":
                    self._replay()
                case "following" | "standby":
                    self._follow()
                case other:
                    raise UsageError(f"{self._release} is {other}.", remedy="`weir status` lists what can run.")

    def _live(self) -> None:
        self._workshop.publish_as("live")
        self._hand_over()
        self._over_gaps()
        self._watched(self._workshop.start())

    def _over_gaps(self) -> None:
        """Records that retention removed unread: recorded, and stepped over once somebody has said so.

        What is planned already is run first, and without them; then an empty step ends where the records begin.
        """
        if not (found := self._missing()):
            return
        if not gaps.record(self._store, self._release, found):
            raise PositionError(
                f"{self._release}: {gaps.told(found)}.",
                remedy=f"`weir start {self._release} --accept-gap` goes on without them; `weir reset` begins anew.",
            )
        event(logger, "goes on without lost records", release=self._release, lost=[str(gap) for gap in found])
        self._finish(over_gaps=True)
        if left := self._missing():
            at = self._steps.at()
            begins = {(gap.topic, gap.partition): gap.last + 1 for gap in left}
            target = {t: {p: begins.get((t, p), o) for p, o in parts.items()} for t, parts in at.items()}
            self._steps.plan(target, self._workshop.checkpoint.next_watermark_ms())
            self._finish(over_gaps=True)

    def _missing(self) -> list[Gap]:
        at = self._steps.at()
        return gaps.between(at, self._broker.starts(at))

    def _watched(self, query: ReleaseQuery) -> None:
        query.watch(self._leaves)
        self._workshop.withdraw()

    def _leaves(self) -> bool:
        """Whether the live release's query shall end; what waits at the gate then never begins."""
        if self._guard.role != "live":
            self._guard.recall()
        return self._guard.ending or self._guard.role != "live"

    def _replay(self) -> None:
        """1 what is left of history, and where, 2 the step's end, 3 the step, 4 a pause for the live one."""
        self._workshop.publish_as("aside")
        release = releases.get(self._store, self._release)
        begins = release.replay_from.offsets if release.replay_from else {}
        stamps = KafkaStamps(self._settings)
        try:
            self._walk_history(begins, Walk(self._since, stamps.of, self._settings.moves.replay_records))
        finally:
            stamps.close()

    def _walk_history(self, begins: Offsets, walk: Walk) -> None:
        while self._guard.role == "replaying" and not self._guard.ending:
            self._finish()
            at, whole = self._steps.at() or begins, self._bound()
            bound = self._within_tables(at, whole)
            # lookups are read ahead of the events: they are joined by time
            target = {**bound, **walk.target(self._events(at), self._events(bound))}
            began = time.monotonic()
            if self._steps.at() != target:
                self._step(target, self._workshop.checkpoint.next_watermark_ms())
            if target == whole:
                releases.set_state(self._store, self._release, "following", "its replay has reached the live release")
                self._guard.role = "following"
                return
            self._guard.wait((time.monotonic() - began) * (1 / self._settings.moves.replay_share - 1))

    def _within_tables(self, at: Offsets, whole: Offsets) -> Offsets:
        """How far the next steps can go: what the broker has no more is read to the end of its raw table first."""
        tables = self._workshop.history.tables(at)
        prove_kept({t: parts for t, parts in at.items() if t not in tables}, self._broker.starts(whole))
        if tables.keys() != self._tables.keys():
            told = {topic: table.release for topic, table in tables.items()}
            event(logger, "history comes from raw tables" if tables else "history comes from the broker", tables=told)
        self._tables = tables
        return bounded(at, whole, tables)

    def _follow(self) -> None:
        self._workshop.publish_as("silent" if self._guard.role == "standby" else "aside")
        next_step = 0.0
        while self._guard.role in ("following", "standby") and not self._guard.ending:
            if (found := self._asked_to_take_over()) is not None:
                self._take_over(*found)
                self._guard.wait(0.1)
                return  # it may be the live one, or have been: what it publishes to is chosen anew
            if time.monotonic() >= next_step:
                self._after_live()
                next_step = time.monotonic() + self._settings.moves.follow_seconds
            self._guard.wait(0.1)

    def _after_live(self) -> None:
        live = self._live_release()
        if live is None:
            return
        prove_kept(self._steps.at(), self._broker.starts(self._steps.at()))
        self._finish()
        goal = leg(self._steps.at(), positions.history(self._store, live, _LOOK_BACK))
        if goal is not None:
            self._walk(goal)

    def _walk(self, goal: Leg) -> None:
        """The records, then, with the watermark that the live one has there, what time alone brings."""
        if arrived(self._steps.at(), self._steps.watermark_ms(), goal):
            return
        target = {**self._unknown_to(goal.offsets), **goal.offsets}
        if self._steps.at() != target:
            self._step(target, goal.first_watermark_ms)
        if self._workshop.clocked and goal.watermark_ms > self._steps.watermark_ms():
            self._step(target, goal.watermark_ms)

    def _unknown_to(self, offsets: Offsets) -> Offsets:
        """Topics that this release reads and the live one does not: as far as they go."""
        mine = self._workshop.job.topics
        return self._broker.ends({t.name: range(t.partitions) for t in mine if t.name not in offsets})

    def _step(self, target: Offsets, watermark_ms: int) -> None:
        if self._workshop.checkpoint.planned < 0:
            self._workshop.plan_first(target)
        else:
            self._steps.plan(target, watermark_ms)
        self._finish()

    def _finish(self, over_gaps: bool = False) -> None:
        """Runs what is planned, to its end."""
        if not self._steps.unfinished or self._guard.ending:
            return
        query = self._workshop.start(over_gaps, once=True)
        query.watch(lambda: self._guard.ending)

    def _asked_to_take_over(self) -> tuple[Cutover, Move] | None:
        found = self._guard.cutover
        move = found.move_of(self._release) if found else None
        if found is None or move is None or not found.may_abort or move.new != self._release or move.held is None:
            return None
        return found, move

    def _take_over(self, found: Cutover, move: Move) -> None:
        """1 to where the live one stands, 2 the own query up to the gate, 3 told; then as the store decides."""
        if move.held is None or not self._align(move):
            return
        self._guard.gate.bar(_HANDOVER)
        query = self._workshop.start()
        try:
            self._tell_aligned(found, move)
            while self._waits(found, move) and query.active:
                self._guard.wait(0.05)
            if self._guard.role == "live" and not self._guard.ending:
                self._workshop.publish_as("live")
                self._hand_over()
                self._guard.gate.lift(_HANDOVER)
                self._watched(query)
        finally:
            self._guard.recall()
            query.watch(lambda: True)
            self._workshop.withdraw()
            self._guard.gate.lift(_HANDOVER)

    def _align(self, move: Move) -> bool:
        self._finish()
        history = positions.history(self._store, move.old, _LOOK_BACK)
        held = move.held
        known = [one for one in history if held is not None and one.position.batch <= held.batch]
        goal = leg(self._steps.at(), known)
        if held is None or goal is None:
            return False
        self._walk(goal)
        return not self._guard.ending and arrived(self._steps.at(), 0, Leg(held.offsets, 0, 0))

    def _tell_aligned(self, found: Cutover, move: Move) -> None:
        """The version is that of the batch that brought it there, which the store knows by now."""
        stands = positions.latest(self._store, self._release)
        if stands is None or stands[1] is None:
            raise PositionError(f"{self._release} has recorded no commit.", remedy="Look at the driver's log.")
        try:
            cutovers.tell_aligned(self._store, self._guard.lease, found.id, stands[0], stands[1])
        except PositionError as error:  # the old one stands elsewhere by now: seen below, and stepped to
            event(logger, "not aligned any more", release=self._release, error=error)
            return
        event(logger, "aligned", release=self._release, cutover=found.id, batch=stands[0].batch, table=move.table)

    def _waits(self, found: Cutover, move: Move) -> bool:
        """Until it has flipped, was given up, or the old release stands elsewhere."""
        now = self._guard.cutover
        if self._guard.ending or self._guard.role == "live" or now is None or now.id != found.id:
            return False
        mine = now.move_of(self._release)
        return now.may_abort and mine is not None and mine.held == move.held

    def _hand_over(self) -> None:
        """A new live release's first act: its topic gets what differs at O; then the cutover learns that it goes on."""
        found = cutovers.of_release(self._store, self._release)
        move = found.move_of(self._release) if found else None
        if found is None or move is None or found.phase != "flipped" or move.new != self._release or move.swapped:
            return
        if (change := self._change(move)) is not None and move.aligned is not None:
            self._workshop.hand_over(found.id, move.aligned, change)
        cutovers.tell_swapped(self._store, self._guard.lease, found.id)
        event(logger, "goes on as the live release", release=self._release, cutover=found.id)

    def _change(self, move: Move) -> Change | None:
        if move.held is None or move.aligned_version is None:
            return None
        old = self._version_at(move.old, move.held.batch)
        marker = published_by(self._settings, move.old.group, move.held.offsets)
        published = self._version_at(move.old, min(marker.batch, move.held.batch)) if marker else old
        new = Version(self._settings.table_uri(self._release), move.aligned_version)
        return None if old is None else Change(published or old, old, new)

    def _version_at(self, release: ReleaseId, batch: int) -> Version | None:
        found = positions.history(self._store, release, _LOOK_BACK)
        known = (one.table_version for one in found if one.position.batch <= batch)
        version = next((one for one in known if one is not None), None)
        return None if version is None else Version(self._settings.table_uri(release), version)

    def _live_release(self) -> ReleaseId | None:
        return next((one.id for one in releases.of_job(self._store, self._release.job) if one.state == "live"), None)

    def _bound(self) -> Offsets:
        """Where a replay may read to: where the live one is; its own topics' ends where there is none."""
        live = self._live_release()
        stands = positions.latest(self._store, live) if live else None
        known = stands[0].offsets if stands else {}
        mine = {topic.name for topic in self._workshop.job.topics}
        return {**self._unknown_to(known), **{t: parts for t, parts in known.items() if t in mine}}

    def _since(self, at_ms: int) -> Offsets:
        topics = {t.name: range(t.partitions) for t in event_topics(self._workshop.job) if t.name not in self._tables}
        return {**self._broker.since(topics, at_ms), **{t: one.since(at_ms) for t, one in self._tables.items()}}

    def _events(self, offsets: Offsets) -> Offsets:
        names = {topic.name for topic in event_topics(self._workshop.job)}
        return {topic: parts for topic, parts in offsets.items() if topic in names}
