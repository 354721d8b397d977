"""Where a release's batches wait while none may begin: one of a cutover's moments in which everything stands still."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Gate:
    """Barred for one reason or several. Knows whether a batch is at work, so that standing still can be told truly."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._bars: set[str] = set()
        self._working = False
        self._owed = -1
        self.begun = -1  # the newest batch that was let through

    def owe(self, batch: int) -> None:
        """A batch that a dead driver may have begun, or a step that must still be made: it goes through whatever bars
        the way, and until it is done nothing stands still. -1: none any more."""
        with self._changed:
            self._owed = batch

    def enter(self, batch: int, ask: Callable[[], None]) -> None:
        """Returns when the batch may begin. `ask` raises when it shall not wait any longer."""
        with self._changed:
            ask()
            while self._bars and batch != self._owed:
                self._changed.wait(0.1)
                ask()
            self._working, self.begun = True, max(self.begun, batch)

    def leave(self, batch: int) -> None:
        """The batch is committed and told. One that failed never leaves: nobody knows where it ended."""
        with self._changed:
            self._working = False
            if batch >= self._owed:
                self._owed = -1

    def bar(self, why: str) -> bool:
        """Whether nothing is at work now, and so nothing will be until it is lifted."""
        with self._changed:
            self._bars.add(why)
            return not self._working and self._owed < 0

    def lift(self, why: str) -> None:
        with self._changed:
            self._bars.discard(why)
            self._changed.notify_all()
