"""Words for the tests of the control store and the supervisor."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import UTC, datetime

from platform_core.control.facts import BatchFacts


def facts(batch: int, *, records: int = 5, late: int = 0, at: datetime | None = None) -> BatchFacts:
    return BatchFacts(
        at or datetime.now(UTC), batch, records_in=records, rows_out=records - late, used=records - late, late=late
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
