"""Whether a transform gives the columns that its table declares, found out before a byte is read.

`python -m platform_core.stream.columns ROOT '{"jobs": [...], "daily": [...]}'` prints the mismatches as JSON: a process
of its own keeps Spark's words off the terminal of `weir check`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from platform_core.declare import DailyTable, Stream, StreamingJob
from platform_core.declare.batches import DAY
from platform_core.stream.intake import admitted, clocked, parsed, watermark_delay

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_KAFKA = "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, timestampType INT"
_NOTHING = "no such column"


@dataclass(frozen=True)
class Mismatch:
    job: str
    field: str
    declared: str
    came: str

    def __str__(self) -> str:
        return f"job {self.job!r}.{self.field}: declared {self.declared}, came {self.came}"


def check_daily(table: DailyTable, spark: SparkSession) -> list[Mismatch]:
    """The same of a daily table, whose transform has a day beside each record."""
    from pyspark.errors import PySparkException
    from pyspark.sql import functions as F

    try:
        read = parsed(spark.createDataFrame([], _KAFKA), table.input).withColumn("late", F.lit(False))
        records = admitted(read, table.input).withColumn(DAY, F.lit(None).cast("date"))
    except PySparkException as error:
        return [Mismatch(table.name, "input", "rules over the topic's columns", _first_line(error))]
    try:
        came = _types(table.transform(records))
    except Exception as error:  # the author's code may raise anything
        return [Mismatch(table.name, "transform", f"the columns of table {table.name!r}", _first_line(error))]
    declared = _types(spark.createDataFrame([], table.output.schema))
    return [  # a column more is left out by the platform
        Mismatch(table.name, f"transform column {name!r}", kind, came.get(name, _NOTHING))
        for name, kind in declared.items()
        if came.get(name) != kind
    ]


def check(job: StreamingJob, spark: SparkSession) -> list[Mismatch]:
    """Every column in which the transform's outcome, over no records, differs from the output table."""
    from pyspark.errors import PySparkException

    inputs: dict[str, DataFrame] = {}
    for name, part in job.streams.items():
        try:
            inputs[name] = _nothing_of(part, spark)
        except PySparkException as error:
            return [Mismatch(job.name, f"inputs[{name!r}]", "rules over the topic's columns", _first_line(error))]
    try:
        came = _types(job.transform(**inputs))
    except Exception as error:  # the author's code may raise anything
        return [Mismatch(job.name, "transform", f"the columns of table {job.output.name!r}", _first_line(error))]
    return _compare(job, came, _types(spark.createDataFrame([], job.output.schema)))


def _nothing_of(part: Stream, spark: SparkSession) -> DataFrame:
    records = spark.createDataFrame([], _KAFKA)
    return clocked(admitted(parsed(records, part), part), part, watermark_delay(part))


def _types(frame: DataFrame) -> dict[str, str]:
    return {field.name: field.dataType.simpleString() for field in frame.schema.fields}


def _compare(job: StreamingJob, came: Mapping[str, str], table: Mapping[str, str]) -> list[Mismatch]:
    taken = {name for lookup in job.lookups.values() for name in lookup.takes}  # the platform adds them afterwards
    declared = {name: kind for name, kind in table.items() if name not in taken}
    found = [
        Mismatch(job.name, f"transform column {name!r}", kind, came.get(name, _NOTHING))
        for name, kind in declared.items()
        if came.get(name) != kind
    ]
    more = [name for name in came if name not in declared and name != "record"]  # the platform orders rows by `record`
    return found + [Mismatch(job.name, f"transform column {name!r}", _NOTHING, came[name]) for name in more]


def _first_line(error: Exception) -> str:
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0] if text else 'no message'}"


def main(root: str, asked: dict[str, list[str]]) -> None:
    from pyspark.sql import SparkSession

    from platform_core.declare.discover import load_daily_tables, load_job

    builder = SparkSession.builder.master("local[1]").appName("weir check")
    for key, value in {
        "spark.ui.enabled": "false",
        "spark.driver.memory": "512m",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.session.timeZone": "UTC",
    }.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    found = [mismatch for name in asked["jobs"] for mismatch in check(load_job(name, Path(root)), spark)]
    if asked["daily"]:
        known = load_daily_tables(Path(root))
        found += [mismatch for name in asked["daily"] for mismatch in check_daily(known[name], spark)]
    spark.stop()
    print(json.dumps([asdict(mismatch) for mismatch in found]))


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))
