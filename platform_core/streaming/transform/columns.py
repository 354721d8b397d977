"""Whether a transform gives the columns that its table declares, found out before a byte is read.

`python -m platform_core.streaming.transform.columns ROOT '{"jobs": [...], "daily": [...]}'` prints the mismatches as
JSON: a process of its own keeps Spark's words off the terminal of `weir check`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from platform_core.declare import DailyTable, Stream, StreamingJob, Table
from platform_core.declare.batches import DAY
from platform_core.streaming.batch.author_errors import in_brief
from platform_core.streaming.source.parsing import admitted, clocked, parsed, qualified, watermark_delay
from platform_core.streaming.transform.nodes import nodes
from platform_core.streaming.transform.null_joins import null_joins
from platform_core.streaming.transform.repeatable import Calls, unrepeatable, unrepeatable_rule, watched

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_KAFKA = "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, timestampType INT"
_NOTHING = "no such column"
_REPEATABLE = "what a replay is answered alike"
_NULL_SAFE = "equal keys of which one is never null (`AND a IS NOT NULL`), as Spark's streams match null with null"


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
        read = parsed(spark.createDataFrame([], _KAFKA), table.input)
        records = admitted(read, table.input).withColumn(DAY, F.lit(None).cast("date"))
        found = _asking_rules(table.name, "input", table.input, read)
    except PySparkException as error:
        return [Mismatch(table.name, "input", "rules over the topic's columns", in_brief(error))]
    try:
        with watched() as calls:
            rows = table.transform(spark.createDataFrame([], records.schema))
    except Exception as error:  # the author's code may raise anything
        return [_failed(table.name, table.output, error)]
    came, declared = _types(rows), _declared(table.output, spark)
    found += [  # a column more is left out by the platform
        Mismatch(table.name, f"transform column {name!r}", kind, came.get(name, _NOTHING))
        for name, kind in declared.items()
        if came.get(name) != kind
    ]
    return found + _unrepeatable(table.name, rows, calls)


def check(job: StreamingJob, spark: SparkSession) -> list[Mismatch]:
    """Every column in which the transform's outcome, over no records, differs from the output table; and what in it a
    stream or a replay would compute otherwise than its author means."""
    from pyspark.errors import PySparkException

    found: list[Mismatch] = []
    inputs: dict[str, DataFrame] = {}
    with TemporaryDirectory() as nowhere:
        for name, part in job.streams.items():
            here = f"inputs[{name!r}]"
            try:
                read = parsed(spark.createDataFrame([], _KAFKA), part)
                inputs[name] = _streamed(admitted(read, part), part, nowhere)
                found += _asking_rules(job.name, here, part, read)
            except PySparkException as error:
                return [Mismatch(job.name, here, "rules over the topic's columns", in_brief(error))]
        try:
            with watched() as calls:
                rows = job.transform(**inputs)
        except Exception as error:  # the author's code may raise anything
            return [_failed(job.name, job.output, error)]
        found += _compare(job, _types(rows), _declared(job.output, spark))
        found += _unrepeatable(job.name, rows, calls)
        found += _state_functions(job, rows)
        return found + [Mismatch(job.name, "transform", _NULL_SAFE, one) for one in null_joins(rows)]


def _state_functions(job: StreamingJob, rows: DataFrame) -> list[Mismatch]:
    """Spark keeps their state in RocksDB alone, and says so only when the query runs."""
    frame: Any = rows
    names = [str(node.nodeName()) for node in nodes(frame._jdf.queryExecution().analyzed())]
    if job.state == "memory" and any("TransformWithState" in name for name in names):
        return [Mismatch(job.name, "state", "'disk', as state functions need it", "'memory'")]
    return []


def _streamed(seen: DataFrame, part: Stream, folder: str) -> DataFrame:
    """A stream of what the transform sees, without what the platform makes it of: nothing of that is the author's.

    Records without what the topic requires are refused before, so that these columns, and the key, are never null.
    """
    from pyspark.sql import functions as F

    rows = seen.sparkSession.readStream.schema(seen.schema).parquet(folder)
    given = [column.name for column in part.topic.columns if column.required]
    given += [] if part.topic.key is None or part.verbatim else ["key"]
    for name in given:
        rows = rows.where(F.col(name).isNotNull())
    return clocked(rows, part, watermark_delay(part))


def _failed(name: str, output: Table, error: Exception) -> Mismatch:
    return Mismatch(name, "transform", f"the columns of table {output.name!r}", in_brief(error))


def _unrepeatable(name: str, rows: DataFrame, calls: Calls) -> list[Mismatch]:
    return [Mismatch(name, "transform", _REPEATABLE, one) for one in unrepeatable(rows, calls)]


def _asking_rules(name: str, field: str, part: Stream, read: DataFrame) -> list[Mismatch]:
    names = {column.name for column in part.topic.columns}
    return [
        Mismatch(name, f"{field} rule {rule.name!r}", _REPEATABLE, one)
        for rule in part.rules
        for one in unrepeatable_rule(read, qualified(rule.holds, names))
    ]


def _types(frame: DataFrame) -> dict[str, str]:
    return {field.name: field.dataType.simpleString() for field in frame.schema.fields}


def _declared(table: Table, spark: SparkSession) -> dict[str, str]:
    schema = ", ".join(f"`{column.name}` {column.sql}" for column in table.columns)
    return _types(spark.createDataFrame([], schema))


def _compare(job: StreamingJob, came: Mapping[str, str], table: Mapping[str, str]) -> list[Mismatch]:
    taken = {name for lookup in job.lookups.values() for name in lookup.fills}  # the platform adds them afterwards
    declared = {name: kind for name, kind in table.items() if name not in taken}
    found = [
        Mismatch(job.name, f"transform column {name!r}", kind, came.get(name, _NOTHING))
        for name, kind in declared.items()
        if came.get(name) != kind
    ]
    more = [name for name in came if name not in declared and name != "record"]  # the platform orders rows by `record`
    return found + [Mismatch(job.name, f"transform column {name!r}", _NOTHING, came[name]) for name in more]


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
