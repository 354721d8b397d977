"""What a table's log tells of its batches: which records each one read, and which watermark held in it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from deltalake import DeltaTable

from platform_core.control.position import Offsets, Position
from platform_core.settings import Settings
from platform_core.storage import Place
from platform_core.streaming.source.kafka_source import records_in
from platform_core.tables import history

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NEVER = 1 << 62
_STRETCH = 256  # offsets: a record is looked for among the batches that read of its stretch, not among all


@dataclass(frozen=True)
class Commits:
    """A table at one version, with the position of each batch in it."""

    place: Place
    table: DeltaTable
    positions: tuple[Position, ...]
    versions: Mapping[int, int]  # table version -> batch

    @classmethod
    def of(cls, place: Place, version: int | None = None) -> Commits:
        table = place.table(version)
        # commits of maintenance carry no position
        told = [one for one in history.commits(place, until=table.version()) if "userMetadata" in one]
        found = [(one["version"], Position.from_json(one["userMetadata"])) for one in told]
        found.sort(key=lambda one: one[0])
        return cls(place, table, tuple(position for _, position in found), {v: p.batch for v, p in found})

    @property
    def last(self) -> Position:
        return self.positions[-1]

    def broken(self) -> list[str]:
        """Batches that are missing or there twice, and offsets that nobody or two of them read."""
        found = []
        if self.positions and (self.positions[0].batch != 0 or any(self.positions[0].start.values())):
            found.append(f"the first commit is of batch {self.positions[0].batch} from {self.positions[0].start}")
        for one, following in pairwise(self.positions):
            if following.batch != one.batch + 1:
                found.append(f"batch {one.batch} is followed by {following.batch}")
            if _parts(following.start) != _parts(one.offsets):
                found.append(f"batch {one.batch} ends at {one.offsets}, the next begins at {following.start}")
        return found

    def late_before_ms(self, batch: int) -> int:
        """Spark drops, in a batch, what is behind the watermark of the batch before."""
        return self.positions[batch - 1].watermark_ms if batch > 0 else 0

    def first_with_clock(self, at_ms: int) -> int:
        """The first batch in which the release's clock had reached that time."""
        clocks = [position.newest_ms for position in self.positions]
        return next((batch for batch, clock in enumerate(clocks) if clock >= at_ms), NEVER)

    def added(self) -> dict[str, int]:
        """Each data file's batch, by the file's name; compaction's files have none."""
        found: dict[str, int] = {}
        for version, batch in self.versions.items():
            lines = (self.place / f"_delta_log/{version:020}.json").text().splitlines()
            names = [json.loads(line)["add"]["path"] for line in lines if line.startswith('{"add"')]
            found |= {name.rpartition("/")[2]: batch for name in names}
        return found

    def records(self, spark: SparkSession, settings: Settings) -> DataFrame:
        """Every record up to the position, with the `batch` that read it and `late_before`, the watermark in it."""
        from pyspark.sql import functions as F

        ranges = [
            (topic, partition, position.start.get(topic, {}).get(partition, 0), end, position.batch)
            for position in self.positions
            for topic, parts in position.offsets.items()
            for partition, end in parts.items()
        ]
        rows = [
            (*one, self.late_before_ms(one[-1]), stretch)
            for one in ranges
            for stretch in range(one[2] // _STRETCH, -(-one[3] // _STRETCH))
            if one[2] < one[3]
        ]
        shape = "topic STRING, partition INT, from LONG, until LONG, batch LONG, late_before LONG, stretch LONG"
        read = records_in(spark, settings, {}, self.last.offsets)
        read = read.withColumn("stretch", F.expr(f"offset div {_STRETCH}"))
        known = read.join(F.broadcast(spark.createDataFrame(rows, shape)), ["topic", "partition", "stretch"])
        return known.where("offset >= from AND offset < until").drop("from", "until", "stretch")


def _parts(offsets: Offsets) -> dict[tuple[str, int], int]:
    return {(topic, part): at for topic, parts in offsets.items() for part, at in parts.items() if at}
