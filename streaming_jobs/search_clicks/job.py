"""Which result is the most popular for which query: clicks of each hour by rank.

A click belongs to the newest search of the same user in the 10 seconds before it (0 s <= click - search <= 10 s, both
ends in); of two searches in the same millisecond, to the one of the higher partition and offset. A click without such a
search counts nowhere. Queries are told apart letter by letter, as users typed them.

For each query and hour in which a result of it was clicked (half-open, in UTC, by the time of the click), every clicked
result has one row: the number of its clicks and its rank among them, 1 for the most clicks; results of as many clicks
are ranked by name. A click that was sent twice is two clicks; a search that was sent twice changes nothing, as a click
belongs to one search.

An hour's rows are written once and final: when the watermark, 5 seconds of event time behind the newest search or
click of anybody, is 10 seconds past the hour. State holds searches and clicks of some 10 seconds, and one number for
each query and result of the hour at hand.

What a Kafka Streams user may expect otherwise:
- A windowed join there gives each click once for each search in the 10 seconds: two clicks where a user searched twice
  and clicked once.
- Rows come when their hour is over, not with each click.
- Searches and clicks share one clock, the newest record of either. What is behind the watermark is late: it is dropped
  and counted.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ingest.topics import RESULT_CLICKS, SEARCHES
from platform_core.declare import Hours, RowRule, Stream, StreamingJob, Table

LATENESS = "5 seconds"
LED_TO = "user_id = searcher AND searched_at <= clicked_at AND clicked_at <= searched_at + INTERVAL 10 SECONDS"


def ranked_results(searches: DataFrame, clicks: DataFrame) -> DataFrame:
    led = _led_to(searches, clicks)
    counted = led.groupBy(F.window("clicked_at", "1 hour"), "query", "result").agg(F.count("*").alias("clicks"))
    # a stream has no window functions: an hour's results are ranked as one sorted list
    most_first = F.sort_array(F.collect_list(F.struct((-F.col("clicks")).alias("minus_clicks"), "result")))
    ranking = counted.groupBy("window", "query").agg(most_first.alias("ranking"))
    ranked = ranking.select("query", F.col("window.start").alias("hour"), F.posexplode("ranking").alias("place", "one"))
    rank, clicked = (F.col("place") + 1).alias("rank"), (-F.col("one.minus_clicks")).alias("clicks")
    return ranked.select("query", "hour", rank, "one.result", clicked)


def _led_to(searches: DataFrame, clicks: DataFrame) -> DataFrame:
    """Each click with its query: of all searches that it may follow, the newest."""
    made = searches.select(
        F.col("user_id").alias("searcher"),
        F.col("search_terms").alias("query"),
        F.col("event_time").alias("searched_at"),
        F.struct(F.unix_micros("event_time"), "record.partition", "record.offset").alias("age"),
    )
    followed = clicks.select(
        "user_id",
        "result",
        F.col("event_time").alias("clicked_at"),
        F.struct("record.partition", "record.offset").alias("click"),
    )
    pairs = followed.join(made, F.expr(LED_TO)).drop("searched_at")
    return pairs.groupBy("clicked_at", "click", "result").agg(F.max_by("query", "age").alias("query"))


search_clicks = StreamingJob(
    name="search_clicks",
    inputs={
        "searches": Stream(SEARCHES, lateness=LATENESS, rules=(RowRule("terms are given", "search_terms <> ''"),)),
        "clicks": Stream(RESULT_CLICKS, lateness=LATENESS, rules=(RowRule("result is given", "result <> ''"),)),
    },
    transform=ranked_results,
    output=Table(
        name="search_clicks",
        schema="query STRING, hour TIMESTAMP, rank INT, result STRING, clicks BIGINT",
        layout=Hours("hour"),
        personal=("query",),
        description="The results that were clicked for a query in an hour, by rank.",
    ),
    updates_every="5 seconds",
    description="Ranks the results of each query by their clicks.",
)
