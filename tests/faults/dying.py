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

from platform_core.streaming.batch.value import Batch
from platform_core.streaming.driver import process
from platform_core.streaming.sink.output_topics import OutputTopics
from platform_core.streaming.sink.protocol import Sink
from platform_core.streaming.sink.rejects import Rejects

BEFORE_TABLE = "before-table"  # computed, nothing written
BEFORE_PUBLISH = "before-publish"  # the table has the batch, the topic has not
BEFORE_CHECKPOINT = "before-checkpoint"  # table and topic have it, the checkpoint does not call it done
_SINK: dict[str, Any] = {BEFORE_TABLE: Rejects, BEFORE_PUBLISH: OutputTopics, BEFORE_CHECKPOINT: OutputTopics}


def die_at(place: str, batches: int) -> None:
    sink = _SINK[place]
    commit: Callable[[Sink, Batch], Batch] = sink.commit
    left = [batches]

    def watched(self: Sink, batch: Batch) -> Batch:
        left[0] -= 1
        if left[0] == 0 and place != BEFORE_CHECKPOINT:
            _die()
        result = commit(self, batch)
        if left[0] == 0:
            _die()
        return result

    sink.commit = watched


def _die() -> None:
    logging.shutdown()
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    die_at(sys.argv[1], int(sys.argv[2]))
    sys.exit(process.main(sys.argv[3:]))
