"""A release's driver that kills itself with SIGKILL at a chosen place of its n-th batch.

`python dying.py PLACE N RELEASE`. From outside nobody can hit the milliseconds between two commits; from in here the
kill is as real, and always at the same place.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from platform_core.stream import driver
from platform_core.stream.batches import Batches

BEFORE_TABLE = "before-table"  # computed, nothing written
BEFORE_PUBLISH = "before-publish"  # the table has the batch, the topic has not
BEFORE_CHECKPOINT = "before-checkpoint"  # table and topic have it, the checkpoint does not call it done
_STEP = {BEFORE_TABLE: "_finished", BEFORE_PUBLISH: "_publish", BEFORE_CHECKPOINT: "_publish"}


def die_at(place: str, batches: int) -> None:
    name = _STEP[place]
    step: Callable[..., Any] = getattr(Batches, name)
    left = [batches]

    def watched(self: Batches, *args: Any) -> Any:
        left[0] -= 1
        if left[0] == 0 and place != BEFORE_CHECKPOINT:
            _die()
        result = step(self, *args)
        if left[0] == 0:
            _die()
        return result

    setattr(Batches, name, watched)


def _die() -> None:
    logging.shutdown()
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    die_at(sys.argv[1], int(sys.argv[2]))
    sys.exit(driver.main(sys.argv[3:]))
