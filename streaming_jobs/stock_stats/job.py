"""Ask prices per ticker, over windows of 5 seconds of event time that start every second.

Windows are half-open and aligned to the epoch; a trade is in five of them. Bids are ignored.

Lateness: the watermark stands 10 seconds behind the newest trade of all partitions. A window closes when the watermark
reaches its end. A trade that comes after that no longer counts in it, but does in those of its windows that are still
open. What is refused is counted as late.

What a Kafka Streams user may expect otherwise:
- This is a grace of 10 seconds, but the watermark moves between batches, not with each record: within one batch no
  trade closes a window for another one. A replay in other batches may therefore take a few trades more or fewer.
- One clock serves all partitions. Kafka Streams keeps one for each, so that a partition that lags behind is never late.
- A window's row is written once for each batch that changed it, not for each record; the newest row of a key counts.
- Sums are decimal and exact, in whatever order trades arrive.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ingest.topics import STOCKS, STOCKSTATS_OUTPUT
from platform_core.declare import Hours, Json, Publish, RowRule, Stream, StreamingJob, Table
from streaming_jobs.stock_stats.schemas import STOCK_STATS

WINDOW, HOP = "5 seconds", "1 second"
PRICE = "decimal(18,6)"


def ask_statistics(trades: DataFrame) -> DataFrame:
    asks = trades.where(F.col("type") == "ASK")
    stats = asks.groupBy("ticker", F.window("event_time", WINDOW, HOP)).agg(
        F.count("*").alias("trade_count"),
        F.sum("price").alias("sum_price"),
        F.min("price").alias("min_price"),
    )
    return stats.select(
        "ticker",
        F.col("window.start").alias("window_start"),
        F.col("window.end").alias("window_end"),
        "trade_count",
        "sum_price",
        "min_price",
        (F.col("sum_price") / F.col("trade_count")).cast(PRICE).alias("avg_price"),
    )


TRADES = Stream(
    STOCKS,
    lateness="10 seconds",
    rules=(
        RowRule("type is ASK or BID", "type IN ('ASK', 'BID')"),
        RowRule("ticker is given", "ticker <> ''"),
        RowRule("price is positive", "price > 0"),
    ),
)

stock_stats = StreamingJob(
    name="stock_stats",
    inputs={"trades": TRADES},
    transform=ask_statistics,
    output=Table(
        name="stock_stats",
        schema=STOCK_STATS,
        key=("ticker", "window_start"),
        layout=Hours("window_start"),
        description="Asks per ticker and window of 5 seconds: how many, the lowest and the average price.",
    ),
    publish=Publish(STOCKSTATS_OUTPUT, key=Json(("ticker", "window_start"))),
    updates_every="1 second",
    description="Statistics of asks over hopping windows, updated while the window is open.",
)
