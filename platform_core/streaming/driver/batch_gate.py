"""Where a release's batches wait while none may begin: as one is planned, or a cutover has paused the release."""

from __future__ import annotations

import threading
from collections.abc import Callable


class BatchGate:
    """Blocked for one reason or several. Knows whether a batch is at work, so that a pause is told truly."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._blocked: set[str] = set()
        self._working = False
        self._must_finish = -1
        self.begun = -1  # the newest batch that was let through

    def must_finish(self, batch: int) -> None:
        """A batch that a dead driver may have begun, or a step that must still be made: it begins although the gate is
        blocked, and until it is done the release is not paused. -1: none any more."""
        with self._changed:
            self._must_finish = batch

    def enter(self, batch: int, ask: Callable[[], None]) -> None:
        """Returns when the batch may begin. `ask` raises when it shall not wait any longer."""
        with self._changed:
            ask()
            while self._blocked and batch != self._must_finish:
                self._changed.wait(0.1)
                ask()
            self._working, self.begun = True, max(self.begun, batch)

    def leave(self, batch: int) -> None:
        """The batch is committed and told. One that failed never leaves: nobody knows where it ended."""
        with self._changed:
            self._working = False
            if batch >= self._must_finish:
                self._must_finish = -1

    def block(self, why: str) -> bool:
        """Whether no batch is at work now, and so none will be until it is unblocked."""
        with self._changed:
            self._blocked.add(why)
            return not self._working and self._must_finish < 0

    def unblock(self, why: str) -> None:
        with self._changed:
            self._blocked.discard(why)
            self._changed.notify_all()
