"""The one process of a home that keeps its services running: `python -m platform_core.services.keeper`.

A thread a service. SIGTERM stops them all, those first that others do not need. Killed, it leaves them running, and
the next keeper adopts them.
"""

from __future__ import annotations

import fcntl
import logging
import signal
import sys
import threading
from typing import IO

from platform_core import telemetry
from platform_core.control.services import beat
from platform_core.control.store import ControlStore
from platform_core.errors import UsageError, WeirError
from platform_core.services import logs, state
from platform_core.services.keeping import Keeping
from platform_core.services.roster import addresses, external, managed
from platform_core.services.service import Service
from platform_core.services.state import Notes, State
from platform_core.settings import Settings, load

HOUSEKEEPING_SECONDS = 5.0
logger = logging.getLogger("platform_core.services.keeper")


def main() -> int:
    telemetry.configure()
    settings = load()
    settings.home.mkdir(parents=True, exist_ok=True)
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    try:
        with _alone(settings):
            keep(settings, managed(settings), stopping)
    except WeirError as error:
        telemetry.event(logger, "keeper ended", level=logging.ERROR, error=str(error))
        return error.exit_code
    return 0


def _alone(settings: Settings) -> IO[str]:
    """The lock of this home, held until the process ends, however it ends."""
    path = settings.home / "run" / "keeper.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = path.open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise UsageError(f"Another keeper runs for {settings.home}.", remedy="Use it, or `weir down`.") from error
    return lock


def keep(settings: Settings, services: list[Service], stopping: threading.Event) -> None:
    """Until `stopping`; returns when every service has stopped."""
    notes = Notes(settings.home, _first_states(settings, services))
    threads = {
        service.name: threading.Thread(
            target=Keeping(settings, service, notes, stopping).run,
            args=(lambda name=service.name: [threads[other.name] for other in services if name in other.needs],),
            name=service.name,
        )
        for service in services
    }
    for thread in threads.values():
        thread.start()
    while not stopping.wait(HOUSEKEEPING_SECONDS):
        _keep_house(settings, notes)
    for thread in threads.values():
        thread.join()


def _first_states(settings: Settings, services: list[Service]) -> list[State]:
    """What a dead keeper noted of each is where this one begins."""
    before, where = state.read(settings.home), addresses(settings)
    return [
        State(
            service.name,
            owner=known.owner if (known := before.of(service.name)) else None,
            address=where.get(service.name, ""),
            log=str(service.log),
        )
        for service in services
    ] + [State(name, phase="external", address=where[name]) for name in external(settings)]


def _keep_house(settings: Settings, notes: Notes) -> None:
    for path in logs.bound(settings.storage.logs):
        telemetry.event(logger, "log cut", file=path.name)
    try:
        store = ControlStore.open(settings)
        try:
            beat(store, "keeper", {one.name: one.phase for one in notes.all()})
        finally:
            store.close()
    except WeirError:
        return  # Postgres is down: its own state says so


if __name__ == "__main__":
    sys.exit(main())
