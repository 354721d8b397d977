"""What the driver's main thread waits on: woken by other threads and by signal handlers."""

from __future__ import annotations

import queue


class Wakeup:
    """A queue of the standard library's C code, as an Event's lock must not be asked for in a signal handler: it may
    be held by the very thread that the handler interrupts."""

    def __init__(self) -> None:
        self._rung: queue.SimpleQueue[None] = queue.SimpleQueue()

    def ring(self) -> None:
        self._rung.put(None)

    def wait(self, seconds: float) -> None:
        """Returns when it is rung, or was since the last wait, or the time is over: the caller looks again."""
        try:
            self._rung.get(timeout=seconds)
            while True:
                self._rung.get_nowait()
        except queue.Empty:
            return
