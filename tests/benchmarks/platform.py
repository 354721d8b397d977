"""A platform of the benchmark's own: broker and Postgres on free ports, in a folder that goes away with it."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from platform_core.control.owners import Owner
from platform_core.control.store import ControlStore
from platform_core.services import kafka, ports, postgres, process
from platform_core.services.service import Service, await_ready, begin
from platform_core.settings import Settings, load


@dataclass(frozen=True)
class Platform:
    settings: Settings
    store: ControlStore


@contextmanager
def platform(home: Path, **environment: str) -> Generator[Platform]:
    """Stopped at the end, and after ctrl-C."""
    settings = settings_of(home, **environment)
    with running(kafka.broker(settings)), running(postgres.server(settings)):
        store = ControlStore.open(settings)
        store.migrate()
        try:
            yield Platform(settings, store)
        finally:
            store.close()


def settings_of(home: Path, **environment: str) -> Settings:
    broker, _, database, dagster = (str(port) for port in ports.free(4))
    return load(
        environment={
            "WEIR_HOME": str(home),
            "WEIR_KAFKA__PORT": broker,
            "WEIR_POSTGRES__PORT": database,
            "WEIR_DAGSTER__PORT": dagster,
            **environment,
        }
    )


@contextmanager
def running(service: Service) -> Generator[Owner]:
    child = begin(service)
    owner = Owner.of(child.pid)
    try:
        await_ready(service, lambda: child.poll() is None)
        yield owner
    finally:
        process.stop(owner, service.stop_with, service.stop_seconds, child.poll)


def sweep(work: Path) -> int:
    """Ends whatever still stands in a folder; how many there were, which should be none."""
    left = [one for one in psutil.process_iter() if _stands_in(one, work)]
    process.end(left, 10.0)
    return len(left)


def _stands_in(one: psutil.Process, folder: Path) -> bool:
    try:
        return Path(one.cwd()).is_relative_to(folder) and one.status() != psutil.STATUS_ZOMBIE
    except (psutil.Error, OSError):  # another user's, or gone
        return False


def remove(folder: Path) -> None:
    """With the releases in it, which are read-only."""
    for path in folder.rglob("*"):
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o755)
    shutil.rmtree(folder, ignore_errors=True)


def heed_signals() -> None:
    """ctrl-C and SIGTERM end the run once, in order: a second one would leave servers running."""

    def stop(*_: object) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
