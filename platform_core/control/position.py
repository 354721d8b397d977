"""Where a release is: carried by every commit, read by everyone who follows it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

Offsets = Mapping[str, Mapping[int, int]]  # topic -> partition -> next offset


@dataclass(frozen=True)
class Position:
    """The state of a release after `batch`: next offsets of every input, and the watermark in force in that batch."""

    release: str
    batch: int
    offsets: Offsets
    start: Offsets = field(default_factory=dict[str, dict[int, int]])  # where the batch began
    watermark_ms: int = 0
    newest_ms: int = 0  # the newest event time of any input so far: the release's clock
    revision: int = 0

    def to_json(self) -> str:
        return json.dumps(
            {
                "release": self.release,
                "revision": self.revision,
                "batch": self.batch,
                "offsets": as_text(self.offsets),
                "start": as_text(self.start),
                "watermark_ms": self.watermark_ms,
                "newest_ms": self.newest_ms,
            },
            separators=(",", ":"),
        )

    @classmethod
    def from_json(cls, text: str) -> Position:
        raw = json.loads(text)
        return cls(
            release=raw["release"],
            batch=raw["batch"],
            offsets=as_numbers(raw["offsets"]),
            start=as_numbers(raw["start"]),
            watermark_ms=raw["watermark_ms"],
            newest_ms=raw.get("newest_ms", 0),
            revision=raw.get("revision", 0),
        )


def as_text(offsets: Offsets) -> dict[str, dict[str, int]]:
    """Offsets in the shape that Spark's Kafka source reads and writes."""
    return {topic: {str(p): o for p, o in sorted(parts.items())} for topic, parts in sorted(offsets.items())}


def as_numbers(raw: Mapping[str, Mapping[str, int]]) -> dict[str, dict[int, int]]:
    return {topic: {int(p): o for p, o in parts.items()} for topic, parts in raw.items()}


def records_between(start: Offsets, end: Offsets) -> int:
    """How many offsets lie between two positions; a partition that start does not know begins at 0."""
    return sum(o - start.get(t, {}).get(p, 0) for t, parts in end.items() for p, o in parts.items())


def same_place(one: Offsets, other: Offsets) -> bool:
    """Whether two releases have read the same records of the topics that both read: a new version may read another
    topic more. A partition that one of them has not seen yet stands at 0."""
    shared = one.keys() & other.keys()
    return bool(shared) and all(_read(one[topic]) == _read(other[topic]) for topic in shared)


def _read(partitions: Mapping[int, int]) -> dict[int, int]:
    return {partition: offset for partition, offset in partitions.items() if offset}
