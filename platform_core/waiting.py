"""Looking again and again, until a deadline."""

from __future__ import annotations

import time
from collections.abc import Iterator


def looks(seconds: float, pause: float) -> Iterator[bool]:
    """One item a look, True while another one follows; the last comes once the time is over."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        yield True
        time.sleep(pause)
    yield False
