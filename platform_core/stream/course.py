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

from platform_core.control import cutovers, gaps, positions, releases
from platform_core.control.cutovers import Cutover, Move
from platform_core.control.gaps import Gap
from platform_core.control.position import offsets_of, same_place
from platform_core.control.store import ControlStore
from platform_core.errors import PositionError, UsageError
from platform_core.names import ReleaseId
from platform_core.settings import Settings
from platform_core.stream.catching_up import CatchingUp
from platform_core.stream.follow import Leg, arrived, leg
from platform_core.stream.guard import Guard
from platform_core.stream.handover import Change, Version
from platform_core.stream.publish import published_by
from platform_core.stream.query import ReleaseQuery
from platform_core.stream.workshop import Workshop
from platform_core.telemetry import event

logger = logging.getLogger(__name__)
_LOOK_BACK = 5_000  # of the live release's commits
_HANDOVER = "handover"
_AWAITED_SECONDS = 1.0  # between the steps of a follower that is to take over
_FOLLOWERS = ("following", "standby")


class Course:
    def __init__(
        self, settings: Settings, store: ControlStore, release: ReleaseId, guard: Guard, workshop: Workshop
    ) -> None:
        self._settings, self._store, self._release, self._guard = settings, store, release, guard
        self._workshop, self._steps = workshop, workshop.steps
        self._catching_up = CatchingUp(settings, store, release, guard, workshop)

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
        self._workshop.finish(over_gaps=True)
        if left := self._missing():
            at = self._steps.at()
            begins = {(gap.topic, gap.partition): gap.last + 1 for gap in left}
            target = {t: {p: begins.get((t, p), o) for p, o in parts.items()} for t, parts in offsets_of(at).items()}
            self._steps.plan({**at, **target}, self._workshop.checkpoint.next_watermark_ms())
            self._workshop.finish(over_gaps=True)

    def _missing(self) -> list[Gap]:
        return self._workshop.inputs.lost(self._steps.at())

    def _watched(self, query: ReleaseQuery) -> None:
        query.watch(self._leaves)
        self._workshop.withdraw()

    def _leaves(self) -> bool:
        """Whether the live release's query shall end; what waits at the gate then never begins."""
        if self._guard.role != "live":
            self._guard.recall()
        return self._guard.ending or self._guard.role != "live"

    def _replay(self) -> None:
        self._workshop.publish_as("aside")
        if self._catching_up.walk(lambda: self._guard.role == "replaying"):
            releases.set_state(self._store, self._release, "following", "its replay has reached the live release")
            self._guard.role = "following"

    def _follow(self) -> None:
        self._workshop.publish_as("silent" if self._guard.role == "standby" else "aside")
        stepped = float("-inf")
        while self._guard.role in _FOLLOWERS and not self._guard.ending:
            if (found := self._asked_to_take_over()) is not None:
                self._take_over(*found)
                self._guard.wait(0.1)
                return  # it may be the live one, or have been: what it publishes to is chosen anew
            pause = _AWAITED_SECONDS if self._is_awaited() else self._settings.moves.follow_seconds
            if time.monotonic() >= stepped + pause:
                self._after_live()
                stepped = time.monotonic()
            self._guard.wait(0.1)

    def _after_live(self) -> None:
        live = releases.live_of(self._store, self._release.job)
        if live is None:
            return
        self._catching_up.prove_kept()
        self._workshop.finish()
        goal = leg(self._steps.at(), positions.history(self._store, live, _LOOK_BACK))
        if goal is None:
            return
        if self._catching_up.far_from(goal.places):
            self._catching_up.walk(lambda: self._guard.role in _FOLLOWERS and self._guard.cutover is None)
        else:
            self._walk(goal)

    def _walk(self, goal: Leg) -> None:
        """The records, then, with the watermark that the live one has there, what time alone brings."""
        if arrived(self._steps.at(), self._steps.watermark_ms(), goal):
            return
        target = {**self._workshop.inputs.ends_but(goal.places), **goal.places}
        if self._steps.at() != target:
            self._workshop.step(target, goal.first_watermark_ms)
        behind = self._workshop.clocked and goal.watermark_ms > self._steps.watermark_ms()
        if behind and self._asked_to_take_over() is None:  # else it has to go further at once
            self._workshop.step(target, goal.watermark_ms)

    def _is_awaited(self) -> bool:
        """The live release of a cutover goes on until the new one is near; that of a rollback stands still at once."""
        found = self._guard.cutover
        if found is None or found.kind == "rollback" or not found.may_abort:
            return False
        return any(move.new == self._release and move.held is None for move in found.moves)

    def _asked_to_take_over(self) -> tuple[Cutover, Move] | None:
        found = self._guard.cutover
        move = found.move_of(self._release) if found else None
        if found is None or move is None or not found.may_abort or move.new != self._release or move.held is None:
            return None
        return found, move

    def _take_over(self, found: Cutover, move: Move) -> None:
        """1 the last step to where the live one stands is planned, 2 made by the own query, which has its next batch
        wait at the gate, 3 told; then as the store decides."""
        if not self._last_step_planned(move):
            return
        last, gate = self._workshop.checkpoint.planned, self._guard.gate
        gate.bar(_HANDOVER)
        gate.owe(last if self._steps.unfinished else -1)
        query = self._workshop.start()
        try:
            while self._is_short_of(last) and self._waits(found, move) and query.active:
                self._guard.wait(0.02)
            if self._waits(found, move) and not self._is_short_of(last):
                self._tell_aligned(found, move)
            while self._waits(found, move) and query.active:
                self._guard.wait(0.05)
            if self._guard.role == "live" and not self._guard.ending:
                self._workshop.publish_as("live")
                self._hand_over()
                gate.lift(_HANDOVER)
                self._watched(query)
        finally:
            self._guard.recall()
            query.watch(lambda: True)
            self._workshop.withdraw()
            gate.owe(-1)
            gate.lift(_HANDOVER)

    def _is_short_of(self, batch: int) -> bool:
        return self._guard.standing is None or self._guard.standing.batch < batch

    def _last_step_planned(self, move: Move) -> bool:
        """Whether one planned batch at most is left between here and where the live one stands still.

        Where time alone brings no rows, none is spent on the live one's clock: the next batch has it anyway.
        """
        self._catching_up.prove_kept()
        self._workshop.finish()
        history = positions.history(self._store, move.old, _LOOK_BACK)
        held = move.held
        known = [one for one in history if held is not None and one.position.batch <= held.batch]
        goal = leg(self._steps.at(), known)
        if held is None or goal is None or not same_place(goal.places, held.places):
            return False
        target = {**self._workshop.inputs.ends_but(goal.places), **goal.places}
        steps = [(target, goal.first_watermark_ms)] if self._steps.at() != target else []
        reached = max([self._steps.watermark_ms(), *(watermark for _, watermark in steps)])
        if self._workshop.emits_by_time and goal.watermark_ms > reached:
            steps.append((target, goal.watermark_ms))
        at_once = 0 if self._catching_up.needs_steps else 1
        for one in steps[: len(steps) - at_once]:
            self._workshop.step(*one)
        for one in steps[len(steps) - at_once :]:
            self._steps.plan(*one)
        return not self._guard.ending

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
