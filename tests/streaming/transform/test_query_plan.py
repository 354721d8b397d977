"""Where a row stands on disk, and what a query's pace is."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from platform_core.declare import Buckets, Days, Hours, StreamingJob, Table
from platform_core.declare.tables import Layout
from platform_core.names import PART
from platform_core.streaming.batch.author_errors import first_line
from platform_core.streaming.transform.query_plan import laid_out
from platform_core.testing import at
from tests.testing import jobs


def laid(layout: Layout) -> StreamingJob:
    table = Table(name="laid", schema="user STRING, at TIMESTAMP", layout=layout)
    return replace(jobs.newest, output=table)


@pytest.mark.parametrize(
    ("layout", "part"), [(Hours("at"), "2025-03-01T12"), (Days("at"), "2025-03-01"), (Buckets("user", 16), "0003")]
)
def test_a_rows_part_follows_from_its_columns_alone(spark: SparkSession, layout: Layout, part: str) -> None:
    rows = spark.createDataFrame([("ann", at(0))], "user STRING, at TIMESTAMP")
    assert [row[PART] for row in laid_out(rows, laid(layout)).collect()] == [part]


def test_columns_come_in_the_tables_order_and_record_is_kept_for_the_platform(spark: SparkSession) -> None:
    rows = spark.range(1).select(F.lit(1).alias("more"), F.lit("r").alias("record"), F.lit("ann").alias("user"))
    assert laid_out(rows, laid(None)).columns == ["user", "record"]


def test_an_error_is_told_by_its_first_line_that_says_something() -> None:
    assert first_line(ValueError("\n\n  too much \n at Foo.scala:12")) == "too much"
    assert first_line(ValueError()) == "ValueError"
