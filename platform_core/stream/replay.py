"""Where the steps of a replay end: topics and partitions advance together by record time, never past the live one.

Planned by count, one partition's clock would run ahead and make the others' records late.

The broker tells the first record stamped at or after a moment: one that is dated ahead of today hides all that follow
in its partition. Behind such a record moments are found by looking at the records' own stamps.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from platform_core.control import gaps
from platform_core.control.position import Offsets, records_between
from platform_core.errors import PositionError


@dataclass
class Walk:
    """`since` answers, for a moment, the first offset of every partition stamped at or after it; `stamp`, of a topic,
    a partition and an offset, when the record there is stamped."""

    since: Callable[[int], Offsets]
    stamp: Callable[[str, int, int], int]
    most: int  # records a step
    now_ms: Callable[[], int] = lambda: int(time.time() * 1000)
    _from_ms: int = field(default=0, init=False)

    def target(self, at: Offsets, bound: Offsets) -> Offsets:
        """The furthest position by record time within `most` records; `bound` itself when that is near enough."""
        if records_between(at, bound) <= self.most:
            return bound
        low, high = self._from_ms, self.now_ms() + 1
        seen = _Seen(self.since, self.stamp, high, at, bound)
        found: Offsets = at
        while high - low > 1:
            middle = (low + high) // 2
            reached = _between(at, seen.since(middle), bound)
            if records_between(at, reached) <= self.most:
                low, found = middle, reached
            else:
                high = middle
        if records_between(at, found) == 0:  # more records than `most` share one moment
            found = _between(at, seen.since(high), bound)
        self._from_ms = low
        return found


class _Seen:
    """Where moments are in each partition, until `now_ms`; records dated later are no clock."""

    def __init__(
        self,
        since: Callable[[int], Offsets],
        stamp: Callable[[str, int, int], int],
        now_ms: int,
        at: Offsets,
        bound: Offsets,
    ) -> None:
        self._since, self._stamp, self._now_ms, self._at, self._bound = since, stamp, now_ms, at, bound
        ahead = since(now_ms)
        self._hiding = {(t, p): ahead[t][p] for t, p, end in _each(bound) if ahead.get(t, {}).get(p, end) < end}

    def since(self, at_ms: int) -> Offsets:
        found = {topic: dict(parts) for topic, parts in self._since(at_ms).items()}
        for (topic, partition), hides in self._hiding.items():
            if found[topic][partition] >= hides:
                found[topic][partition] = self._behind(topic, partition, hides, at_ms)
        return found

    def _behind(self, topic: str, partition: int, hides: int, at_ms: int) -> int:
        """By halves: stamps rise but for a few, and which of those count as early or late changes no row's fate."""
        low, high = max(hides, self._at.get(topic, {}).get(partition, 0)), self._bound[topic][partition]
        while low < high:
            middle = (low + high) // 2
            stamped = self._stamp(topic, partition, middle)
            if stamped < at_ms or stamped >= self._now_ms:
                low = middle + 1
            else:
                high = middle
        return low


def _each(offsets: Offsets) -> Iterator[tuple[str, int, int]]:
    return ((topic, partition, offset) for topic, parts in offsets.items() for partition, offset in parts.items())


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
