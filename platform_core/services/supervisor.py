"""The supervisor of the drivers, as a service."""

from __future__ import annotations

import sys

from platform_core.control import services
from platform_core.control.store import ControlStore
from platform_core.errors import WeirError
from platform_core.services.service import Service
from platform_core.settings import Settings


def supervisor(settings: Settings) -> Service:
    return Service(
        name="supervisor",
        command=(sys.executable, "-m", "platform_core.supervise"),
        environment=lambda: {**settings.child_environment(), "PYTHONPATH": str(settings.root), "MALLOC_ARENA_MAX": "2"},
        log=settings.storage.logs / "supervisor.log",
        cwd=settings.home,
        needs=("postgres", "kafka"),
        prepare=lambda: _migrate(settings),
        ready=lambda: _beats(settings),
        stop_seconds=120.0,  # its drivers finish their batches first
        memory_mb=600,
    )


def _migrate(settings: Settings) -> None:
    store = ControlStore.open(settings)
    try:
        store.migrate()
    finally:
        store.close()


def _beats(settings: Settings) -> bool:
    try:
        store = ControlStore.open(settings)
        try:
            beat = services.all(store).get("supervisor")
        finally:
            store.close()
    except WeirError:
        return False
    return beat is not None and beat.age_seconds < 10
