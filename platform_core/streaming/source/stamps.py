"""Where moments are in topics, by the stamps of their records.

The broker tells the first record stamped at or after a moment: one that is dated ahead of today hides all that follow
in its partition. Behind such a record moments are found by looking at the records' own stamps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from platform_core.control.position import Offsets


class Stamped:
    """Until `now_ms`; records dated later are no clock. `since` answers, for a moment, the first offset of every
    partition stamped at or after it; `stamp`, of a topic, a partition and an offset, when the record there is stamped.
    """

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
