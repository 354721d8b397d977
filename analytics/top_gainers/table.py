"""The ten tickers whose price has risen most on a day of the exchange.

Phase 1 makes of a ticker's asks its open, close and gain of the day; phase 2 ranks the gains and keeps ten, ties by
ticker. A day is computed whole, both phases in one, so that the ten are exact whenever a ticker falls again: it leaves
them, and the eleventh enters. Open and close are the first and the last ask; of the same instant the offset decides,
which a ticker's trades share. A gain is close - open, in money, and may be negative where fewer than ten have risen.

What a Kafka Streams user may expect otherwise: there each phase is a topic, repartitioned by day, and the ten are kept
in a store that must also remember every other ticker, to have an eleventh. Here a day is as new as its last
computation; a record that comes late, or twice, is in the next one: a second time it changes neither open nor close.
"""

from __future__ import annotations

from datetime import date

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from analytics.exchange import TRADES, ZONE
from platform_core.declare import DailyTable, Table

TEN = 10

TOP_GAINERS = """
    day DATE COMMENT 'of the exchange, America/New_York',
    place INT COMMENT '1 is the biggest gain',
    ticker STRING,
    open DECIMAL(18,6) COMMENT 'the first ask of the day',
    close DECIMAL(18,6) COMMENT 'the last ask so far',
    gain DECIMAL(19,6) COMMENT 'close - open'
"""


def ten_biggest_gains(records: DataFrame) -> DataFrame:
    return ten_biggest(gains(records))


def gains(records: DataFrame) -> DataFrame:
    """Phase 1: per ticker and day."""
    asks = records.where(F.col("type") == "ASK").withColumn("nth", F.struct("event_time", "record.offset"))
    prices = asks.groupBy("day", "ticker").agg(
        F.min_by("price", "nth").alias("open"), F.max_by("price", "nth").alias("close")
    )
    return prices.withColumn("gain", F.col("close") - F.col("open"))


def ten_biggest(found: DataFrame) -> DataFrame:
    """Phase 2: per day."""
    biggest_first = Window.partitionBy("day").orderBy(F.desc("gain"), "ticker")
    return found.withColumn("place", F.row_number().over(biggest_first)).where(F.col("place") <= TEN)


top_gainers = DailyTable(
    input=TRADES,
    transform=ten_biggest_gains,
    output=Table(
        name="top_gainers",
        schema=TOP_GAINERS,
        key=("day", "place"),
        description="The ten biggest gains of every trading day.",
    ),
    zone=ZONE,
    since=date(2025, 1, 1),
)
