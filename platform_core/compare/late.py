"""Which differing rows come of records that two releases took differently, because their batches were others.

`archived/explain.py` runs it in the newer release's archive: it reads the records of a neighbourhood in time again,
computes the transform as a batch, once of what each side took and refused, and tells for which rows that gives exactly
what the two tables hold. So a bug in a row that late records touched, too, is not hidden. infra/decisions/0001 says
which records a watermark drops.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from platform_core.compare.recomputed import Recomputation, Texts, collected, match_columns, of_keys, transformed, ways
from platform_core.control.position import Offsets, as_numbers, as_text
from platform_core.declare import Lookup, StreamingJob
from platform_core.streaming.source.parsing import parsed_at_rest

if TYPE_CHECKING:
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


def explained(job: StreamingJob, records: DataFrame, rows: DataFrame, ignored: Collection[str] = ()) -> list[int]:
    """Numbers of the differing rows that are exactly what the transform gives of the records as each side took them.

    `rows` has number, side and the table's columns; those that are `ignored` may differ anyhow.
    """
    from pyspark.sql import functions as F

    names = match_columns(job)
    spoken = {name for part in job.lookups.values() for name in (*part.fills, *part.otherwise)}
    values = [name for name in rows.columns if name not in {"number", "side", "kind", *names, *ignored, *spoken}]
    actual = collected(rows, "number", "side", names=(*names, *values))
    times = tuple(name for name, kind in rows.dtypes if kind == "timestamp")
    left, sound = {number for number, _ in actual}, set[int]()
    for way in ways(job, times):
        some = {one: row for one, row in actual.items() if one[0] in left}
        asked = Recomputation(
            job, records, rows.where(F.col("number").isin(sorted(left))), (*names, *values), times, some
        )
        given = {side: way(asked, side) for side in _SIDES}
        sound |= {number for number in left if _sound(number, some, given, len(names))}
        left -= sound
        if not left:
            break
    return sorted({*sound, *_looked_up_late(job, records, actual, names)})


def _sound(number: int, actual: Mapping[Any, Texts], given: Mapping[str, set[Texts]], key: int) -> bool:
    """Both sides' rows are what was computed, and none was where a side has none."""
    one = next(actual[number, side] for side in _SIDES if (number, side) in actual)
    for side in _SIDES:
        row = actual.get((number, side))
        if row is None and any(other[:key] == one[:key] for other in given[side]):
            return False
        if row is not None and row not in given[side]:
            return False
    return True


def _looked_up_late(
    job: StreamingJob, records: DataFrame, actual: Mapping[Any, Texts], names: Sequence[str]
) -> list[int]:
    """Rows that a side may have let go before a version of their lookup came. When the other did is not looked at: a
    row that was late itself is let go at once, with what is known by then."""
    found: set[Texts] = set()
    keys = {row[: len(names)] for row in actual.values()}
    for part in job.lookups.values():
        found |= of_keys(_missed(job, part, records), names, keys)
    return [number for (number, _), row in actual.items() if row[: len(names)] in found]


def _missed(job: StreamingJob, part: Lookup, records: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    wait = int(part.waits.total_seconds() * 1000)
    read = parsed_at_rest(records, part).where("reason is null")
    versions = read.select(
        F.col("key").cast("string").alias("_of"),
        F.unix_millis("event_time").alias("_since"),
        (F.greatest("clock_left", "clock_right") - wait).alias("_missed"),
    )
    rows, at = transformed(job, records, F.lit(True)), F.unix_millis(part.at)
    affected = (F.col("_of") == F.col(part.on).cast("string")) & (at >= F.col("_since")) & (at <= F.col("_missed"))
    return rows.join(versions, affected, "left_semi")


def main(request: str) -> None:
    from pyspark.sql import functions as F

    from platform_core.broker import Broker
    from platform_core.control.store import ControlStore
    from platform_core.declare.discover import load_job
    from platform_core.settings import load
    from platform_core.streaming.driver.session import session
    from platform_core.streaming.source.history import History

    asked = json.loads(Path(request).read_text())
    settings = load()
    job = load_job(asked["job"], settings.root)
    spark: SparkSession = session(settings, f"compare {job.name}")
    # many small runs: to plan them anew and to compile them takes longer than they do; and of windows over a filter
    # Spark 4.2 generates code that does not compile
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    spark.conf.set("spark.sql.codegen.wholeStage", "false")
    batches = {side: [Taken.of_plain(one) for one in asked[side]] for side in _SIDES}
    start, end = as_numbers(asked["start"]), as_numbers(asked["end"])
    topics = {name: facts.id for name, facts in Broker(settings).topics(end).items()}
    read = History(settings, lambda: ControlStore.open(settings), job, topics).records(spark, start, end)
    records = told_apart(read, batches).cache()
    types = {column.name: column.sql for column in job.output.columns}
    differing = spark.read.parquet(asked["rows"])
    flat = {name: F.col(name).cast(types[name]) for name in differing.columns if "<" not in types.get(name, "<")}
    numbers = explained(job, records, differing.withColumns(flat), asked["ignored"])
    spark.stop()
    print(json.dumps(numbers))
