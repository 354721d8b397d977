"""The half of an OLD release's driver, step 2: it pauses once the new releases are near, and tells where.

A new release is near when it has come to where the live one was as the cutover was seen first, watermark and all: what
was under way is done, and a short step is left, so that tables are paused for seconds. Only time is saved by that,
nothing depends on it. A rollback does not wait: whoever asks for one wants to be rid of what is live.
"""

from __future__ import annotations

import logging
import time

from platform_core.control import positions
from platform_core.control.leases import Lease
from platform_core.control.position import Position
from platform_core.control.store import ControlStore
from platform_core.cutover import protocol
from platform_core.cutover.model import Cutover, Move
from platform_core.names import ReleaseId
from platform_core.streaming.checkpoint.planned_batches import reaches
from platform_core.streaming.driver.batch_gate import BatchGate
from platform_core.telemetry import event

logger = logging.getLogger(__name__)
NEAR_SECONDS = 30.0  # for a new release to come near; the cutover's own deadline is minutes away
_CUTOVER = "cutover"


class Pause:
    def __init__(self, store: ControlStore, release: ReleaseId, gate: BatchGate) -> None:
        self._store, self._release, self._gate = store, release, gate
        self._cutover: int | None = None
        self._since = 0.0
        self._goals: dict[ReleaseId, Position] = {}

    def attend(self, found: Cutover | None, lease: Lease, newest: Position | None) -> None:
        """Paused until the store says that the release goes on, or is no more the live one; `newest` is the position
        that is committed and recorded."""
        if found is None or not found.pauses(self._release) or not self.is_near(found):
            self._gate.unblock(_CUTOVER)
            return
        idle = self._gate.block(_CUTOVER)
        if found.late:  # also where no supervisor is left to abort it
            protocol.abort_late(self._store, found.id)
        elif idle and newest is not None:
            self._tell(found, lease, newest)

    def is_near(self, found: Cutover) -> bool:
        """Whether the live release shall pause now; that once said, it stays so."""
        mine = found.move_of(self._release)
        if found.kind == "rollback" or (mine is not None and mine.paused_at is not None):
            return True
        if self._cutover != found.id:
            self._cutover, self._since = found.id, time.monotonic()
            self._goals = {move.old: self._at(move.old) for move in found.moves}
        return time.monotonic() - self._since > NEAR_SECONDS or all(self._reached(move) for move in found.moves)

    def _tell(self, found: Cutover, lease: Lease, newest: Position) -> None:
        move = found.move_of(self._release)
        if move is None or (move.paused_at, move.paused_epoch) != (newest, lease.epoch):
            event(logger, "paused", release=self._release, cutover=found.id, batch=newest.batch)
            protocol.tell_paused(self._store, lease, found.id, newest)

    def _reached(self, move: Move) -> bool:
        now, goal = self._at(move.new), self._goals[move.old]
        return reaches(now.places, goal.places) and now.watermark_ms >= goal.watermark_ms

    def _at(self, release: ReleaseId) -> Position:
        found = positions.latest(self._store, release)
        return found[0] if found else Position(str(release), -1, {})
