"""One side of `weir plan --last`: a job's transform over a range of offsets, as a batch, into a Delta table.

`archived/trial.py` runs it, each side with its own code and in its own environment. It prints what it found as JSON,
last.
"""

from __future__ import annotations

import json
import os
import sys
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
from deltalake import write_deltalake

from platform_core.control.position import Position
from platform_core.declare import StreamingJob
from platform_core.declare.discover import load_job
from platform_core.names import PART
from platform_core.settings import Settings, load
from platform_core.storage import Place
from platform_core.streaming.batch.value import Batch
from platform_core.streaming.driver.session import session, session_conf
from platform_core.streaming.sink.lookups import LookupTable, split
from platform_core.streaming.sink.table import newest_a_key
from platform_core.streaming.source.kafka_source import event_topics, lookup_topics, records_in
from platform_core.streaming.source.parsing import taken
from platform_core.streaming.transform.query_plan import streamed
from platform_core.tables.schema import arrow_schema, table_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_OPTIONS = "spark.driver.extraJavaOptions"
_SHORT = "-XX:TieredStopAtLevel=1"  # a minute's life: the second compiler would take more than it gives back


class Range:
    """The records between two positions, at rest; the job's own topics of them."""

    def __init__(self, spark: SparkSession, settings: Settings, job: StreamingJob, asked: dict[str, Any]) -> None:
        self._spark, self._settings, self._job = spark, settings, job
        self._start, self._end = _offsets(asked["start"]), _offsets(asked["end"])

    def rows(self, name: str, delay: timedelta | None) -> DataFrame:
        return taken(self._events, name, self._job.streams[name], delay)

    @cached_property
    def _events(self) -> DataFrame:
        return self._read([topic.name for topic in event_topics(self._job)])

    def lookups(self) -> DataFrame | None:
        names = [topic.name for topic in lookup_topics(self._job)]
        return self._read(names) if names else None

    def _read(self, names: list[str]) -> DataFrame:
        start, end = ({name: offsets[name] for name in names} for offsets in (self._start, self._end))
        return records_in(self._spark, self._settings, start, end)


def times_of(job: StreamingJob, frame: DataFrame) -> dict[str, int | None]:
    """The oldest and the newest event that the transform was given, once `frame` has been computed: what lies beyond
    them was not read whole. Asked of the working tree alone, whose observations are as this file knows them."""
    from platform_core.streaming.batch.metrics import observed_in
    from platform_core.streaming.source.parsing import INPUT

    computed: Any = frame
    metrics = observed_in(computed._jdf.queryExecution())
    inputs = [metrics.get(INPUT + name, {}) for name in job.streams]
    oldest, newest = ([one[at] for one in inputs if one.get(at) is not None] for at in ("oldest_ms", "newest_ms"))
    return {"oldest_ms": min(oldest, default=None), "newest_ms": max(newest, default=None)}


def rows_of(job: StreamingJob, frame: DataFrame, folder: Path) -> pa.Table:
    """As a release writes them: with the lookups' columns, one row a key."""
    rows = frame.toArrow()
    shape = arrow_schema(table_schema(job.output))
    duck = duckdb.connect(config={"threads": "2"})
    if job.lookups:
        rows, versions = split(rows, job.lookups)
        batch = Batch(position=Position("plan", 0, {}), changes=rows, lookups=versions)
        for name, part in job.lookups.items():
            place = Place(str(folder / f"lookup_{name}"))
            batch = LookupTable(name, part, place, "plan", job.output, duck).commit(batch)
        rows = batch.changes
    rows = newest_a_key(rows, job.output, duck)
    return rows.select(shape.names).cast(shape).drop_columns([PART] if PART in shape.names else [])


def _offsets(raw: dict[str, dict[str, int]]) -> dict[str, dict[int, int]]:
    return {topic: {int(p): o for p, o in parts.items()} for topic, parts in raw.items()}


def halved(master: str) -> str:
    """Of this machine's processors one side has half. Beside busy streams a plan took 52 s instead of 61 for it."""
    return f"local[{max(1, (os.cpu_count() or 1) // 2)}]" if master.startswith("local") else master


def main(name: str, out: Path) -> None:
    """It is asked once Spark stands: starting takes as long as finding out what to ask."""
    settings = load()
    job = load_job(name, settings.root)
    app = f"plan of {job.name}"
    java = session_conf(settings, app)[_OPTIONS].replace("-XX:+UseParallelGC", "-XX:+UseSerialGC")
    spark = session(settings, app, **{_OPTIONS: f"{java} {_SHORT}", "spark.master": halved(settings.spark.master)})
    question = sys.stdin.readline()
    if not question:
        return  # whoever asks has gone
    asked = json.loads(question)
    frame = streamed(job, Range(spark, settings, job, asked))
    rows = rows_of(job, frame, out)
    write_deltalake(str(out / "rows"), rows)
    told = {"rows": rows.num_rows, **(times_of(job, frame) if asked["times"] else {})}
    spark.stop()
    print(json.dumps(told), flush=True)
