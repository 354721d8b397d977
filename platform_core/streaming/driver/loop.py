"""What a driver does with its release: live, it runs by itself; else it steps to where the live one is.

    replaying            steps by record time from where it begins, until one step is left
    following, standby   every few seconds a step to the live release's newest commit
    live                 its own pace

A cutover that names it is taken in between: cutover/takeover.py.
"""

from __future__ import annotations

import logging
import time

from platform_core.control import gaps, positions, releases
from platform_core.control.gaps import Gap
from platform_core.control.position import offsets_of
from platform_core.cutover.takeover import Takeover
from platform_core.errors import PositionError, UsageError
from platform_core.streaming.driver.query import ReleaseQuery
from platform_core.streaming.driver.runtime import ReleaseRuntime
from platform_core.streaming.replay.catch_up import CatchUp
from platform_core.streaming.replay.follow import CatchUpTarget, arrived, next_target
from platform_core.telemetry import event

logger = logging.getLogger(__name__)
_LOOK_BACK = 5_000  # of the live release's commits
_AWAITED_SECONDS = 1.0  # between the steps of a follower that is to take over
_FOLLOWERS = ("following", "standby")


class DriverLoop:
    def __init__(self, runtime: ReleaseRuntime) -> None:
        self._runtime = runtime
        self._catch_up = CatchUp(runtime)
        self._takeover = Takeover(runtime, self._catch_up)

    def run(self) -> None:
        """Until the driver shall end."""
        while not self._runtime.monitor.ending:
            match self._runtime.monitor.role:
                case "live":
                    self._live()
                case "replaying":
                    self._replay()
                case "following" | "standby":
                    self._follow()
                case other:
                    raise UsageError(f"{self._runtime.release} is {other}.", remedy="`weir status` lists what can run.")

    def _live(self) -> None:
        self._runtime.publish_as("live")
        self._takeover.hand_over()
        self._over_gaps()
        self._watched(self._runtime.start())

    def _over_gaps(self) -> None:
        """Records that retention removed unread: recorded, and stepped over once somebody has said so.

        What is planned already is run first, and without them; then an empty step ends where the records begin.
        """
        if not (found := self._missing()):
            return
        if not gaps.record(self._runtime.store, self._runtime.release, found):
            raise PositionError(
                f"{self._runtime.release}: {gaps.told(found)}.",
                remedy=f"`weir start {self._runtime.release} --accept-gap` goes on without them; "
                "`weir reset` starts over.",
            )
        event(logger, "goes on without lost records", release=self._runtime.release, lost=[str(gap) for gap in found])
        self._runtime.finish(over_gaps=True)
        if left := self._missing():
            at = self._runtime.steps.at()
            begins = {(gap.topic, gap.partition): gap.last + 1 for gap in left}
            target = {t: {p: begins.get((t, p), o) for p, o in parts.items()} for t, parts in offsets_of(at).items()}
            self._runtime.steps.plan({**at, **target}, self._runtime.checkpoint.next_watermark_ms())
            self._runtime.finish(over_gaps=True)

    def _missing(self) -> list[Gap]:
        return self._runtime.inputs.lost(self._runtime.steps.at())

    def _watched(self, query: ReleaseQuery) -> None:
        query.watch(self._leaves)
        self._runtime.withdraw()

    def _leaves(self) -> bool:
        """Whether the live release's query shall end; what waits at the gate then never begins."""
        if self._runtime.monitor.role != "live":
            self._runtime.monitor.recall()
        return self._runtime.monitor.ending or self._runtime.monitor.role != "live"

    def _replay(self) -> None:
        self._runtime.publish_as("aside")
        if self._catch_up.walk(lambda: self._runtime.monitor.role == "replaying"):
            releases.set_state(
                self._runtime.store, self._runtime.release, "following", "its replay has reached the live release"
            )
            self._runtime.monitor.role = "following"

    def _follow(self) -> None:
        self._runtime.publish_as("silent" if self._runtime.monitor.role == "standby" else "aside")
        stepped = float("-inf")
        while self._runtime.monitor.role in _FOLLOWERS and not self._runtime.monitor.ending:
            if (asked := self._takeover.asked) is not None:
                self._takeover.take_over(*asked, self._watched)
                self._runtime.monitor.wait(0.1)
                return  # it may be the live one, or have been: what it publishes to is chosen anew
            pause = _AWAITED_SECONDS if self._takeover.is_awaited else self._runtime.settings.moves.follow_seconds
            if time.monotonic() >= stepped + pause:
                self._after_live()
                stepped = time.monotonic()
            self._runtime.monitor.wait(0.1)

    def _after_live(self) -> None:
        live = releases.live_of(self._runtime.store, self._runtime.release.job)
        if live is None:
            return
        self._catch_up.prove_kept()
        self._runtime.finish()
        goal = next_target(self._runtime.steps.at(), positions.history(self._runtime.store, live, _LOOK_BACK))
        if goal is None:
            return
        if self._catch_up.far_from(goal.places):
            self._catch_up.walk(
                lambda: self._runtime.monitor.role in _FOLLOWERS and self._runtime.monitor.cutover is None
            )
        else:
            self._walk(goal)

    def _walk(self, goal: CatchUpTarget) -> None:
        """The records, then, with the watermark that the live one has there, what time alone brings."""
        if arrived(self._runtime.steps.at(), self._runtime.steps.watermark_ms(), goal):
            return
        target = {**self._runtime.inputs.ends_but(goal.places), **goal.places}
        if self._runtime.steps.at() != target:
            self._runtime.step(target, goal.first_watermark_ms)
        behind = self._runtime.clocked and goal.watermark_ms > self._runtime.steps.watermark_ms()
        if behind and self._takeover.asked is None:  # else it has to go further at once
            self._runtime.step(target, goal.watermark_ms)
