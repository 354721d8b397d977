"""Which rows go to which topic: Spark, which authors know, and DuckDB, which publishes, answer a condition alike."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from platform_core.declare import Format, Publish, StreamingJob, Text, Topic
from platform_core.declare.schemas import columns
from platform_core.names import CHANGE
from platform_core.streaming.sink.encoding import chosen, records
from platform_core.tables.changes import ChangeType
from platform_core.tables.schema import arrow_schema, delta_schema
from tests.testing.jobs import job

SCHEMA = "level STRING, retries INT, bytes BIGINT, share DOUBLE, price DECIMAL(18,6), paid BOOLEAN, `odd name` STRING"
ROWS: list[tuple[Any, ...]] = [
    ("ERROR", 3, 2**40, 0.1, Decimal("0.100000"), True, "x"),
    ("error", -3, -1, float("nan"), Decimal("-7.250000"), False, ""),
    ("", 0, 0, float("inf"), Decimal(0), None, None),
    ("größe", None, None, -0.0, None, True, "it's"),
    (None, 7, 7, None, Decimal("999999999999.999999"), False, "x"),
]
CONDITIONS = [
    "level = 'ERROR'",
    "level <> 'ERROR' OR level IS NULL",
    "level IN ('ERROR', 'größe', '')",
    "NOT level IN ('ERROR')",
    "level > 'ERROR'",
    "retries BETWEEN -3 AND 3",
    "retries >= 3 AND NOT paid",
    "bytes > 1099511627775",
    "share > 0.05",
    "share = 0",
    "price >= 0.1",
    "price < -7.2",
    "paid",
    "NOT paid",
    "paid IS NOT NULL AND (retries < 0 OR level = 'error')",
    "`odd name` = 'it\\'s'",
    "`odd name` <> ''",
    "level = NULL",
    "true",
    "retries = bytes",
]


@pytest.fixture
def duck() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        yield connection


@pytest.fixture(scope="module")
def table() -> pa.Table:
    schema = arrow_schema(delta_schema(columns(SCHEMA, "rows"))).append(pa.field("id_", pa.int64()))
    names = [column.name for column in columns(SCHEMA, "rows")]
    named = [dict(zip(names, row, strict=True)) | {"id_": number} for number, row in enumerate(ROWS)]
    return pa.Table.from_pylist(named, schema=schema)


@pytest.fixture(scope="module")
def by_spark(spark: SparkSession) -> dict[str, list[int]]:
    """Of each condition the rows for which it holds, in one pass."""
    rows = spark.createDataFrame([(*row, number) for number, row in enumerate(ROWS)], f"{SCHEMA}, id_ BIGINT")
    held = rows.select("id_", *(F.expr(one).alias(f"c{place}") for place, one in enumerate(CONDITIONS))).collect()
    return {one: [row["id_"] for row in held if row[f"c{place}"]] for place, one in enumerate(CONDITIONS)}


def to(where: str) -> Publish:
    return Publish(Topic(name="out", value="line STRING", format=Format.TEXT), Text("level"), Text("level"), where)


def declared(*publishes: Publish, key: str = "") -> StreamingJob:
    return job("routed", lambda purchases: purchases, SCHEMA, key, publish=publishes)


@pytest.mark.parametrize("where", CONDITIONS)
def test_a_condition_holds_for_the_rows_for_which_it_does_in_spark(
    where: str, table: pa.Table, by_spark: dict[str, list[int]], duck: duckdb.DuckDBPyConnection
) -> None:
    declared(to(where))  # it is taken
    rows, others = chosen(to(where), table, duck)
    assert rows["id_"].to_pylist() == by_spark[where]
    assert sorted(rows["id_"].to_pylist() + others["id_"].to_pylist()) == list(range(len(ROWS)))


def test_each_topic_gets_its_rows(table: pa.Table, duck: duckdb.DuckDBPyConnection) -> None:
    high = Publish(Topic(name="high", value="n INT"), Text("level"), Text("retries"), "retries >= 3")
    every = Publish(Topic(name="all", value="n INT"), Text("retries"), Text("level"))
    found = records(declared(high, every), table.drop_columns(["id_"]), duck)
    assert found["high"] == [(b"ERROR", b"3"), (None, b"7")]
    assert len(found["all"]) == len(ROWS)


def test_a_row_that_leaves_a_topic_of_its_key_is_a_tombstone_there(duck: duckdb.DuckDBPyConnection) -> None:
    few = Publish(Topic(name="few", value="n INT"), Text("level"), Text("retries"), "retries < 3")
    changes = pa.table(
        {
            "level": ["a", "b", "c"],
            "retries": pa.array([1, 7, 1], pa.int32()),
            CHANGE: [ChangeType.UPDATE.value, ChangeType.UPDATE.value, ChangeType.DELETE.value],
        }
    )
    assert records(declared(few, key="level"), changes, duck)["few"] == [(b"a", b"1"), (b"c", None), (b"b", None)]
    assert records(declared(few), changes, duck)["few"] == [(b"a", b"1")]
