"""Whether a driver may go on: its lease, what is wanted of it, what its release is, and the signal to stop.

One thread renews the lease, reads the store, and tells a cutover when the release is paused; the batch asks before
it begins and before it writes.
"""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Callable

from platform_core.control import leases, releases, wanted
from platform_core.control.leases import Lease
from platform_core.control.position import Position
from platform_core.control.store import ControlStore
from platform_core.cutover import protocol
from platform_core.cutover.model import Cutover
from platform_core.cutover.pause import Pause
from platform_core.errors import Retryable, Superseded, WeirError
from platform_core.names import ReleaseId
from platform_core.settings import Settings
from platform_core.streaming.driver.batch_gate import BatchGate
from platform_core.streaming.driver.wakeup import Wakeup
from platform_core.telemetry import event

logger = logging.getLogger(__name__)
_MARGIN = 2.0  # seconds of lease that a write must have ahead of it


class StopRequested(Exception):
    """Raised inside a batch that must not begin. Nothing of it is written: the next start plans it again."""


class LeaseMonitor:
    def __init__(
        self, store: ControlStore, settings: Settings, release: ReleaseId, lease: Lease, generation: int | None
    ) -> None:
        self._store, self._release, self._generation = store, release, generation
        self._seconds = settings.supervision.lease_seconds
        self._changed = threading.Condition()
        self._lease = lease
        self._lost: Superseded | None = None
        self._stopping = False
        self.wakeup = Wakeup()
        self._recalled = threading.Event()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="lease", daemon=True)
        self.gate = BatchGate()
        self._pause = Pause(store, release, self.gate)
        self.standing: Position | None = None  # the newest position that is committed and recorded
        self.role: releases.State = "frozen"
        self.cutover: Cutover | None = None

    @property
    def lease(self) -> Lease:
        return self._lease

    @property
    def generation(self) -> int | None:
        """Of the wanted state that it runs for; None when nobody asked for it."""
        return self._generation

    @property
    def stopping(self) -> bool:
        return self._stopping

    @property
    def ending(self) -> bool:
        """Whether the driver shall end, as asked or because its lease is another's."""
        return self.stopping or self._lost is not None

    @property
    def lost(self) -> Superseded | None:
        return self._lost

    def start(self) -> None:
        """Knows what the release is before its first batch: a cutover may wait for it."""
        self._attend()
        self._thread.start()

    def stop(self) -> None:
        """Asks for the end; safe in a signal handler."""
        self._stopping = True
        self.wakeup.ring()

    def end(self) -> None:
        """After the last batch: gives the lease up, so that the next driver need not wait."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join(timeout=10)
        if self._lost is None:
            try:
                leases.release(self._store, self._lease)
            except Retryable as error:
                event(logger, "lease not given up", level=logging.WARNING, error=error)

    def begin(self, batch: int) -> None:
        """Returns when the batch may begin; raises StopRequested once the query's end was asked for."""
        self.gate.enter(batch, self._may_wait)
        self.write()

    def recall(self, yes: bool = True) -> None:
        """Lets no further batch of the present query begin, also none that waits at the gate."""
        self._recalled.set() if yes else self._recalled.clear()

    def committed(self, position: Position) -> None:
        self.standing = position
        self.gate.leave(position.batch)

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

    def owns(self, live: bool) -> bool:
        """Whether, by asking now, the release is this driver's, and the live one if that matters."""
        self.write()
        state = releases.get(self._store, self._release).state
        return self.asked_now() is None and (state == "live" or not live)

    def wait(self, seconds: float) -> bool:
        """Whether the end was asked for meanwhile."""
        deadline = time.monotonic() + seconds
        while not self.ending and (left := deadline - time.monotonic()) > 0:
            self.wakeup.wait(left)
        return self.ending

    def _may_wait(self) -> None:
        if self._stopping or self._recalled.is_set():
            raise StopRequested
        if self._lost is not None:
            raise self._lost

    def _keep(self) -> None:
        signal.pthread_sigmask(
            signal.SIG_BLOCK, {signal.SIGTERM}
        )  # the main thread's to take, see streaming/driver/session.py
        pause = max(self._seconds / 5, 0.2)
        while not self._ended.wait(timeout=0.1 if self.cutover else min(pause, 1.0)):
            if self._lost is not None:
                return
            self._try(self._look)
            self._try(self._attend)
            if self._lease.valid_for() < self._seconds - pause:
                self._try(self._renew)

    def _renew(self) -> None:
        try:
            self._lease = leases.renew(self._store, self._lease, self._seconds)
        except Superseded as error:
            self._lost = error
            self.wakeup.ring()
        with self._changed:
            self._changed.notify_all()

    def _look(self) -> None:
        """Stops by itself when that is wanted, so that it does also while no supervisor is there."""
        asked = wanted.of(self._store, self._release)
        if asked is None or self._stopping:
            return
        other = self._generation is not None and asked.generation != self._generation
        if asked.state != "run" or other:
            event(logger, "stop wanted", release=self._release, wanted=asked.state, generation=asked.generation)
            self.stop()

    def _attend(self) -> None:
        """A live release that a cutover names is paused until the store says that it goes on, or is another's."""
        found = protocol.of_release(self._store, self._release)
        role = releases.get(self._store, self._release).state  # after the cutover: once that has ended it is decided
        if self.role == "live" and role != "live":
            self.recall()  # before the gate opens: what waits there was planned as the live release
        self._pause.attend(found, self._lease, self.standing)
        changed = (self.role, self.cutover) != (role, found)
        self.role, self.cutover = role, found
        if changed:
            self.wakeup.ring()

    def _try(self, call: Callable[[], None]) -> None:
        try:
            call()
        except Retryable as error:
            event(logger, "control store away", level=logging.WARNING, error=error)
        except WeirError as error:
            event(logger, "refused by the control store", level=logging.WARNING, error=error)
