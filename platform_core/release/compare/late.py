"""Which rows depend on records that two releases may have taken differently, because their batches were others.

`python -m platform_core.release.compare.late REQUEST` runs in the newer release's archive: it reads the records of a
neighbourhood in time again, computes the transform as a batch with and without those records, and tells which of the
differing rows are among what changes. infra/decisions/0001 says which records a watermark drops.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

from platform_core.control.position import Offsets, as_numbers, as_text
from platform_core.declare import Lookup, Stream, StreamingJob
from platform_core.names import PART
from platform_core.stream.intake import admitted, parsed
from platform_core.stream.plan import laid_out

if TYPE_CHECKING:
    from pyspark.sql import Column as Expression
    from pyspark.sql import DataFrame, SparkSession

_BLOCK = 256  # offsets; ranges are met by blocks, for Spark has no other join of a number with a range
_SIDES = ("left", "right")


@dataclass(frozen=True)
class Taken:
    """A batch of a release: which records it read, and what it was too late for in it."""

    start: Offsets
    end: Offsets
    late_before_ms: int  # the watermark of the batch before: by it Spark drops
    clock_before_ms: int  # the newest event until then: by it rows were let go that wait for lookups

    def to_plain(self) -> dict[str, Any]:
        return {**vars(self), "start": as_text(self.start), "end": as_text(self.end)}

    @classmethod
    def of_plain(cls, raw: Mapping[str, Any]) -> Taken:
        return cls(as_numbers(raw["start"]), as_numbers(raw["end"]), raw["late_before_ms"], raw["clock_before_ms"])

    def ranges(self) -> Iterator[tuple[str, int, int, int, int]]:
        """A line for each block of each partition that the batch reads of: topic, partition, block, start, end."""
        for topic, parts in self.end.items():
            for partition, end in parts.items():
                start = self.start.get(topic, {}).get(partition, 0)
                for block in range(start // _BLOCK, -(-end // _BLOCK)):
                    yield topic, partition, block, start, end


def match_columns(job: StreamingJob) -> list[str]:
    """By what a row of the transform is known again in the table: its key; all but what lookups put in its place."""
    if job.output.keyed:
        return list(job.output.key)
    replaced = {name for part in job.lookups.values() for name in (*part.takes, *part.otherwise)}
    return [column.name for column in job.output.columns if column.name not in replaced]


def told_apart(records: DataFrame, batches: Mapping[str, Iterable[Taken]]) -> DataFrame:
    """The records with what each side's batch was too late for; null where a side's history does not reach."""
    from pyspark.sql import functions as F

    shape = "_topic STRING, _partition INT, _block LONG, _from LONG, _until LONG, late_{0} LONG, clock_{0} LONG"
    marked = records
    for side in _SIDES:
        lines = [(*line, one.late_before_ms, one.clock_before_ms) for one in batches[side] for line in one.ranges()]
        known = F.broadcast(records.sparkSession.createDataFrame(lines, shape.format(side)))
        same = (F.col("topic") == F.col("_topic")) & (F.col("partition") == F.col("_partition"))
        same = same & (F.floor(F.col("offset") / _BLOCK) == F.col("_block"))
        inside = (F.col("offset") >= F.col("_from")) & (F.col("offset") < F.col("_until"))
        marked = marked.join(known, same & inside, "left").drop("_topic", "_partition", "_block", "_from", "_until")
    return marked


def touched(job: StreamingJob, records: DataFrame) -> DataFrame:
    """Match columns of the rows that are not the same whichever of the records in question are taken."""
    from pyspark.sql import functions as F

    inputs = [name for name, part in job.streams.items() if part.watermarked]
    lefts = [frozenset[str](), frozenset(inputs), *({name} for name in inputs if len(inputs) > 1)]
    variants = [plain(_transformed(job, records, without)) for without in lefts]
    every = reduce(lambda one, other: one.unionByName(other), (rows.distinct() for rows in variants))
    counted = every.groupBy(*every.columns).count().where(F.col("count") < len(variants))
    found = counted.select(*match_columns(job))
    for part in job.lookups.values():
        found = found.unionByName(plain(_looked_up_late(job, part, records)).select(*match_columns(job)))
    return found.distinct()


def plain(rows: DataFrame) -> DataFrame:
    """Nested values as text: Spark neither groups nor joins by maps."""
    from pyspark.sql import functions as F

    nested = ("array", "map", "struct")
    return rows.select(
        *(
            F.col(name).cast("string").alias(name) if kind.startswith(nested) else F.col(name)
            for name, kind in rows.dtypes
        )
    )


def numbers_of(rows: DataFrame, found: DataFrame) -> list[int]:
    """The numbers of the differing rows that are among those found."""
    names = found.columns
    same = reduce(lambda one, other: one & other, (rows[name].eqNullSafe(found[name]) for name in names))
    return sorted({row[0] for row in rows.join(found, same, "left_semi").select("number").distinct().collect()})


def _transformed(job: StreamingJob, records: DataFrame, without: frozenset[str] | set[str]) -> DataFrame:
    """`without` names the inputs of which no record in question is taken."""
    inputs = {name: _taken(job, part, records, name in without) for name, part in job.streams.items()}
    rows = laid_out(job.transform(**inputs), job)
    return rows.drop(PART, "record") if "record" not in match_columns(job) else rows.drop(PART)


def _taken(job: StreamingJob, part: Stream, records: DataFrame, without: bool) -> DataFrame:
    own = parsed(records, part)
    if part.watermarked and not job.output.keyed:
        own = own.where(~_dropped_by_both())
    if part.watermarked and without:
        own = own.where(~_in_question())
    return admitted(own, part)


def _in_question() -> Expression:
    """Behind the watermark of one side, and of the other not, or of another one there: windows close one by one."""
    from pyspark.sql import functions as F

    one, other = F.col("late_left"), F.col("late_right")
    return F.coalesce((one != other) & (F.unix_millis("event_time") <= F.greatest(one, other)), F.lit(False))


def _dropped_by_both() -> Expression:
    """Of a join: its rows are known by their values, so that what neither side took must not be in them."""
    from pyspark.sql import functions as F

    behind = F.unix_millis("event_time") <= F.least("late_left", "late_right")
    return F.coalesce(behind, F.lit(False))


def _looked_up_late(job: StreamingJob, part: Lookup, records: DataFrame) -> DataFrame:
    """Rows that one side had let go before the version of their lookup came, and the other had not."""
    from pyspark.sql import functions as F

    wait = int(part.waits.total_seconds() * 1000)
    clocks = (F.col("clock_left") - wait, F.col("clock_right") - wait)
    versions = (
        parsed(records, part)
        .where("reason is null")
        .select(
            F.col("key").cast("string").alias("_of"),
            F.unix_millis("event_time").alias("_since"),
            F.least(*clocks).alias("_known"),
            F.greatest(*clocks).alias("_missed"),
        )
    )
    rows = _transformed(job, records, frozenset())
    at = F.unix_millis(part.at)
    affected = (F.col("_of") == F.col(part.on).cast("string")) & (at >= F.col("_since"))
    affected = affected & (at > F.col("_known")) & (at <= F.col("_missed"))
    return rows.join(versions, affected, "left_semi")


def main(request: str) -> None:
    from pyspark.sql import functions as F

    from platform_core.declare.discover import load_job
    from platform_core.settings import load
    from platform_core.stream.session import session
    from platform_core.stream.source import records_in

    asked = json.loads(Path(request).read_text())
    settings = load()
    job = load_job(asked["job"], settings.root)
    spark: SparkSession = session(settings, f"compare {job.name}")
    batches = {side: [Taken.of_plain(one) for one in asked[side]] for side in _SIDES}
    read = records_in(spark, settings, as_numbers(asked["start"]), as_numbers(asked["end"]))
    records = told_apart(read, batches).cache()
    differing = plain(spark.read.parquet(asked["rows"]))
    types = {column.name: column.sql for column in job.output.columns}
    flat = [name for name in match_columns(job) if "<" not in types[name]]
    typed = differing.withColumns({name: F.col(name).cast(types[name]) for name in flat})
    numbers = numbers_of(typed.select("number", *match_columns(job)), touched(job, records))
    spark.stop()
    print(json.dumps(numbers))


if __name__ == "__main__":
    main(sys.argv[1])
