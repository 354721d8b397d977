"""A few records of each partition, to know how large they are and how old the oldest is."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from platform_core.broker import Offsets
from platform_core.settings import Settings

_SECONDS = 4.0  # for each of the places; a plan is not held up by a partition that does not answer
_AT_ONCE = 500


@dataclass
class Sample:
    """Of one topic."""

    records: int = 0
    bytes: int = 0  # of keys and values, as their producer made them: what the broker stores may be compressed
    oldest_ms: int | None = None

    @property
    def size(self) -> float | None:
        return self.bytes / self.records if self.records else None


@dataclass
class _Place:
    """Where to look, and which partitions have not answered yet."""

    offsets: Offsets
    open: set[tuple[str, int]] = field(default_factory=set[tuple[str, int]])


def sampled(settings: Settings, starts: Offsets, ends: Offsets) -> dict[str, Sample]:
    """From the oldest records and from the middle of every partition that has some."""
    from confluent_kafka import Consumer

    found = {topic: Sample() for topic in ends}
    consumer = Consumer(_configuration(settings))
    try:
        for share in (0.0, 0.5):
            place = _at(share, starts, ends)
            for message in _messages(consumer, place):
                _count(found[str(message.topic())], message, oldest=share == 0.0)
    finally:
        consumer.close()
    return found


def _configuration(settings: Settings) -> dict[str, Any]:
    common = {**settings.kafka.client, "bootstrap.servers": settings.kafka.servers, "log_level": "0"}
    return {**common, "group.id": "weir-plan", "enable.auto.commit": False, "isolation.level": "read_committed"}


def _at(share: float, starts: Offsets, ends: Offsets) -> _Place:
    place = _Place({})
    for topic, parts in ends.items():
        for partition, end in parts.items():
            start = starts[topic][partition]
            if end > start:
                place.offsets.setdefault(topic, {})[partition] = start + int((end - start) * share)
                place.open.add((topic, partition))
    return place


def _messages(consumer: Any, place: _Place) -> Iterable[Any]:
    """Until every partition has answered, or the time is over."""
    from confluent_kafka import TopicPartition

    consumer.assign([TopicPartition(t, p, o) for t, parts in place.offsets.items() for p, o in parts.items()])
    deadline = time.monotonic() + _SECONDS
    while place.open and time.monotonic() < deadline:
        for message in consumer.consume(_AT_ONCE, 0.5):
            if message.error() is None:
                place.open.discard((message.topic(), message.partition()))
                yield message


def _count(sample: Sample, message: Any, *, oldest: bool) -> None:
    sample.records += 1
    sample.bytes += len(message.key() or b"") + len(message.value() or b"")
    kind, at = message.timestamp()
    if oldest and kind:
        sample.oldest_ms = at if sample.oldest_ms is None else min(sample.oldest_ms, at)
