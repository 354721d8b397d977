"""Which differing rows come of records that two releases took differently, because their batches were others.

`python -m platform_core.release.compare.late REQUEST` runs in the newer release's archive: it reads the records of a
neighbourhood in time again, computes the transform as a batch, once of what each side took and refused, and tells for
which rows that gives exactly what the two tables hold. So a bug in a row that late records touched, too, is not hidden.
infra/decisions/0001 says which records a watermark drops.
"""

from __future__ import annotations

import json
import sys
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
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
_NEVER = 1 << 62
MOST_SPANS = 60  # each is a run of the transform; where there are more, rows that late records touched are not computed
Texts = tuple[str | None, ...]


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


def explained(job: StreamingJob, records: DataFrame, rows: DataFrame, ignored: Collection[str] = ()) -> list[int]:
    """Numbers of the differing rows that are exactly what the transform gives of the records as each side took them.

    `rows` has number, side and the table's columns; those that are `ignored` may differ anyhow.
    """
    names = match_columns(job)
    spoken = {name for part in job.lookups.values() for name in (*part.takes, *part.otherwise)}
    values = [name for name in rows.columns if name not in {"number", "side", "kind", *names, *ignored, *spoken}]
    actual = _collected(rows, "number", "side", names=(*names, *values))
    keys = {row[: len(names)] for row in actual.values()}
    given = {side: _given(job, records, side, rows, (*names, *values), keys, actual) for side in _SIDES}
    numbers = sorted({number for number, _ in actual})
    sound = [number for number in numbers if _sound(number, actual, given, len(names))]
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


def _given(
    job: StreamingJob,
    records: DataFrame,
    side: str,
    rows: DataFrame,
    names: Sequence[str],
    keys: Collection[Texts],
    actual: Mapping[Any, Texts],
) -> set[Texts]:
    """The transform's rows of these keys, from the records as that side took them."""
    from pyspark.sql import functions as F

    times = [
        F.unix_millis(name) for name, kind in rows.dtypes if kind == "timestamp" and name not in ("number", "side")
    ]
    late = F.coalesce(F.col(f"late_{side}"), F.lit(-1))
    in_time = F.unix_millis("event_time") > late
    if not job.output.keyed or not times:
        return _of_keys(_transformed(job, records, in_time), names, keys)
    closing = F.greatest(*times, F.lit(0)) if len(times) > 1 else times[0]
    found: set[Texts] = set()
    spans = _spans(job, records, ~in_time, late, rows.select(closing).distinct())
    if len(spans) > MOST_SPANS:
        key = len(job.output.key)
        touched = _touched(job, records, in_time, names[:key])
        own = {row for (_, of), row in actual.items() if of == side and row[:key] in touched}
        return own | {
            row for row in _of_keys(_transformed(job, records, in_time), names, keys) if row[:key] not in touched
        }
    for low, high in spans:
        taken = _transformed(job, records, in_time | (late <= low))
        found |= _of_keys(taken.where((closing > low) & (closing <= high)), names, keys)
    return found


def _spans(
    job: StreamingJob, records: DataFrame, behind: Expression, late: Expression, closings: DataFrame
) -> list[tuple[int, int]]:
    """Between which watermarks the differing rows close: rows of one span miss the same late records.

    A record that is behind the watermark still counts in windows that close after it.
    """
    own = [parsed(records, part).where(behind).select(late.alias("at")).distinct() for part in job.streams.values()]
    levels = sorted({row[0] for found in own for row in found.collect()})
    spans: set[tuple[int, int]] = set()
    for (closing,) in closings.collect():
        place = bisect_left(levels, closing)
        low = levels[place - 1] if place else -1
        spans.add((low, levels[place] if place < len(levels) else _NEVER))
    return sorted(spans)


def _touched(job: StreamingJob, records: DataFrame, in_time: Expression, names: Sequence[str]) -> set[Texts]:
    """Keys whose rows this side's late records may have changed. A bug in one of these rows alone would be taken for
    their doing; one in the code shows in all the others, too."""
    from pyspark.sql import functions as F

    whole, without = _transformed(job, records, F.lit(True)), _transformed(job, records, in_time)
    differing = whole.exceptAll(without).unionByName(without.exceptAll(whole))
    return set(_collected(differing, names=names).values())


def _transformed(job: StreamingJob, records: DataFrame, counts: Expression) -> DataFrame:
    inputs = {name: _taken(part, records, counts) for name, part in job.streams.items()}
    return laid_out(job.transform(**inputs), job).drop(PART)


def _taken(part: Stream, records: DataFrame, counts: Expression) -> DataFrame:
    own = parsed(records, part)
    return admitted(own.where(counts) if part.watermarked else own, part)


def _of_keys(rows: DataFrame, names: Sequence[str], keys: Collection[Texts]) -> set[Texts]:
    count = len(next(iter(keys), ()))
    return {row for row in _collected(rows, names=names).values() if row[:count] in keys}


def _collected(rows: DataFrame, *by: str, names: Sequence[str]) -> dict[Any, Texts]:
    """Rows as text: equal exactly when the values are, NaN and null too."""
    from pyspark.sql import functions as F

    chosen = [F.col(name).cast("string").alias(name) for name in names]
    found = [tuple(row) for row in rows.select(*by, *chosen).collect()]
    return {(row[: len(by)] or place): row[len(by) :] for place, row in enumerate(found)}


def _looked_up_late(
    job: StreamingJob, records: DataFrame, actual: Mapping[Any, Texts], names: Sequence[str]
) -> list[int]:
    """Rows that a side may have let go before a version of their lookup came. When the other did is not looked at: a
    row that was late itself is let go at once, with what is known by then."""
    found: set[Texts] = set()
    keys = {row[: len(names)] for row in actual.values()}
    for part in job.lookups.values():
        found |= _of_keys(_missed(job, part, records), names, keys)
    return [number for (number, _), row in actual.items() if row[: len(names)] in found]


def _missed(job: StreamingJob, part: Lookup, records: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    wait = int(part.waits.total_seconds() * 1000)
    read = parsed(records, part).where("reason is null")
    versions = read.select(
        F.col("key").cast("string").alias("_of"),
        F.unix_millis("event_time").alias("_since"),
        (F.greatest("clock_left", "clock_right") - wait).alias("_missed"),
    )
    rows, at = _transformed(job, records, F.lit(True)), F.unix_millis(part.at)
    affected = (F.col("_of") == F.col(part.on).cast("string")) & (at >= F.col("_since")) & (at <= F.col("_missed"))
    return rows.join(versions, affected, "left_semi")


def main(request: str) -> None:
    from pyspark.sql import functions as F

    from platform_core.broker import Broker
    from platform_core.control.store import ControlStore
    from platform_core.declare.discover import load_job
    from platform_core.settings import load
    from platform_core.stream.history import History
    from platform_core.stream.session import session

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


if __name__ == "__main__":
    main(sys.argv[1])
