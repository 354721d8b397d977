"""Records that the broker has no more, from their topic's raw table: which there are, and reading them again."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import numpy.typing as npt

from platform_core.control import gaps, positions, releases
from platform_core.control.position import Offsets, as_text
from platform_core.control.store import ControlStore
from platform_core.declare import described
from platform_core.settings import Settings
from platform_core.storage import Place

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Numbers = npt.NDArray[Any]


@dataclass(frozen=True)
class RawHistory:
    """A topic's raw table as its live release had left it when we looked."""

    topic: str
    release: str
    place: Place
    version: int
    ends: Mapping[int, int]
    holes: Mapping[int, int] = field(default_factory=dict[int, int])  # of a partition, the offset after the newest one

    @cached_property
    def begins(self) -> dict[int, int]:
        """The first offset from which it has all of a partition; its end where it has none."""
        found = self._asked('select "partition", min("offset") as first from records where {own} group by all')
        firsts = dict(zip(found["partition"].tolist(), found["first"].tolist(), strict=True))
        return {partition: firsts.get(partition, end) for partition, end in self.ends.items()}

    @property
    def oldest_ms(self) -> int | None:
        """Of its records; to the second."""
        return min((int(times[0]) * 1000 for times, _ in self._times.values()), default=None)

    def since(self, at_ms: int) -> dict[int, int]:
        """The first offset stamped at or after a moment, which is rounded down to its second; the end without one."""
        return {partition: self._first_since(partition, at_ms // 1000) for partition in self.ends}

    def fills(self, at: Mapping[int, int], starts: Mapping[int, int]) -> bool:
        """Whether it has all from there to where the broker begins."""
        reached = all(self.ends.get(partition, 0) >= start for partition, start in starts.items())
        return reached and all(self.begins.get(partition, 0) <= offset for partition, offset in at.items())

    def _first_since(self, partition: int, second: int) -> int:
        if partition not in self._times:
            return self.ends[partition]
        times, firsts = self._times[partition]
        place = int(np.searchsorted(times, second))
        return int(firsts[place]) if place < len(firsts) else self.ends[partition]

    @cached_property
    def _times(self) -> dict[int, tuple[Numbers, Numbers]]:
        """Of each partition the seconds that have records, and the lowest offset of that second or a later one; records
        dated ahead of today are no clock."""
        found = self._asked(
            'select "partition", epoch_ms("timestamp") // 1000 as second, min("offset") as first from records '
            'where {own} and "timestamp" <= now() group by all order by 1, 2'
        )
        parts, begins = np.unique(found["partition"], return_index=True)
        ends = [*begins[1:], len(found["partition"])]
        return {
            int(partition): (found["second"][low:high], _lowest_from(found["first"][low:high]))
            for partition, low, high in zip(parts, begins, ends, strict=True)
        }

    def _asked(self, query: str) -> dict[str, Numbers]:
        records = self.place.table(self.version).to_pyarrow_dataset()
        holes = [f'not ("partition" = {partition} and "offset" < {after})' for partition, after in self.holes.items()]
        own = " and ".join(["topic = ?", *holes])
        with duckdb.connect(config={"threads": "2"}) as duck:
            duck.register("records", records)
            found = duck.execute(query.format(own=own), [self.topic]).fetchnumpy()
        return {name: np.asarray(values) for name, values in found.items()}


def _lowest_from(offsets: Numbers) -> Numbers:
    """At each place, the lowest of it and of all that follow."""
    return np.minimum.accumulate(offsets[::-1])[::-1]


def landed(settings: Settings, store: ControlStore, ids: Mapping[str, str]) -> dict[str, RawHistory]:
    """The raw tables of the topics, by name; `ids` says which topic of that name is meant."""
    found: dict[str, RawHistory] = {}
    for release in releases.all(store):
        topic = described.landed(release.manifest.get("declared", {}))
        if release.state != "live" or topic not in ids or release.topics.get(topic) != ids[topic]:
            continue
        stands = positions.latest(store, release.id)
        if stands is not None and stands[1] is not None:
            ends, place = stands[0].offsets.get(topic, {}), settings.storage.table(release.id)
            lost = [one.gap for one in gaps.of(store, release.id) if one.gap.topic == topic]
            holes = {
                p: max(gap.last + 1 for gap in lost if gap.partition == p) for p in {gap.partition for gap in lost}
            }
            found[topic] = RawHistory(topic, str(release.id), place, stands[1], ends, holes)
    return found


def needed(
    readings: Iterable[Collection[str]], at: Offsets, starts: Offsets, tables: Mapping[str, RawHistory]
) -> dict[str, RawHistory]:
    """The raw tables to read from: those of every reading that begins before what the broker has left.

    A reading is the topics of one of the query's sources: it comes from the broker or from tables as a whole. Where one
    of its topics has no table, or the table has a gap there, none is named: its records are gone.
    """
    chosen: dict[str, RawHistory] = {}
    for topics in readings:
        here = {topic: at.get(topic, {}) for topic in topics}
        filled = all(t in tables and tables[t].fills(parts, starts.get(t, {})) for t, parts in here.items())
        if filled and gaps.between(here, starts):
            chosen |= {topic: tables[topic] for topic in topics}
    return chosen


def raw_tables(
    settings: Settings,
    store: ControlStore,
    ids: Mapping[str, str],
    readings: Iterable[Collection[str]],
    oldest: Offsets,
) -> dict[str, RawHistory]:
    """The raw tables that have more than the broker. Topics that are read together come from tables together."""
    chosen: dict[str, RawHistory] = {}
    if not any(at for parts in oldest.values() for at in parts.values()):
        return chosen
    known = landed(settings, store, ids)
    for topics in readings:
        if all(name in known and known[name].fills(known[name].begins, oldest[name]) for name in topics):
            whole = all(known[name].begins.get(p, 0) <= at for name in topics for p, at in oldest[name].items())
            chosen |= {name: known[name] for name in topics} if whole else {}
    return chosen


def bounded(at: Offsets, bound: Offsets, tables: Mapping[str, RawHistory]) -> Offsets:
    """`bound`, but no further than the tables go."""
    return {
        t: {
            p: max(at.get(t, {}).get(p, 0), min(o, tables[t].ends.get(p, 0))) if t in tables else o
            for p, o in parts.items()
        }
        for t, parts in bound.items()
    }


def stream_of(spark: SparkSession, tables: Mapping[str, RawHistory], begins: Offsets) -> DataFrame:
    """All topics' records from their tables, in one reading."""
    from pyspark import cloudpickle

    from platform_core.streaming.source import raw_history_source

    cloudpickle.register_pickle_by_value(raw_history_source)  # workers of a cluster have none of our modules
    spark.dataSource.register(raw_history_source.RawHistorySource)
    places = {
        topic: {"uri": one.place.uri, "version": one.version, "options": dict(one.place.options)}
        for topic, one in tables.items()
    }
    ends = as_text({topic: one.ends for topic, one in tables.items()})
    reader = (
        spark.readStream.format(raw_history_source.NAME)
        .option("tables", json.dumps(places))
        .option("ends", json.dumps(ends))
    )
    return reader.option("begins", json.dumps(as_text({topic: begins.get(topic, {}) for topic in tables}))).load()
