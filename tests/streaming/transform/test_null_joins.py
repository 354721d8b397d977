"""A join of streams that would match null with null is refused; stream and batch agree on what passes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from platform_core.declare import StreamingJob
from platform_core.streaming.transform.columns import check
from platform_core.testing import END, Kit, Record, record
from platform_core.testing import kit as kit_module
from tests.testing import jobs

NEAR = "at BETWEEN bought_at AND bought_at + INTERVAL 5 SECONDS"
COLUMNS = "bought BIGINT, back BIGINT"


def joined(how: str, condition: str, *, users: str | None = None, **topics: Any) -> StreamingJob:
    def transform(purchases: DataFrame, refunds: DataFrame) -> DataFrame:
        bought = purchases.select("user", F.col("amount").alias("bought"), F.col("event_time").alias("bought_at"))
        back = refunds.select(
            F.col("user").alias("payee"), F.col("amount").alias("back"), F.col("event_time").alias("at")
        )
        left = bought if users is None else bought.where(users)
        rows = left.join(back, F.expr(f"{condition} AND {NEAR}"), how)
        return rows.select("bought", *(["back"] if how != "leftsemi" else [F.lit(None).cast("bigint").alias("back")]))

    inputs = {"purchases": jobs.BOUGHT, "refunds": jobs.PAID_BACK, **topics}
    return jobs.job("joined", transform, COLUMNS, inputs=inputs)


def nameless(topic: Any, amount: int, user: str | None, second: float) -> Record:
    return record(topic, key="k", value={"user": user, "amount": amount}, second=second)


SCRIPT = [
    nameless(jobs.PURCHASES, 1, None, 1),
    nameless(jobs.REFUNDS, 10, None, 2),
    nameless(jobs.PURCHASES, 2, "ann", 1),
    nameless(jobs.REFUNDS, 20, "ann", 2),
    nameless(jobs.PURCHASES, 3, "", 1),
    nameless(jobs.REFUNDS, 30, "", 2),
    END,
]
NULLIF = "nullif(user, '') = nullif(payee, '')"

WRONG = [("full", "user = payee"), ("inner", NULLIF), ("left", NULLIF), ("leftsemi", NULLIF)]
RIGHT = [
    ("full", "user = payee AND user IS NOT NULL"),
    ("full", "user = payee AND payee IS NOT NULL"),
    ("full", "coalesce(user, '') = payee"),
    ("inner", "lower(user) = upper(lower(payee))"),
    ("inner", f"{NULLIF} AND nullif(payee, '') IS NOT NULL"),
    *((how, "user = payee") for how in ("inner", "left", "right", "leftsemi")),
]


@pytest.fixture
def unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kit as it was, to see what Spark does."""

    def nothing(*_: object) -> list[Any]:
        return []

    monkeypatch.setattr(kit_module, "check", nothing)


@pytest.mark.parametrize(("how", "condition"), WRONG)
def test_a_join_that_would_match_nulls_is_refused(spark: SparkSession, how: str, condition: str) -> None:
    (found,) = check(joined(how, condition), spark)
    assert found.declared.startswith("equal keys of which one is never null")
    kind = {"full": "full outer", "left": "left outer", "leftsemi": "left semi"}.get(how, how)
    assert found.came.endswith(f" in a join of kind {kind}")


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(("how", "condition"), WRONG[:2])
def test_what_is_refused_gives_other_rows_as_a_stream_than_as_a_batch(kit: Kit, how: str, condition: str) -> None:
    job = joined(how, condition)
    assert kit.run(job, SCRIPT).rows != kit.run_as_batch(job, SCRIPT).rows, (
        "Spark has mended it: nothing need be refused"
    )


@pytest.mark.parametrize(("how", "condition"), RIGHT)
def test_a_join_that_keeps_nulls_out_passes(spark: SparkSession, how: str, condition: str) -> None:
    assert check(joined(how, condition), spark) == []


@pytest.mark.parametrize(("how", "condition"), RIGHT[::4])
def test_stream_and_batch_agree_on_a_join_that_passes(kit: Kit, how: str, condition: str) -> None:
    job = joined(how, condition)
    assert kit.run(job, SCRIPT).rows == kit.run_as_batch(job, SCRIPT).rows


def test_a_key_that_the_topic_requires_or_a_filter_keeps_is_never_null(spark: SparkSession) -> None:
    required = replace(jobs.PURCHASES, value="user STRING NOT NULL, amount BIGINT")
    sure = joined("full", "user = payee", purchases=replace(jobs.BOUGHT, topic=required))
    assert check(sure, spark) == []
    assert check(joined("full", "user = payee", users="user <> 'bob'"), spark) == []
