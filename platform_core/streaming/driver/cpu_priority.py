"""The CPU priority of a replay: below that of live drivers, as far as the system lets it."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from platform_core.telemetry import event

logger = logging.getLogger(__name__)
_WEIGHT = Path("/proc/self/autogroup")
_BEHIND, _LIKE_OTHERS = 5, 0
_ATTEMPTS, _PAUSE_SECONDS = 200, 0.05


@contextmanager
def standing_back(weight: Path = _WEIGHT) -> Generator[None]:
    """Linux weighs sessions against each other where processors are short: this one counts a third of another.

    A process's own niceness could not be taken back without privileges. Where sessions are not weighed, as in a control
    group of its own, or the session is a terminal's, nothing changes: a replay's share of the time still holds it
    back.
    """
    if os.getsid(0) != os.getpid():
        yield
        return
    behind = _weigh(weight, _BEHIND)
    try:
        yield
    finally:
        if behind and not _weigh(weight, _LIKE_OTHERS):
            event(logger, "CPU priority not restored", level=logging.WARNING, place=str(weight))


def _weigh(weight: Path, niceness: int) -> bool:
    """Whether it is done."""
    for _ in range(_ATTEMPTS):
        try:
            weight.write_text(str(niceness))
            return True
        except BlockingIOError:  # ten changes a second, of all processes together, unless it is root who asks
            time.sleep(_PAUSE_SECONDS)
        except OSError:  # no such file, or not ours to write
            return False
    return False
