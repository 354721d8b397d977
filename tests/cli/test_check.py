"""weir check names job, field, what was declared and what came."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from analytics.daily_prices.table import daily_prices, prices_by_day
from ingest.topics import STOCKS, USER_PROFILES
from platform_core.declare import Lookup, RowRule, Stream, StreamingJob, Table
from platform_core.declare.discover import load_daily_tables, load_jobs
from platform_core.settings import ROOT
from platform_core.streaming.transform.columns import Mismatch, check, check_daily
from tests.cli.conftest import Weir
from tests.testing.stateful import silent

TRADES = Stream(STOCKS, lateness="10 seconds")


def prices(trades: DataFrame) -> DataFrame:
    return trades.select("ticker", "price", F.col("event_time").alias("at"))


def job(schema: str, transform: Any = prices, **more: Any) -> StreamingJob:
    return StreamingJob(
        name="prices",
        inputs={"trades": TRADES, **more},
        transform=transform,
        output=Table(name="prices", schema=schema),
    )


@pytest.mark.stack
def test_every_job_of_the_tree_gives_its_declared_columns(spark: SparkSession) -> None:
    assert [mismatch for one in load_jobs(ROOT).values() for mismatch in check(one, spark)] == []


@pytest.mark.stack
@pytest.mark.parametrize(
    ("schema", "mismatches"),
    [
        ("ticker STRING, price DECIMAL(18,6), at TIMESTAMP", []),
        ("ticker STRING, price DOUBLE, at TIMESTAMP", [("transform column 'price'", "double", "decimal(18,6)")]),
        ("ticker STRING, price DECIMAL(18,6)", [("transform column 'at'", "no such column", "timestamp")]),
        (
            "ticker STRING, price DECIMAL(18,6), at TIMESTAMP, size BIGINT",
            [("transform column 'size'", "bigint", "no such column")],
        ),
    ],
)
def test_a_column_that_differs_is_named(
    spark: SparkSession, schema: str, mismatches: list[tuple[str, str, str]]
) -> None:
    assert check(job(schema), spark) == [Mismatch("prices", *one) for one in mismatches]


@pytest.mark.stack
def test_columns_of_a_lookup_come_from_the_platform(spark: SparkSession) -> None:
    lookup = Lookup(USER_PROFILES, on="ticker", at="at", takes=("zipcode",))
    assert check(job("ticker STRING, price DECIMAL(18,6), at TIMESTAMP, zipcode STRING", names=lookup), spark) == []


@pytest.mark.stack
def test_every_daily_table_gives_its_declared_columns_and_one_that_does_not_is_named(spark: SparkSession) -> None:
    assert [mismatch for one in load_daily_tables(ROOT).values() for mismatch in check_daily(one, spark)] == []
    wrong = replace(daily_prices, transform=lambda records: prices_by_day(records).drop("low"))
    assert check_daily(wrong, spark) == [
        Mismatch("daily_prices", "transform column 'low'", "decimal(18,6)", "no such column")
    ]


@pytest.mark.stack
def test_a_transform_that_fails_is_named(spark: SparkSession) -> None:
    def wrong(trades: DataFrame) -> DataFrame:
        return trades.select("tikcer")

    found = check(job("ticker STRING", wrong), spark)
    assert [(one.field, "tikcer" in one.came) for one in found] == [("transform", True)]


@pytest.mark.stack
def test_a_state_function_whose_state_shall_be_in_memory_is_refused(spark: SparkSession) -> None:
    (found,) = check(replace(silent, state="memory"), spark)
    assert str(found) == "job 'silent'.state: declared 'disk', as state functions need it, came 'memory'"
    assert check(silent, spark) == []


@pytest.mark.stack
def test_a_rule_over_a_column_that_is_not_there_is_named(spark: SparkSession) -> None:
    ruled = replace(TRADES, rules=(RowRule("has a price", "prize > 0"),))
    found = check(job("ticker STRING, price DECIMAL(18,6), at TIMESTAMP", trades=ruled), spark)
    assert [one.field for one in found] == ["inputs['trades']"]


def test_what_is_declared_is_told_one_by_one(weir: Weir) -> None:
    ran = weir("check", "--no-columns", "--json")
    assert ran.code == 0
    assert {one["what"]: one["wrong"] for one in ran.json}.items() >= {"job stock_stats": "", "topics": ""}.items()
    assert [one for one in ran.json if one["wrong"]] == []


def test_a_job_that_is_not_there_is_a_finding(weir: Weir) -> None:
    ran = weir("check", "stokc_stats")
    assert ran.code == 65
    assert "WRONG  job stokc_stats: There is no job 'stokc_stats'. Jobs here: " in ran.out
    assert "Traceback" not in ran.err
