"""What a replay would read: records, bytes, how old, and until when the broker keeps it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from platform_core.broker import Broker, Offsets, TopicFacts
from platform_core.control.position import records_between
from platform_core.control.store import ControlStore
from platform_core.release.plan.sampling import Sample, sampled
from platform_core.settings import Settings
from platform_core.streaming.source.raw_history import RawHistory, raw_tables


@dataclass(frozen=True)
class TopicReading:
    topic: str
    records: int  # offsets: markers of transactions and compacted records count, so it is the most
    bytes: int | None  # an estimate from sampled records
    sampled: int
    oldest_offsets: Mapping[int, int]
    oldest_at_ms: int | None
    retention_ms: int  # -1: for ever
    compacted: bool
    landed: str = ""  # the release whose raw table has what the broker has no more
    from_table: int = 0  # records that are read from there

    @property
    def gone(self) -> int:
        """Records that the broker had and has no more; a compacted topic's newest of each key are all there."""
        return 0 if self.compacted else sum(self.oldest_offsets.values())

    @property
    def kept_until_ms(self) -> int | None:
        """When the oldest record goes; None: never, or it is not known."""
        if self.retention_ms < 0 or self.oldest_at_ms is None or self.compacted:
            return None
        return self.oldest_at_ms + self.retention_ms

    @property
    def kept_hours(self) -> float | None:
        """For how long the broker keeps a record; None: for ever."""
        return None if self.retention_ms < 0 or self.compacted else self.retention_ms / 3_600_000


@dataclass(frozen=True)
class Reading:
    topics: tuple[TopicReading, ...]

    @property
    def records(self) -> int:
        return sum(one.records for one in self.topics)

    @property
    def bytes(self) -> int | None:
        known = [one.bytes for one in self.topics]
        return sum(size for size in known if size is not None) if known and None not in known else None


def reading_of(settings: Settings, store: ControlStore, readings: Sequence[Sequence[str]]) -> Reading:
    """From the earliest of the topics that exist; one that is still to be made has nothing to read.

    Each of the `readings` is the topics of one of the job's sources: events, lookups.
    """
    broker = Broker(settings)
    there = broker.topics(dict.fromkeys(name for names in readings for name in names))
    partitions = {name: range(facts.partitions) for name, facts in there.items()}
    starts, ends = broker.starts(partitions), broker.ends(partitions)
    samples = sampled(settings, starts, ends)
    known = [[name for name in names if name in there] for names in readings]
    tables = raw_tables(settings, store, {name: facts.id for name, facts in there.items()}, known, starts)
    return Reading(tuple(_topic(name, there[name], starts, ends, samples[name], tables.get(name)) for name in there))


def _topic(
    name: str, facts: TopicFacts, starts: Offsets, ends: Offsets, sample: Sample, table: RawHistory | None
) -> TopicReading:
    first = starts[name] if table is None else table.begins
    records = records_between({name: first}, {name: ends[name]})
    return TopicReading(
        topic=name,
        records=records,
        bytes=None if sample.size is None and records else round((sample.size or 0.0) * records),
        sampled=sample.records,
        oldest_offsets=first,
        oldest_at_ms=sample.oldest_ms if table is None else table.oldest_ms,
        retention_ms=facts.retention_ms if table is None else -1,
        compacted="compact" in facts.policy,
        landed="" if table is None else table.release,
        from_table=records_between({name: first}, {name: starts[name]}),
    )
