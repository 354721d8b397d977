"""Lowest, highest and moving average ask price per ticker and day of the exchange.

Only asks count, as in stock_stats. The moving average of a day is the mean of its newest asks, LAST of them or fewer
where the day had fewer; it never reaches into another day, so that any day can be computed anew alone. Trades of the
same instant are ordered by offset, which a ticker's trades share: its key puts them into one partition.

What a Kafka Streams user may expect otherwise: there the average moves with each trade. Here a day is as new as its
last computation (a sensor asks for one while trades come), and late trades enter when it is computed again.
"""

from __future__ import annotations

from datetime import date

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from analytics.exchange import TRADES, ZONE
from platform_core.declare import DailyTable, Table

LAST = 20
PRICE = "decimal(18,6)"

DAILY_PRICES = """
    ticker STRING,
    day DATE COMMENT 'of the exchange, America/New_York',
    low DECIMAL(18,6) COMMENT 'the lowest ask',
    high DECIMAL(18,6) COMMENT 'the highest ask',
    moving_average DECIMAL(18,6) COMMENT 'mean of the newest asks of the day',
    trades BIGINT COMMENT 'asks of the day'
"""


def prices_by_day(records: DataFrame) -> DataFrame:
    newest_first = Window.partitionBy("day", "ticker").orderBy(F.desc("event_time"), F.desc("record.offset"))
    asks = records.where(F.col("type") == "ASK").withColumn("age", F.row_number().over(newest_first))
    last = F.when(F.col("age") <= LAST, F.col("price"))
    return asks.groupBy("ticker", "day").agg(
        F.min("price").alias("low"),
        F.max("price").alias("high"),
        (F.sum(last) / F.count(last)).cast(PRICE).alias("moving_average"),
        F.count("*").alias("trades"),
    )


daily_prices = DailyTable(
    input=TRADES,
    transform=prices_by_day,
    output=Table(
        name="daily_prices",
        schema=DAILY_PRICES,
        key=("ticker", "day"),
        description="Lowest, highest and moving average ask price per ticker and trading day.",
    ),
    zone=ZONE,
    since=date(2025, 1, 1),
)
