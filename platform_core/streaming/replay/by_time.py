"""Where the steps of a replay end: inputs and partitions advance together by record time, never past the live one.

Planned by count, one partition's clock would run ahead and make the others' records late.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from platform_core.control.position import Places, between


class ReplayedInputs(Protocol):
    """What is read step by step."""

    def records(self, at: Places, end: Places) -> int: ...

    def moments(self, at: Places, goal: Places, now_ms: int) -> Callable[[int], Places]: ...


@dataclass
class Walk:
    inputs: ReplayedInputs
    most: int  # records a step
    now_ms: Callable[[], int] = lambda: int(time.time() * 1000)
    _from_ms: int = field(default=0, init=False)

    def target(self, at: Places, bound: Places) -> Places:
        """The furthest position by record time within `most` records; `bound` itself when that is near enough."""
        records = self.inputs.records
        if records(at, bound) <= self.most:
            return bound
        low, high = self._from_ms, self.now_ms() + 1
        since = self.inputs.moments(at, bound, high)
        found: Places = at
        while high - low > 1:
            middle = (low + high) // 2
            reached = between(at, since(middle), bound)
            if records(at, reached) <= self.most:
                low, found = middle, reached
            else:
                high = middle
        if records(at, found) == 0:  # more records than `most` share one moment
            found = between(at, since(high), bound)
        self._from_ms = low
        return found
