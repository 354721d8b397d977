"""The half of a NEW release's driver: it steps to where the old one has paused, and goes on once it is the live one.

Between steps 3 and 5 its own query runs, and the next batch waits at the gate: it begins the moment that readers see
the release, or never.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from platform_core.control import positions, releases
from platform_core.control.position import Places, same_place
from platform_core.cutover import protocol
from platform_core.cutover.handover import TableAtVersion, TopicHandover, lacking
from platform_core.cutover.model import Cutover, Move
from platform_core.declare import described
from platform_core.errors import PositionError
from platform_core.names import ReleaseId
from platform_core.streaming.driver.query import ReleaseQuery
from platform_core.streaming.driver.runtime import ReleaseRuntime
from platform_core.streaming.replay.catch_up import CatchUp
from platform_core.streaming.replay.follow import CatchUpTarget, next_target
from platform_core.streaming.sink.publish import published_by
from platform_core.telemetry import event

logger = logging.getLogger(__name__)
_LOOK_BACK = 5_000  # of the live release's commits
_TAKEOVER = "takeover"


class Takeover:
    def __init__(self, runtime: ReleaseRuntime, catch_up: CatchUp) -> None:
        self._runtime, self._catch_up = runtime, catch_up

    @property
    def is_awaited(self) -> bool:
        """Whether the live release pauses once this one is near; that of a rollback has paused at once."""
        found = self._runtime.monitor.cutover
        if found is None or found.kind == "rollback" or not found.may_abort:
            return False
        return any(move.new == self._runtime.release and move.paused_at is None for move in found.moves)

    @property
    def asked(self) -> tuple[Cutover, Move] | None:
        """The cutover in which the old release has paused, and this one is to take over."""
        found = self._runtime.monitor.cutover
        move = found.move_of(self._runtime.release) if found else None
        if (
            found is None
            or move is None
            or not found.may_abort
            or move.new != self._runtime.release
            or move.paused_at is None
        ):
            return None
        return found, move

    def take_over(self, found: Cutover, move: Move, go_on: Callable[[ReleaseQuery], None]) -> None:
        """Steps 3 to 5; `go_on` watches the query of a release that has become the live one."""
        if not self._plan_last_step(move):
            return
        last, gate = self._runtime.checkpoint.planned, self._runtime.monitor.gate
        gate.block(_TAKEOVER)
        gate.must_finish(last if self._runtime.steps.unfinished else -1)
        query = self._runtime.start()
        try:
            self._align(query, last, found, move)  # step 3
            while self._waits(found, move) and query.active:  # step 4 is the supervisor's
                self._runtime.monitor.wait(0.05)
            if self._runtime.monitor.role == "live" and not self._runtime.monitor.ending:
                self._runtime.publish_as("live")
                self.hand_over()  # step 5
                gate.unblock(_TAKEOVER)
                go_on(query)
        finally:
            self._runtime.monitor.recall()
            query.watch(lambda: True)
            self._runtime.withdraw()
            gate.must_finish(-1)
            gate.unblock(_TAKEOVER)

    def hand_over(self) -> None:
        """A new live release's first act: its topic gets what differs at O; then the cutover learns that it goes on."""
        found = protocol.of_release(self._runtime.store, self._runtime.release)
        move = found.move_of(self._runtime.release) if found else None
        if (
            found is None
            or move is None
            or found.phase != "flipped"
            or move.new != self._runtime.release
            or move.swapped
        ):
            return
        job = self._runtime.job
        if job.publishes and move.aligned is not None and (change := self._change(move)) is not None:
            self._runtime.hand_over(lacking(job, change), found.id, move.aligned)
        protocol.tell_swapped(self._runtime.store, self._runtime.monitor.lease, found.id)
        event(logger, "goes on as the live release", release=self._runtime.release, cutover=found.id)

    def _plan_last_step(self, move: Move) -> bool:
        """Whether one planned batch at most is left between here and where the old release has paused.

        Where time alone brings no rows, none is spent on the live one's watermark: the next batch has it anyway.
        """
        self._catch_up.prove_kept()
        self._runtime.finish()
        goal = self._way_to(move)
        if goal is None:
            return False
        steps = self._steps_to(goal)
        at_once = 0 if self._catch_up.needs_steps else 1
        for one in steps[: len(steps) - at_once]:
            self._runtime.step(*one)
        for one in steps[len(steps) - at_once :]:
            self._runtime.steps.plan(*one)
        return not self._runtime.monitor.ending

    def _way_to(self, move: Move) -> CatchUpTarget | None:
        """Along the old release's commits, to the one at which it has paused."""
        at = move.paused_at
        if at is None:
            return None
        history = positions.history(self._runtime.store, move.old, _LOOK_BACK)
        goal = next_target(self._runtime.steps.at(), [one for one in history if one.position.batch <= at.batch])
        return goal if goal is not None and same_place(goal.places, at.places) else None

    def _steps_to(self, goal: CatchUpTarget) -> list[tuple[Places, int]]:
        target = {**self._runtime.inputs.ends_but(goal.places), **goal.places}
        steps: list[tuple[Places, int]] = (
            [(target, goal.first_watermark_ms)] if self._runtime.steps.at() != target else []
        )
        reached = max([self._runtime.steps.watermark_ms(), *(watermark for _, watermark in steps)])
        if self._runtime.emits_by_time and goal.watermark_ms > reached:
            steps.append((target, goal.watermark_ms))
        return steps

    def _align(self, query: ReleaseQuery, last: int, found: Cutover, move: Move) -> None:
        while self._is_short_of(last) and self._waits(found, move) and query.active:
            self._runtime.monitor.wait(0.02)
        if self._waits(found, move) and not self._is_short_of(last):
            self._tell_aligned(found, move)

    def _is_short_of(self, batch: int) -> bool:
        return self._runtime.monitor.standing is None or self._runtime.monitor.standing.batch < batch

    def _tell_aligned(self, found: Cutover, move: Move) -> None:
        """The version is that of the batch that brought it there, which the store knows by now."""
        newest = positions.latest(self._runtime.store, self._runtime.release)
        if newest is None or newest[1] is None:
            raise PositionError(f"{self._runtime.release} has recorded no commit.", remedy="Look at the driver's log.")
        try:
            protocol.tell_aligned(self._runtime.store, self._runtime.monitor.lease, found.id, newest[0], newest[1])
        except PositionError as error:  # the old one has paused elsewhere by now: seen below, and stepped to
            event(logger, "not aligned any more", release=self._runtime.release, error=error)
            return
        event(
            logger, "aligned", release=self._runtime.release, cutover=found.id, batch=newest[0].batch, table=move.table
        )

    def _waits(self, found: Cutover, move: Move) -> bool:
        """Until it has flipped, was aborted, or the old release has paused elsewhere."""
        now = self._runtime.monitor.cutover
        if self._runtime.monitor.ending or self._runtime.monitor.role == "live" or now is None or now.id != found.id:
            return False
        mine = now.move_of(self._runtime.release)
        return now.may_abort and mine is not None and mine.paused_at == move.paused_at

    def _change(self, move: Move) -> TopicHandover | None:
        if move.paused_at is None or move.aligned_version is None:
            return None
        old = self._version_at(move.old, move.paused_at.batch)
        marker = published_by(self._runtime.settings, move.old.group, move.paused_at.offsets)
        published = self._version_at(move.old, min(marker.batch, move.paused_at.batch)) if marker else old
        new = TableAtVersion(self._runtime.settings.storage.table(self._runtime.release), move.aligned_version)
        if old is None:
            return None
        wrote = described.publishes(releases.get(self._runtime.store, move.old).manifest["declared"])
        return TopicHandover(published or old, old, new, wrote)

    def _version_at(self, release: ReleaseId, batch: int) -> TableAtVersion | None:
        found = positions.history(self._runtime.store, release, _LOOK_BACK)
        known = (one.table_version for one in found if one.position.batch <= batch)
        version = next((one for one in known if one is not None), None)
        return None if version is None else TableAtVersion(self._runtime.settings.storage.table(release), version)
