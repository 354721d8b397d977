"""One side of `weir plan --last`: a job's transform over a range of offsets, as a batch, into a Delta table.

Run by its path, with the code and in the environment of a release that may be years older than this file: so it uses
what every archive has, and nothing that stands beside it. It prints what it found as JSON, last.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
from deltalake import write_deltalake

from platform_core.declare import Stream, StreamingJob
from platform_core.declare.discover import load_job
from platform_core.names import PART
from platform_core.settings import Settings, load
from platform_core.stream.lookups import LookupTable, split
from platform_core.stream.plan import streamed
from platform_core.stream.session import session
from platform_core.stream.source import event_topics, lookup_topics, records_in
from platform_core.tables.schema import arrow_schema, table_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# A minute's life: the second compiler would take more of the machine than it gives back.
SHORT = {
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:-UsePerfData -XX:TieredStopAtLevel=1",
}


class Range:
    """The records between two positions, at rest; the job's own topics of them."""

    def __init__(self, spark: SparkSession, settings: Settings, job: StreamingJob, asked: dict[str, Any]) -> None:
        self._spark, self._settings, self._job = spark, settings, job
        self._start, self._end = _offsets(asked["start"]), _offsets(asked["end"])

    def events(self) -> DataFrame:
        return self._read([topic.name for topic in event_topics(self._job)])

    def lookups(self) -> DataFrame | None:
        names = [topic.name for topic in lookup_topics(self._job)]
        return self._read(names) if names else None

    def times(self) -> dict[str, int | None]:
        """The oldest and the newest event: what lies beyond them was not read whole."""
        from pyspark.sql import functions as F

        rows = [
            times_of(self.events(), part).agg(F.min("at"), F.max("at")).first() for part in self._job.streams.values()
        ]
        oldest, newest = ([row[at] for row in rows if row and row[at] is not None] for at in (0, 1))
        return {"oldest_ms": min(oldest, default=None), "newest_ms": max(newest, default=None)}

    def _read(self, names: list[str]) -> DataFrame:
        start, end = ({name: offsets[name] for name in names} for offsets in (self._start, self._end))
        return records_in(self._spark, self._settings, start, end)


def times_of(events: DataFrame, part: Stream) -> DataFrame:
    """Their times alone: taking records in whole would cost as much as the transform."""
    from pyspark.sql import functions as F

    topic, named = part.topic, part.topic.event_time
    own = events.where(F.col("topic") == topic.name)
    if named is None:
        return own.select(F.unix_millis("timestamp").alias("at"))
    kind = next(column.sql for column in topic.columns if column.name == named)
    value = F.from_json(F.col("value").cast("string"), f"`{named}` {kind}")
    latest = F.unix_millis("timestamp") + int(part.far_future.total_seconds() * 1000)
    return own.select(F.unix_millis(value[named]).alias("at"), latest.alias("latest")).where("at <= latest")


def rows_of(job: StreamingJob, frame: DataFrame, folder: Path) -> pa.Table:
    """As a release writes them: with the lookups' columns, one row a key."""
    rows = frame.toArrow()
    shape = arrow_schema(table_schema(job.output))
    duck = duckdb.connect(config={"threads": "2"})
    if job.lookups:
        rows, versions = split(rows, job.lookups)
        for name, part in job.lookups.items():
            table = LookupTable(name, part, str(folder / f"lookup_{name}"), "plan", duck)
            table.add(versions[name], 0, "{}")
            rows = table.joined(rows, shape.names)
    rows = newest_a_key(job, rows, duck)
    return rows.select(shape.names).cast(shape).drop_columns([PART] if PART in shape.names else [])


def newest_a_key(job: StreamingJob, rows: pa.Table, duck: duckdb.DuckDBPyConnection) -> pa.Table:
    if "record" not in rows.column_names or "record" in {column.name for column in job.output.columns}:
        return rows
    if not job.output.keyed:
        return rows.drop_columns(["record"])
    key = ", ".join(f'"{name}"' for name in job.output.key)
    newest = "record.timestamp DESC, record.partition DESC, record.offset DESC"
    duck.register("rows_", rows)
    ranked = f"SELECT * FROM rows_ QUALIFY row_number() OVER (PARTITION BY {key} ORDER BY {newest}) = 1"
    return duck.sql(ranked).to_arrow_table().drop_columns(["record"])


def _offsets(raw: dict[str, dict[str, int]]) -> dict[str, dict[int, int]]:
    return {topic: {int(p): o for p, o in parts.items()} for topic, parts in raw.items()}


def main(file: str) -> None:
    began, asked = time.monotonic(), json.loads(Path(file).read_text())
    settings, out = load(), Path(asked["out"])
    job = load_job(asked["job"], settings.root)
    spark = session(settings, f"plan of {job.name}", **SHORT)
    records = Range(spark, settings, job, asked)
    rows = rows_of(job, streamed(job, records), out)
    write_deltalake(str(out / "rows"), rows)
    told = {"rows": rows.num_rows, **(records.times() if asked["times"] else {})}
    told["seconds"] = round(time.monotonic() - began, 1)
    spark.stop()
    print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
