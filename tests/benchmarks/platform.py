"""A platform of the benchmark's own: broker and Postgres on free ports, in a folder that goes away with it."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from platform_core.control.owners import Owner
from platform_core.control.store import ControlStore
from platform_core.services import kafka, ports, postgres, process
from platform_core.services.service import Service, start
from platform_core.settings import Settings, load


@dataclass(frozen=True)
class Platform:
    settings: Settings
    store: ControlStore


@contextmanager
def platform(home: Path) -> Generator[Platform]:
    """Stopped at the end, and after ctrl-C."""
    settings = settings_of(home)
    with running(kafka.broker(settings)), running(postgres.server(settings)):
        store = ControlStore.open(settings)
        store.migrate()
        try:
            yield Platform(settings, store)
        finally:
            store.close()


def settings_of(home: Path) -> Settings:
    broker, _, database, dagster = (str(port) for port in ports.free(4))
    return load(
        environment={
            "WEIR_HOME": str(home),
            "WEIR_KAFKA__PORT": broker,
            "WEIR_POSTGRES__PORT": database,
            "WEIR_DAGSTER__PORT": dagster,
        }
    )


@contextmanager
def running(service: Service) -> Generator[Owner]:
    child = start(service)
    owner = Owner.of(child.pid)
    try:
        yield owner
    finally:
        process.stop(owner, service.stop_with, service.stop_seconds, child.poll)
