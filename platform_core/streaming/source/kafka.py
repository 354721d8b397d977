"""Topics: events through one subscription, lookups through another; what the broker has no more from raw tables."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING

from platform_core.broker import Broker
from platform_core.control import gaps, releases
from platform_core.control.gaps import Gap
from platform_core.control.position import Offsets, Places, Position, offsets_of
from platform_core.errors import PositionError
from platform_core.streaming.batch.metrics import behind
from platform_core.streaming.sink.fetch import KafkaStamps
from platform_core.streaming.source.history import History
from platform_core.streaming.source.kafka_source import KafkaStream, event_topics
from platform_core.streaming.source.kind import InputContext, Left, Query
from platform_core.streaming.source.raw_history import RawHistory, bounded
from platform_core.streaming.source.stamps import Stamped
from platform_core.telemetry import event

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)


class KafkaTopics:
    def __init__(self, reader: InputContext) -> None:
        self._reader, self._job = reader, reader.job
        self._broker = Broker(reader.settings)
        self._ids = releases.get(reader.store, reader.release).topics
        self._history = History(reader.settings, lambda: reader.store, reader.job, self._ids)
        self._stamps = KafkaStamps(reader.settings)
        self._tables: Mapping[str, RawHistory] = {}  # from which the next steps read

    @property
    def origin(self) -> Places:
        return {topic.name: dict.fromkeys(range(topic.partitions), 0) for topic in self._job.topics}

    @property
    def paced(self) -> Collection[str]:
        return [topic.name for topic in event_topics(self._job)]

    @property
    def elsewhere(self) -> bool:
        return bool(self._tables)

    def prove(self) -> None:
        """A topic that was deleted and created again has the same name and other records."""
        there = self._broker.topics(self._ids)
        for name, known in self._ids.items():
            found = there.get(name)
            if found is None or found.id != known:
                raise PositionError(
                    f"{self._reader.release}: topic {name!r} was {known} when the release was made, "
                    f"the broker has {found.id if found else 'none of that name'}.",
                    remedy="Its offsets mean other records now. Make a new release that reads the new topic.",
                )

    def ends(self, of: Places) -> Places:
        return self._broker.ends(self._own(of))

    def reachable(self, at: Places, goal: Places) -> Places:
        """What the broker has no more is read to the end of its raw table first."""
        here, whole = self._own(at), self._own(goal)
        tables = self._history.tables(here)
        prove_kept({t: parts for t, parts in here.items() if t not in tables}, self._broker.starts(whole))
        if tables.keys() != self._tables.keys():
            told = {topic: table.release for topic, table in tables.items()}
            event(logger, "history comes from raw tables" if tables else "history comes from the broker", tables=told)
        self._tables = tables
        return bounded(here, whole, tables)

    def lost(self, at: Places) -> list[Gap]:
        here = self._own(at)
        return gaps.between(here, self._broker.starts(here))

    def moments(self, at: Places, goal: Places, now_ms: int) -> Callable[[int], Places]:
        paced = {name: parts for name, parts in self._own(goal).items() if name in self.paced}
        return Stamped(self._since, self._stamps.of, now_ms, self._own(at), paced).since

    def left(self, at: Places, end: Places) -> Left:
        here = self._own(at)
        return {
            t: {p: max(0, o - here.get(t, {}).get(p, 0)) for p, o in parts.items()}
            for t, parts in self._own(end).items()
        }

    def source(self, spark: SparkSession, query: Query) -> KafkaStream:
        """Tables are read by steps alone: a query that goes on for ever would never leave them. What somebody has given
        up is not read after all."""
        begins = None if query.begins is None else self._own(query.begins)
        tables = self._history.tables(self._own(query.next)) if query.step and not query.over_gaps else {}
        reader = self._reader
        return KafkaStream(spark, reader.settings, reader.job, reader.release, begins, query.over_gaps, tables)

    def behind(self, spark: SparkSession, position: Position, last_ms: int) -> int:
        events = {name: position.offsets[name] for name in self.paced}
        return behind(self._history.records(spark, position.start, events), self._job, last_ms)

    def close(self) -> None:
        self._stamps.close()

    def _own(self, places: Places) -> Offsets:
        names = {topic.name for topic in self._job.topics}
        return {name: parts for name, parts in offsets_of(places).items() if name in names}

    def _since(self, at_ms: int) -> Offsets:
        """Of the event topics."""
        topics = {t.name: range(t.partitions) for t in event_topics(self._job) if t.name not in self._tables}
        return {**self._broker.since(topics, at_ms), **{t: one.since(at_ms) for t, one in self._tables.items()}}


def prove_kept(at: Offsets, starts: Offsets) -> None:
    """Raises when retention has removed what is still to be read: going on would leave a silent gap."""
    if found := gaps.between(at, starts):
        raise PositionError(
            f"{gaps.told(found)}.",
            remedy="Raise the topic's retention before the next replay; start a new release from what is left.",
        )
