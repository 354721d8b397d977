"""A driver that works off a history stands back behind those that are live, as far as the system lets it."""

from __future__ import annotations

import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

_WEIGHT = Path("/proc/self/autogroup")
_BEHIND, _LIKE_OTHERS = 10, 0
_ATTEMPTS, _PAUSE_SECONDS = 40, 0.05


@contextmanager
def standing_back(weight: Path = _WEIGHT) -> Generator[None]:
    """Linux weighs sessions against each other where processors are short: this one counts a ninth of another.

    A process's own niceness could not be taken back without privileges. Where sessions are not weighed, or the session
    is a terminal's, nothing changes: a replay is still throttled by its share of the time.
    """
    if os.getsid(0) != os.getpid():
        yield
        return
    _weigh(weight, _BEHIND)
    try:
        yield
    finally:
        _weigh(weight, _LIKE_OTHERS)


def _weigh(weight: Path, niceness: int) -> None:
    for _ in range(_ATTEMPTS):
        try:
            weight.write_text(str(niceness))
            return
        except BlockingIOError:  # ten changes a second, of all processes together, unless it is root who asks
            time.sleep(_PAUSE_SECONDS)
        except OSError:  # no such file, or not ours to write
            return
