"""Whether a driver may go on: its lease, what is wanted of it, and the signal to stop.

One thread renews the lease and reads what is wanted; the batch asks `gate()` before it begins and before it writes.
"""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable

from platform_core.control import leases, wanted
from platform_core.control.leases import Lease
from platform_core.control.store import ControlStore
from platform_core.errors import Retryable, Superseded
from platform_core.names import ReleaseId
from platform_core.settings import Settings
from platform_core.telemetry import event

logger = logging.getLogger(__name__)
_MARGIN = 2.0  # seconds of lease that a write must have ahead of it


class StopRequested(Exception):
    """Raised inside a batch that must not begin. Nothing of it is written: the next start plans it again."""


class Guard:
    def __init__(
        self, store: ControlStore, settings: Settings, release: ReleaseId, lease: Lease, generation: int | None
    ) -> None:
        self._store, self._release, self._generation = store, release, generation
        self._seconds = settings.supervision.lease_seconds
        self._changed = threading.Condition()
        self._lease = lease
        self._lost: Superseded | None = None
        self._stop = threading.Event()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="lease", daemon=True)

    @property
    def lease(self) -> Lease:
        return self._lease

    @property
    def generation(self) -> int | None:
        """Of the wanted state that it runs for; None when nobody asked for it."""
        return self._generation

    @property
    def stopping(self) -> bool:
        return self._stop.is_set()

    @property
    def lost(self) -> Superseded | None:
        return self._lost

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Asks for the end; safe in a signal handler."""
        self._stop.set()

    def end(self) -> None:
        """After the last batch: gives the lease up, so that the next driver need not wait."""
        self._ended.set()
        self._thread.join(timeout=10)
        if self._lost is None:
            try:
                leases.release(self._store, self._lease)
            except Retryable as error:
                event(logger, "lease not given up", level=logging.WARNING, error=error)

    def begin(self) -> None:
        """Returns when a batch may begin; raises StopRequested once the end was asked for."""
        if self._stop.is_set():
            raise StopRequested
        self.write()

    def write(self) -> None:
        """Returns when a write may begin: waits while the lease cannot be renewed, raises once it is another's."""
        waited = False
        while True:
            if self._lost is not None:
                raise self._lost
            if self._lease.valid_for() > _MARGIN:
                break
            if not waited:
                event(logger, "paused: the lease could not be renewed", level=logging.WARNING, release=self._release)
                waited = True
            with self._changed:
                self._changed.wait(timeout=0.5)
        if waited:
            event(logger, "resumed: the lease holds again", release=self._release)

    def asked_now(self) -> Superseded | None:
        """Whether the lease is another's, by asking and not by waiting for the next renewal."""
        if self._lost is None:
            self._try(self._renew)
        return self._lost

    def _keep(self) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})  # the main thread's to take, see stream/session.py
        pause = max(self._seconds / 5, 0.2)
        while not self._ended.wait(timeout=min(pause, 1.0)):
            if self._lost is not None:
                return
            self._try(self._look)
            if self._lease.valid_for() < self._seconds - pause:
                self._try(self._renew)

    def _renew(self) -> None:
        try:
            self._lease = leases.renew(self._store, self._lease, self._seconds)
        except Superseded as error:
            self._lost = error
        with self._changed:
            self._changed.notify_all()

    def _look(self) -> None:
        """Stops by itself when that is wanted, so that it does also while no supervisor is there."""
        asked = wanted.of(self._store, self._release)
        if asked is None or self._stop.is_set():
            return
        other = self._generation is not None and asked.generation != self._generation
        if asked.state != "run" or other:
            event(logger, "stop wanted", release=self._release, wanted=asked.state, generation=asked.generation)
            self._stop.set()

    def _try(self, call: Callable[[], None]) -> None:
        try:
            call()
        except Retryable as error:
            event(logger, "control store away", level=logging.WARNING, error=error)
