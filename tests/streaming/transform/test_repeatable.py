"""What a replay is not answered alike is refused by name, file and line."""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from analytics.daily_prices.table import daily_prices, prices_by_day
from platform_core.declare import RowRule
from platform_core.streaming.transform.columns import check, check_daily
from tests.testing import jobs

HERE = "tests/streaming/transform/test_repeatable.py"


def named(name: str) -> str:
    return name


ASKED: dict[str, Callable[[], Column]] = {
    "rand": F.rand,
    "randn": lambda: F.randn(7),
    "uniform": lambda: F.uniform(1, 5),
    "randstr": lambda: F.randstr(5),
    "uuid": lambda: F.expr("uuid()"),
    "shuffle": lambda: F.shuffle(F.array("user")),
    "now": F.now,
    "current_timestamp": F.current_timestamp,
    "localtimestamp": F.localtimestamp,
    "current_date": F.curdate,
    "current_time": lambda: F.expr("current_time()"),
    "monotonically_increasing_id": F.monotonically_increasing_id,
    "spark_partition_id": F.spark_partition_id,
    "input_file_name": F.input_file_name,
    "current_user": F.current_user,
    "named": lambda: F.udf(named, "string").asNondeterministic()("user"),
}


def line_of(text: str) -> int:
    with open(__file__) as source:
        return next(number for number, line in enumerate(source, 1) if text in line)


def asked(spark: SparkSession, transform: Callable[[DataFrame], DataFrame]) -> list[str]:
    found = check(jobs.job("j", transform, "user STRING"), spark)
    assert {one.field for one in found} <= {"transform"}
    return [one.came for one in found]


@pytest.mark.parametrize("name", ASKED)
def test_it_is_refused_by_name(spark: SparkSession, name: str) -> None:
    def transform(purchases: DataFrame) -> DataFrame:
        return purchases.select(F.coalesce("user", ASKED[name]().cast("string")).alias("user"))

    line = line_of("F.coalesce(") if name in ("rand", "now") else None
    (found,) = asked(spark, transform)
    assert found.startswith(f"{name}() at {HERE}:{line or ''}")


def _helped(purchases: DataFrame) -> DataFrame:
    return purchases.where(_lucky())


def _lucky() -> Column:
    return F.col("amount") > 100 * F.rand(seed=7)


def test_the_line_is_the_one_that_asks_wherever_it_stands(spark: SparkSession) -> None:
    assert asked(spark, lambda purchases: _helped(purchases).select("user")) == [
        f"rand() at {HERE}:{line_of('100 * F.rand')}"
    ]


@pytest.mark.parametrize(
    ("transform", "says"),
    [
        (lambda purchases: purchases.where("rand() > 0.5").select("user"), "rand()"),
        (lambda purchases: purchases.where("event_time < current_timestamp").select("user"), "current_timestamp()"),
        (lambda purchases: purchases.selectExpr("concat(user, now()) AS user"), "now()"),
        (lambda purchases: purchases.where(F.unix_timestamp() > 7).select("user"), "current_timestamp()"),
        (lambda purchases: purchases.sample(0.5).select("user"), "sample()"),
        (
            lambda purchases: purchases.where(F.lit(datetime.now()) > F.col("event_time")).select("user"),
            "datetime.now()",
        ),
        (lambda purchases: purchases.where(F.col("amount") > time.time()).select("user"), "time.time()"),
        (lambda purchases: purchases.where(F.col("amount") > random.random()).select("user"), "random.random()"),
        (lambda purchases: purchases.where(F.col("user") > str(uuid.uuid4())).select("user"), "uuid.uuid4()"),
    ],
)
def test_it_is_found_in_sql_in_operators_and_in_python(
    spark: SparkSession, transform: Callable[[DataFrame], DataFrame], says: str
) -> None:
    line = transform.__code__.co_firstlineno
    assert asked(spark, transform) == [f"{says} at {HERE}:{line}"]


def test_what_is_answered_alike_passes(spark: SparkSession) -> None:
    def transform(purchases: DataFrame) -> DataFrame:
        seeded = random.Random(7).random()
        named = F.udf(lambda name: name, "string")
        counted = purchases.groupBy("user").agg(
            F.sort_array(F.collect_list("amount")), F.first("amount"), F.max_by("amount", "event_time")
        )
        zoned = F.coalesce(named("user"), F.current_timezone(), F.lit(str(seeded)))
        return counted.where(F.unix_timestamp(F.lit("2026-01-01 00:00:00")) > 0).select(zoned.alias("user"))

    assert asked(spark, transform) == []


def test_a_rule_may_ask_nothing_of_the_kind_either(spark: SparkSession) -> None:
    rules = (RowRule("old", "amount < unix_timestamp(current_timestamp())"), RowRule("positive", "amount > 0"))
    ruled = jobs.job(
        "j",
        lambda purchases: purchases.select("user"),
        "user STRING",
        inputs={"purchases": replace(jobs.BOUGHT, rules=rules)},
    )
    found = [(one.field, one.came) for one in check(ruled, spark)]
    assert found == [("inputs['purchases'] rule 'old'", "current_timestamp()")]


def test_a_day_is_computed_alike_too(spark: SparkSession) -> None:
    lucky = replace(daily_prices, transform=lambda records: prices_by_day(records.where(F.rand() < 1)))
    (found,) = check_daily(lucky, spark)
    assert found.came == f"rand() at {HERE}:{line_of('F.rand() < 1')}"
