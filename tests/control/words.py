"""Words for the tests of the control store and the supervisor."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from platform_core.control import releases
from platform_core.control.facts import BatchFacts
from platform_core.control.releases import State
from platform_core.control.store import ControlStore
from platform_core.names import ReleaseId


def facts(batch: int, *, records: int = 5, late: int = 0, at: datetime | None = None) -> BatchFacts:
    return BatchFacts(
        at or datetime.now(UTC), batch, records_in=records, rows_out=records - late, used=records - late, late=late
    )


def created(
    store: ControlStore,
    release: ReleaseId,
    state: State,
    manifest: dict[str, Any] | None = None,
    topics: dict[str, str] | None = None,
) -> None:
    """A release without an archive."""
    releases.create(
        store,
        release,
        archive_sha256="",
        fingerprint="",
        manifest=manifest or {},
        topics=topics or {},
        by="a test",
        state=state,
    )


def until(condition: Callable[[], object], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not so within {seconds} s"
        time.sleep(0.02)


@contextmanager
def sleeper() -> Generator[subprocess.Popen[bytes]]:
    """A process that does nothing until it is ended."""
    process = subprocess.Popen([sys.executable, "-S", "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
