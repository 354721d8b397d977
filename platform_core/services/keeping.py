"""The life of one service under the keeper: start or adopt, watch, restart, stop."""

from __future__ import annotations

import logging
import subprocess
import threading
import time
from collections.abc import Callable

import psutil

from platform_core.control.owners import Owner
from platform_core.errors import ServiceUnavailable, WeirError
from platform_core.services import kept, process
from platform_core.services.service import Service, await_ready, begin, tail
from platform_core.services.state import Notes
from platform_core.settings import Settings
from platform_core.telemetry import event

FIRST_WAIT, LONGEST_WAIT = 1.0, 30.0
STEADY_SECONDS = 60.0  # up for so long, a service has recovered
LOOK_SECONDS = 10.0
logger = logging.getLogger("platform_core.services.keeper")


def wait_before(failures: int) -> float:
    """Doubles with each failure in a row. There is no giving up: a full disk may have room again."""
    return 0.0 if failures == 0 else min(LONGEST_WAIT, FIRST_WAIT * 2 ** (failures - 1))


class Keeping:
    def __init__(self, settings: Settings, service: Service, notes: Notes, stopping: threading.Event) -> None:
        self._home = settings.home
        self._service = service
        self._notes = notes
        self._stopping = stopping
        self._child: subprocess.Popen[bytes] | None = None
        self._owner: Owner | None = None
        self._looked, self._unheard = 0.0, 0

    def run(self, dependents: Callable[[], list[threading.Thread]]) -> None:
        """In a thread of its own, until the platform stops and nobody needs this service any more."""
        self._adopt()
        while not self._stopping.is_set():
            try:
                self._live_once()
            except Exception as error:  # whatever it is: a thread that died would leave its service to itself
                self._failed(str(error) if isinstance(error, WeirError) else f"{type(error).__name__}: {error}")
        for thread in dependents():
            thread.join()
        self._stop()

    def _live_once(self) -> None:
        if self._owner is None and not self._start():
            return
        self._watch()
        if not self._stopping.is_set():
            self._clear_away()
            self._failed(f"{self._service.name} ended by itself.{tail(self._service.log)}")

    def _adopt(self) -> None:
        """A keeper that died left its services running: they are what is wanted."""
        owner = self._notes.of(self._service.name).owner
        if owner is not None and owner.running:
            self._owner = owner
            self._tell("adopted")
        elif owner is not None:
            self._end(kept.in_session(owner.pid, self._home))

    def _start(self) -> bool:
        """Whether it has begun; it may also have been told to stop meanwhile."""
        wait = wait_before(self._notes.of(self._service.name).failures)
        if self._stopping.wait(wait) or not self._needs_met():
            return False
        self._note("starting", reason="")
        self._child = begin(self._service, kept.marks(self._home, self._service.name))
        self._owner = Owner.of(self._child.pid)
        self._note("starting", owner=self._owner)
        return True

    def _needs_met(self) -> bool:
        def met() -> bool:
            known = {state.name: state.phase for state in self._notes.all()}
            return self._stopping.is_set() or all(known.get(name, "ready") == "ready" for name in self._service.needs)

        while not process.until(met, 1.0):
            pass
        return not self._stopping.is_set()

    def _watch(self) -> None:
        """From its start until it ends, or is told to."""
        await_ready(self._service, lambda: self._lives() and not self._stopping.is_set())
        self._note("ready", reason="")
        self._tell("ready")
        ready = time.monotonic()
        while self._lives() and not self._stopping.wait(0.25):
            now = time.monotonic()
            if now - ready > STEADY_SECONDS and self._notes.of(self._service.name).failures:
                self._notes.change(self._service.name, failures=0)
            if now - self._looked > LOOK_SECONDS:
                self._looked = now
                self._bound_memory()
                self._listen()

    def _listen(self) -> None:
        """A silent service is not restarted: one that was frozen, or waits for a disk, goes on where it was."""
        self._unheard = 0 if self._service.ready() else self._unheard + 1
        phase = self._notes.of(self._service.name).phase
        if self._unheard >= 2 and phase == "ready":
            self._note("silent", reason="It runs, and does not answer.")
            self._tell("silent")
        elif not self._unheard and phase == "silent":
            self._note("ready", reason="")
            self._tell("ready")

    def _lives(self) -> bool:
        if self._child is not None:
            self._child.poll()
        return self._owner is not None and self._owner.running

    def _bound_memory(self) -> None:
        used = sum(_own_memory(one) for one in kept.in_session(self._owner.pid, self._home)) if self._owner else 0
        if used > self._service.memory_mb * 1_000_000:
            mb = used // 1_000_000
            event(logger, "service exceeds its memory", service=self._service.name, used_mb=mb)
            raise ServiceUnavailable(f"{self._service.name} used {mb} MB, its bound is {self._service.memory_mb} MB.")

    def _failed(self, reason: str) -> None:
        self._halt()
        before = self._notes.of(self._service.name)
        if self._stopping.is_set():
            return
        self._note("failed", reason=reason, failures=before.failures + 1, restarts=before.restarts + 1, owner=None)
        event(logger, "service failed", level=logging.WARNING, service=self._service.name, reason=reason)

    def _stop(self) -> None:
        self._note("stopping")
        self._halt()
        self._note("stopped", owner=None)
        self._tell("stopped")

    def _halt(self) -> None:
        """Ends it, and on the way out of the platform what it started apart as well: drivers of a dead supervisor."""
        if self._owner is not None:
            reap = self._child.poll if self._child is not None else _nothing
            process.stop(self._owner, self._service.stop_with, self._service.stop_seconds, reap)
            self._clear_away()
        if self._stopping.is_set():
            process.end(kept.belonging(self._home, self._service.name), self._service.stop_seconds)

    def _clear_away(self) -> None:
        if self._owner is not None:
            self._end(kept.in_session(self._owner.pid, self._home))
        self._owner = self._child = None

    def _end(self, those: list[psutil.Process]) -> None:
        process.end(those, 3.0)

    def _note(self, phase: str, **changes: object) -> None:
        self._notes.change(self._service.name, phase=phase, **changes)

    def _tell(self, what: str) -> None:
        pid = self._owner.pid if self._owner else None
        event(logger, f"service {what}", service=self._service.name, pid=pid)


def _own_memory(one: psutil.Process) -> int:
    """What it shares with nobody: Postgres's processes all map the same buffers."""
    try:
        return one.memory_full_info().uss
    except psutil.Error:
        return 0


def _nothing() -> None:
    return None
