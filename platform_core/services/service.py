"""What the keeper needs to know of a service, and how one is brought up."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from platform_core.control.owners import Owner
from platform_core.errors import ServiceUnavailable
from platform_core.services import process
from platform_core.services.ports import require_free


def _nothing() -> None:
    return None


@dataclass(frozen=True, kw_only=True)
class Service:
    """A process with a ready check. `prepare` runs before every start, `settle` once it is ready; both may repeat."""

    name: str
    command: tuple[str, ...]
    log: Path
    cwd: Path
    ready: Callable[[], bool]
    environment: Callable[[], Mapping[str, str]]  # asked at each start: the first start makes the password
    prepare: Callable[[], None] = _nothing
    settle: Callable[[], None] = _nothing
    ports: tuple[int, ...] = ()
    port_setting: str = ""
    needs: tuple[str, ...] = ()  # services that must be ready before it starts
    stop_with: signal.Signals = signal.SIGTERM
    stop_seconds: float = 30.0
    ready_seconds: float = 240.0  # one that works on it is not ended early: the next try would take as long
    niceness: int = 0  # lower CPU priority than the others, when processors are short
    memory_mb: int = 1024  # of all its processes together; above it the keeper restarts the service


def begin(service: Service, marks: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
    """Starts it, and does not wait."""
    require_free(service.name, service.ports, service.port_setting)
    service.prepare()
    child = process.spawn(service.command, {**service.environment(), **(marks or {})}, service.log, service.cwd)
    process.stand_back(child.pid, service.niceness)
    return child


def start(service: Service) -> subprocess.Popen[bytes]:
    """Starts it and waits until it is ready."""
    child = begin(service)
    try:
        await_ready(service, lambda: child.poll() is None)
    except ServiceUnavailable:
        process.stop(Owner.of(child.pid), service.stop_with, 5, child.poll)
        raise
    return child


def await_ready(service: Service, lives: Callable[[], bool]) -> None:
    """Until it can be used; raises with the last words of its log when it ends before, or takes too long."""
    in_time = process.until(lambda: not lives() or service.ready(), service.ready_seconds)
    if in_time and lives():
        service.settle()
        return
    fate = "ended at its start" if not lives() else f"was not ready after {service.ready_seconds:.0f} s"
    raise ServiceUnavailable(f"{service.name} {fate}.{tail(service.log)}", remedy=f"Read {service.log}.")


def tail(log: Path, lines: int = 3) -> str:
    """The last words of a log, to stand in an error."""
    if not log.is_file():
        return ""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - 4096))
        words = [line.strip() for line in file.read().decode(errors="replace").splitlines() if line.strip()]
    return "".join(f"\n  | {line[:300]}" for line in words[-lines:])
