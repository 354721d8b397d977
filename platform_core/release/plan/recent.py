"""Which records a trial runs over: the newest ones by record time, as many as it can take."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from platform_core.broker import Broker, Offsets
from platform_core.control.position import records_between
from platform_core.errors import UsageError

_SHAPE = re.compile(r"(\d+)\s*([smhd])[a-z]*")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


@dataclass(frozen=True)
class Recent:
    """Events from `since_ms` on, of `start` to `end`; lookups from their oldest record."""

    start: Offsets
    end: Offsets
    since_ms: int
    until_ms: int  # the newest record of any topic
    records: int  # events
    cut: bool  # there were more than could be taken

    @property
    def covers(self) -> timedelta:
        return timedelta(milliseconds=self.until_ms - self.since_ms)


def length(text: str) -> timedelta:
    found = _SHAPE.fullmatch(text.strip())
    if found is None or not int(found[1]):
        raise UsageError(f"--last {text!r} is not a length of time.", remedy="Write it as in 1h, 30m or 2d.")
    return timedelta(**{_UNITS[found[2]]: int(found[1])})


def recent(broker: Broker, events: Iterable[str], lookups: Iterable[str], last: timedelta, most: int) -> Recent:
    """The last hour of a topic that nobody writes to is the hour before its newest record."""
    parts = {name: range(facts.partitions) for name, facts in broker.topics(dict.fromkeys(events)).items()}
    whole = {name: range(facts.partitions) for name, facts in broker.topics(dict.fromkeys(lookups)).items()}
    newest = broker.newest(parts)
    if newest is None:
        raise UsageError(f"Nothing is in {', '.join(parts) or 'the topics'}.", remedy="Send records first.")
    end, until = broker.ends(parts), min(newest, int(time.time() * 1000))
    since = until - int(last.total_seconds() * 1000)
    start = broker.since(parts, since)
    cut = records_between(start, end) > most
    if cut:
        since, start = _shortened(broker, end, since, until, most)
    records = records_between(start, end)
    return Recent({**start, **broker.starts(whole)}, {**end, **broker.ends(whole)}, since, until, records, cut)


def _shortened(broker: Broker, end: Offsets, since: int, until: int, most: int) -> tuple[int, Offsets]:
    """The longest time up to the end that has no more records than that."""
    low, high = since, until + 1
    chosen = end
    while high - low > 1:
        middle = (low + high) // 2
        start = broker.since(end, middle)
        if records_between(start, end) <= most:
            high, chosen = middle, start
        else:
            low = middle
    return (high, chosen) if chosen != end else (low, newest_of(broker.since(end, low), end, most))


def newest_of(start: Offsets, end: Offsets, most: int) -> Offsets:
    """Of more records than that at one moment, each partition's newest in proportion."""
    share = min(1.0, most / max(1, records_between(start, end)))
    return {
        topic: {at: end[topic][at] - int((end[topic][at] - first) * share) for at, first in parts.items()}
        for topic, parts in start.items()
    }
