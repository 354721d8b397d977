"""Small jobs of every kind that Spark can run, over one topic of purchases and one of names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from platform_core.declare import Json, Lookup, Publish, RowRule, Stream, StreamingJob, Table, Text, Topic
from platform_core.testing import Record, record

PURCHASES = Topic(name="purchases", value="user STRING, amount BIGINT", key="user", partitions=2)
REFUNDS = Topic(name="refunds", value="user STRING, amount BIGINT", key="user", partitions=2)
NAMES = Topic(name="names", value="name STRING", key="user", tombstones=True, partitions=2)
ORDERS = Topic(name="orders", value="user STRING, ordered_at TIMESTAMP", key="user", event_time="ordered_at")
TOTALS = Topic(name="totals", value="total BIGINT", key="user")

BOUGHT = Stream(PURCHASES, lateness="10 seconds", rules=(RowRule("amount is positive", "amount > 0"),))
PAID_BACK = Stream(REFUNDS, lateness="10 seconds")


def bought(user: str | None, amount: int, *, second: Any, **place: Any) -> Record:
    return record(PURCHASES, key=user, value={"user": user, "amount": amount}, second=second, **place)


def paid_back(user: str, amount: int, *, second: Any, **place: Any) -> Record:
    return record(REFUNDS, key=user, value={"user": user, "amount": amount}, second=second, **place)


def named(user: str, name: str | None, *, second: Any) -> Record:
    return record(NAMES, key=user, value=None if name is None else {"name": name}, second=second)


def job(name: str, transform: Callable[..., DataFrame], schema: str, key: str = "", **more: Any) -> StreamingJob:
    more.setdefault("inputs", {"purchases": BOUGHT})
    table = Table(name=name, schema=schema, key=tuple(key.split()))
    return StreamingJob(name=name, transform=transform, output=table, **more)


def _totals(purchases: DataFrame) -> DataFrame:
    return purchases.groupBy("user").agg(F.sum("amount").alias("total"))


totals = job(
    "totals",
    _totals,
    "user STRING, total BIGINT",
    "user",
    publish=Publish(TOTALS, key=Text("user"), value=Json(("total",))),
)


def _amounts_by(window: Callable[[], Column]) -> Callable[[DataFrame], DataFrame]:
    def transform(purchases: DataFrame) -> DataFrame:
        amounts = F.sort_array(F.collect_list("amount")).alias("amounts")
        found = purchases.groupBy("user", window().alias("span")).agg(amounts)
        return found.select("user", F.col("span.start").alias("begins"), F.col("span.end").alias("ends"), "amounts")

    return transform


_SPANS = "user STRING, begins TIMESTAMP, ends TIMESTAMP, amounts ARRAY<BIGINT>"


tumbling = job("tumbling", _amounts_by(lambda: F.window("event_time", "10 seconds")), _SPANS)
hopping = job("hopping", _amounts_by(lambda: F.window("event_time", "5 seconds", "1 second")), _SPANS)
sessions = job("sessions", _amounts_by(lambda: F.session_window("event_time", "5 seconds")), _SPANS)


def _once(purchases: DataFrame) -> DataFrame:
    return purchases.dropDuplicatesWithinWatermark(["user", "amount"]).select("user", "amount", "event_time")


once = job("once", _once, "user STRING, amount BIGINT, event_time TIMESTAMP")


def _both(purchases: DataFrame, refunds: DataFrame) -> DataFrame:
    bought = purchases.select(F.col("user"), F.col("amount").alias("bought"), F.col("event_time").alias("bought_at"))
    back = refunds.select(F.col("user").alias("payee"), F.col("amount").alias("back"), F.col("event_time").alias("at"))
    near = F.expr("user = payee AND user IS NOT NULL AND at BETWEEN bought_at AND bought_at + INTERVAL 5 SECONDS")
    return bought.join(back, near, "full_outer").select("user", "bought", "payee", "back")


both = job(
    "both",
    _both,
    "user STRING, bought BIGINT, payee STRING, back BIGINT",
    inputs={"purchases": BOUGHT, "refunds": PAID_BACK},
)


def _followed(purchases: DataFrame) -> DataFrame:
    """Each purchase with those of the same user in the five seconds after it: the stream joined with itself."""
    first = purchases.select("user", F.col("amount").alias("first"), F.col("event_time").alias("at"))
    later = purchases.select(
        F.col("user").alias("again"), F.col("amount").alias("next"), F.col("event_time").alias("later")
    )
    near = F.expr("user = again AND later > at AND later <= at + INTERVAL 5 SECONDS")
    return first.join(later, near).select("user", "first", "next")


followed = job("followed", _followed, "user STRING, first BIGINT, next BIGINT")


def _busiest(purchases: DataFrame) -> DataFrame:
    """Windows of windows: two aggregations in a row."""
    small = purchases.groupBy(F.window("event_time", "5 seconds"), "user").agg(F.sum("amount").alias("amount"))
    large = small.groupBy(F.window(F.window_time("window"), "10 seconds")).agg(F.max("amount").alias("most"))
    return large.select(F.col("window.start").alias("begins"), "most")


busiest = job("busiest", _busiest, "begins TIMESTAMP, most BIGINT")


def _newest(purchases: DataFrame) -> DataFrame:
    return purchases.select("user", "amount", "record")


newest = job("newest", _newest, "user STRING, amount BIGINT", "user", inputs={"purchases": Stream(PURCHASES)})


def _greeted(purchases: DataFrame) -> DataFrame:
    return purchases.select("user", "amount", F.col("event_time").alias("at"))


def greeted(wait: str = "0 seconds") -> StreamingJob:
    names = Lookup(NAMES, on="user", at="at", takes=("name",), otherwise={"name": "?"}, wait=wait)
    inputs = {"purchases": BOUGHT, "names": names}
    return job("greeted", _greeted, "user STRING, amount BIGINT, at TIMESTAMP, name STRING", inputs=inputs)


def _ordered(orders: DataFrame) -> DataFrame:
    return orders.groupBy(F.window("event_time", "10 seconds")).count().select("window.start", "count")


ordered = job(
    "ordered",
    _ordered,
    "start TIMESTAMP, count BIGINT",
    "start",
    inputs={"orders": Stream(ORDERS, lateness="5 seconds")},
)
