"""A query that has ended leaves nothing of itself behind in the JVM."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from platform_core.services import process
from platform_core.streaming.driver.query import ReleaseQuery
from tests.testing import jobs


class Batches:
    """As a release's: what it asks for while a batch runs leads back to the query."""

    def __init__(self) -> None:
        self.rows, self.query = 0, ReleaseQuery.__new__(ReleaseQuery)

    def run(self, frame: DataFrame, _: int) -> None:
        self.rows += frame.count()
        assert self.query.query.isActive


def test_what_a_query_held_is_free_once_it_has_ended(spark: SparkSession, tmp_path: Path) -> None:
    numbers = tmp_path / "numbers"
    spark.range(3).write.json(str(numbers))
    batches = Batches()
    rows = spark.readStream.schema("id LONG").json(str(numbers))
    batches.query = ReleaseQuery(jobs.once, rows, tmp_path / "checkpoint", batches.run)
    batches.query.start(once=True)
    kept = weakly(spark, batches.query.query)
    batches.query.watch(lambda: False)
    assert batches.rows == 3
    assert not batches.query.active
    assert process.until(lambda: is_free(spark, kept), 30), "the JVM still holds the query"


def weakly(spark: SparkSession, query: Any) -> Any:
    jvm: Any = spark._jvm  # pyright: ignore[reportPrivateUsage]
    return jvm.java.lang.ref.WeakReference(query._jsq.streamingQuery())


def is_free(spark: SparkSession, kept: Any) -> bool:
    jvm: Any = spark._jvm  # pyright: ignore[reportPrivateUsage]
    gc.collect()
    jvm.java.lang.System.gc()
    return kept.get() is None
