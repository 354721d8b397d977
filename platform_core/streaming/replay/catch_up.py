"""From far behind to where the live release is, in steps by record time: a replay, and a follower that slept for long.

What a topic has no more is read from its raw table, to its end; the steps after that are the topic's again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from platform_core.control import positions, releases
from platform_core.control.position import Places
from platform_core.streaming.driver.cpu_priority import standing_back
from platform_core.streaming.driver.runtime import ReleaseRuntime
from platform_core.streaming.replay.by_time import Walk

logger = logging.getLogger(__name__)


class CatchUp:
    def __init__(self, runtime: ReleaseRuntime) -> None:
        self._runtime, self._inputs, self._moves = runtime, runtime.inputs, runtime.settings.moves

    def prove_kept(self) -> None:
        """Raises when records that it still needs are gone for good."""
        at = self._runtime.steps.at()
        self._inputs.reachable(at, at)

    @property
    def needs_steps(self) -> bool:
        """Whether the next records come from elsewhere than the release's own query reads, or it has none yet."""
        return self._inputs.elsewhere or self._runtime.checkpoint.planned < 0

    def far_from(self, goal: Places) -> bool:
        """Whether it is too far to go there in one step, or what lies between has to be read in steps."""
        at = self._runtime.steps.at()
        shared = {name: place for name, place in goal.items() if name in at}
        return self.needs_steps or self._inputs.records(at, shared) > self._moves.replay_records

    def walk(self, while_true: Callable[[], bool]) -> bool:
        """Whether the live release was reached."""
        try:
            with standing_back():
                return self._walk(Walk(self._inputs, self._moves.replay_records), while_true)
        finally:
            self._inputs.close()

    def _walk(self, walk: Walk, while_true: Callable[[], bool]) -> bool:
        """1 what is left of history, and where, 2 the step's end, 3 the step, 4 a pause for the live one."""
        release = releases.get(self._runtime.store, self._runtime.release)
        begins = release.replay_from.places if release.replay_from else {}
        while while_true() and not self._runtime.monitor.ending:
            self._runtime.finish()
            at, whole = self._runtime.steps.at() or begins, self._bound()
            bound = self._inputs.reachable(at, whole)
            # lookups are read ahead of the events: they are joined by time
            target = {**bound, **walk.target(self._inputs.paced(at), self._inputs.paced(bound))}
            began = time.monotonic()
            if self._runtime.steps.at() != target:
                self._runtime.step(target, self._runtime.checkpoint.next_watermark_ms())
            if target == whole:
                return True
            self._runtime.monitor.wait((time.monotonic() - began) * (1 / self._moves.replay_share - 1))
        return False

    def _bound(self) -> Places:
        """Where it may read to: where the live one is; what that one does not read, as far as it goes."""
        live = releases.live_of(self._runtime.store, self._runtime.release.job)
        stands = positions.latest(self._runtime.store, live) if live else None
        known = stands[0].places if stands else {}
        mine = self._inputs.origin
        return {**self._inputs.ends_but(known), **{name: place for name, place in known.items() if name in mine}}
