"""A job as one plan: inputs taken in, the transform, and the lookups' records beside it, as one DataFrame.

Lookup records ride in the same query as the events: one offset log then fixes the position of all inputs, and a
repeated batch sees the same lookups.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from platform_core.declare import Buckets, Days, Hours, Lookup, StreamingJob, Table
from platform_core.names import PART
from platform_core.streaming.source.kind import Source
from platform_core.streaming.source.parsing import INPUT, admitted, clocked, job_delay, observed, parsed, parsed_at_rest

if TYPE_CHECKING:
    from pyspark.sql import Column as Expression
    from pyspark.sql import DataFrame


def lookup_column(name: str) -> str:
    return f"_lookup_{name}"


def streamed(job: StreamingJob, source: Source) -> DataFrame:
    """What the release's query computes: output rows, and lookup records in columns of their own."""
    delay = job_delay(job)
    inputs = {name: clocked(source.rows(name, delay), part, delay) for name, part in job.transformed.items()}
    rows = laid_out(job.transform(**inputs), job)
    raw = source.lookups()
    if raw is None:
        return rows
    for name, part in job.lookups.items():
        rows = rows.unionByName(_lookup_records(raw, name, part), allowMissingColumns=True)
    return rows


def keeps_time(rows: Any) -> bool:
    """Whether a stateful function of the author's own is in it, which may have timers."""
    return "WithState" in rows._jdf.queryExecution().logical().toString()


def computed(job: StreamingJob, events: DataFrame) -> DataFrame:
    """The same transform over records at rest: the oracle for the stream, without lookups."""
    inputs = {name: admitted(parsed_at_rest(events, part), part) for name, part in job.streams.items()}
    return laid_out(job.transform(**inputs), job)


def laid_out(rows: DataFrame, job: StreamingJob) -> DataFrame:
    """The transform's columns in the table's order, `record` if it kept it, and the physical part."""
    table = job.output
    given = [column.name for column in table.columns if column.name in rows.columns]
    kept = ["record"] if "record" in rows.columns and "record" not in given else []
    chosen = rows.select(*given, *kept)
    part = part_of(table)
    return chosen if part is None else chosen.withColumn(PART, part)


def part_of(table: Table) -> Expression | None:
    from pyspark.sql import functions as F

    match table.layout:
        case Hours(column):
            return F.date_format(column, "yyyy-MM-dd'T'HH")
        case Days(column):
            return F.date_format(column, "yyyy-MM-dd")
        case Buckets(column, count):
            return F.lpad(F.pmod(F.crc32(F.col(column).cast("string")), F.lit(count)).cast("string"), 4, "0")
        case None:
            return None


def _lookup_records(raw: DataFrame, name: str, part: Lookup) -> DataFrame:
    from pyspark.sql import functions as F

    read = observed(parsed(raw, part), INPUT + name).where("reason is null")
    record = F.struct(
        F.col("key").cast("string").alias("key"),
        F.col("event_time").alias("at"),
        F.col("offset"),
        # a nullable boolean: Arrow refuses a null struct whose field may not be null
        F.when(F.col("value").isNull(), True).when(F.col("value").isNotNull(), False).alias("deleted"),
        *(F.col(f"v.{column}").alias(column) for column in part.takes),
    )
    return read.select(record.alias(lookup_column(name)))
