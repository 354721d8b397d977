"""What a generator makes."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from platform_core.declare import Topic


class GeneratedRecord(NamedTuple):
    topic: str
    key: bytes | None
    value: bytes | None
    timestamp_ms: int


@dataclass(frozen=True)
class Generator:
    """A kind of records. `records(seed, start_ms, rate)` never ends, and its timestamps never go back."""

    name: str
    topics: tuple[Topic, ...]
    rate: float  # records a second of event time, where none is asked for
    records: Callable[[int, int, float], Iterator[GeneratedRecord]]
    malformed: Callable[[Random], bytes]  # a value that no reader of the topics takes
    about: str | None = None  # what `weir generate` says of it


def merged(sessions: Iterable[tuple[float, Iterable[GeneratedRecord]]]) -> Iterator[GeneratedRecord]:
    """The records of sessions that run side by side, by time. Each session comes with its start in milliseconds, the
    starts never go back, and no record is before that of its session."""
    coming: list[tuple[int, int, GeneratedRecord]] = []  # the number keeps the order of records of the same millisecond
    number = 0
    for begins, session in sessions:
        for record in session:
            number += 1
            heapq.heappush(coming, (record.timestamp_ms, number, record))
        while coming and coming[0][0] < begins:
            yield heapq.heappop(coming)[2]
