"""Where the steps of a replay end: topics and partitions advance together by record time, never past the live one.

Planned by count, one partition's clock would run ahead and make the others' records late.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from platform_core.control import gaps
from platform_core.control.position import Offsets, records_between
from platform_core.errors import PositionError


@dataclass
class Walk:
    """`since` answers, for a moment, the first offset of every partition stamped at or after it."""

    since: Callable[[int], Offsets]
    most: int  # records a step
    now_ms: Callable[[], int] = lambda: int(time.time() * 1000)
    _from_ms: int = field(default=0, init=False)

    def target(self, at: Offsets, bound: Offsets) -> Offsets:
        """The furthest position by record time within `most` records; `bound` itself when that is near enough."""
        if records_between(at, bound) <= self.most:
            return bound
        low, high = self._from_ms, self.now_ms() + 1
        found: Offsets = at
        while high - low > 1:
            middle = (low + high) // 2
            reached = _between(at, self.since(middle), bound)
            if records_between(at, reached) <= self.most:
                low, found = middle, reached
            else:
                high = middle
        if records_between(at, found) == 0:  # more records than `most` share one moment
            found = _between(at, self.since(high), bound)
        self._from_ms = low
        return found


def _between(at: Offsets, wanted: Offsets, bound: Offsets) -> Offsets:
    """`wanted`, but neither behind `at` nor past `bound`."""
    return {
        t: {p: min(max(wanted.get(t, {}).get(p, end), at.get(t, {}).get(p, 0)), end) for p, end in parts.items()}
        for t, parts in bound.items()
    }


def prove_kept(at: Offsets, starts: Offsets) -> None:
    """Raises when retention has removed what is still to be read: going on would leave a silent gap."""
    if found := gaps.between(at, starts):
        raise PositionError(
            f"{gaps.told(found)}.",
            remedy="Raise the topic's retention before the next replay; start a new release from what is left.",
        )
