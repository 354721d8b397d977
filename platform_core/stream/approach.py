"""When the live releases of a cutover stand still: once the new ones are near, so that their tables do so for seconds.

A new release is near when it has come to where the live one was as the cutover was seen first, clock and all: what was
under way is done, and a short step is left. Only time is saved by that, nothing depends on it. A rollback does not
wait: whoever asks for one wants to be rid of what is live.
"""

from __future__ import annotations

import time

from platform_core.control import positions
from platform_core.control.cutovers import Cutover, Move
from platform_core.control.position import Position
from platform_core.control.store import ControlStore
from platform_core.names import ReleaseId
from platform_core.stream.steps import reaches

PATIENCE = 30.0  # seconds for a new release to come near; the cutover's own deadline is minutes away


class Approach:
    def __init__(self, store: ControlStore) -> None:
        self._store = store
        self._cutover: int | None = None
        self._since = 0.0
        self._there: dict[ReleaseId, Position] = {}

    def near(self, found: Cutover, live: ReleaseId) -> bool:
        """Whether the live release shall stand still now; that once said, it stays so."""
        mine = found.move_of(live)
        if found.kind == "rollback" or (mine is not None and mine.held is not None):
            return True
        if self._cutover != found.id:
            self._cutover, self._since = found.id, time.monotonic()
            self._there = {move.old: self._at(move.old) for move in found.moves}
        return time.monotonic() - self._since > PATIENCE or all(self._reached(move) for move in found.moves)

    def _reached(self, move: Move) -> bool:
        now, there = self._at(move.new), self._there[move.old]
        return reaches(now.places, there.places) and now.watermark_ms >= there.watermark_ms

    def _at(self, release: ReleaseId) -> Position:
        stands = positions.latest(self._store, release)
        return stands[0] if stands else Position(str(release), -1, {})
