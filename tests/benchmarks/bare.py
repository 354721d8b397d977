"""What an author would write without weir: the same queries in bare PySpark, in one process each.

`python -m tests.benchmarks.bare JOB table|noop FOLDER`. The session, the batch size and the table are weir's; what is
left out is all that weir adds: rejects, rules, positions, progress, leases, exactly once, the output topic.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from ingest.topics import PAGE_VIEWS, SEARCHES, STOCKS, USER_PROFILES, WORDCOUNT_INPUT
from platform_core.declare import Format, Topic
from platform_core.declare.discover import load_job
from platform_core.settings import Settings, load
from platform_core.streaming.driver.session import session
from platform_core.streaming.source.kafka_source import connection
from platform_core.streaming.transform.query_plan import laid_out
from streaming_jobs.clickstream.job import clickstream, views_with_searches
from streaming_jobs.stock_stats.job import ask_statistics, stock_stats
from streaming_jobs.word_count.job import count_words, word_count

Write = Callable[[DataFrame, int], None]


READ = {
    "stock_stats": (STOCKS,),
    "word_count": (WORDCOUNT_INPUT,),
    "clickstream": (PAGE_VIEWS, SEARCHES, USER_PROFILES),
}


class Bare:
    def __init__(self, settings: Settings, spark: SparkSession, folder: str) -> None:
        self._settings, self._spark = settings, spark
        self._table, self._checkpoint = f"{folder}/table", f"{folder}/checkpoint"

    def noop(self, job: str) -> None:
        """The limit: reading and parsing alone, in one batch."""
        read = [self._stream(topic, None).select("value.*", "timestamp") for topic in READ[job]]
        rows = read[0]
        for other in read[1:]:
            rows = rows.unionByName(other, allowMissingColumns=True)
        query = rows.writeStream.format("noop").option("checkpointLocation", self._checkpoint)
        query.trigger(availableNow=True).start().awaitTermination()

    def stock_stats(self) -> None:
        trades = self._stream(STOCKS).select("value.*", F.col("timestamp").alias("event_time"))
        rows = laid_out(ask_statistics(trades.withWatermark("event_time", "10 seconds")), stock_stats)
        self._run(rows, "update", self._merge(rows, ("ticker", "window_start", "_part")))

    def word_count(self) -> None:
        rows = laid_out(count_words(self._stream(WORDCOUNT_INPUT).select("value.*")), word_count)
        self._run(rows, "update", self._merge(rows, ("word", "_part")))

    def clickstream(self) -> None:
        seen_at, record = F.col("timestamp").alias("event_time"), F.struct("topic", "partition", "offset")
        inputs = {
            name: self._stream(topic)
            .select("value.*", seen_at, record.alias("record"))
            .withWatermark("event_time", "5 seconds")
            for name, topic in (("views", PAGE_VIEWS), ("searches", SEARCHES))
        }
        rows = laid_out(views_with_searches(**inputs), clickstream)
        self._run(rows, "append", self._append(self._profiles()))

    def _stream(self, topic: Topic, most: int | None = 0) -> DataFrame:
        reader = self._spark.readStream.format("kafka").options(**connection(self._settings))
        reader = reader.option("subscribe", topic.name).option("startingOffsets", "earliest")
        if most is not None:
            reader = reader.option("maxOffsetsPerTrigger", str(self._settings.batches.max_records))
        return reader.load().withColumn("value", _value(topic))

    def _profiles(self) -> DataFrame:
        """Once, as they stand at the start: a bare job has no more."""
        reader = self._spark.read.format("kafka").options(**connection(self._settings))
        read = reader.option("subscribe", USER_PROFILES.name).load()
        rows = read.select(_value(USER_PROFILES).alias("value"), F.col("timestamp").alias("at"))
        return rows.select(F.col("value.user_id").alias("known"), F.struct("at", "value.*").alias("profile")).cache()

    def _merge(self, rows: DataFrame, key: tuple[str, ...]) -> Write:
        self._create(rows)
        same = " AND ".join(f"t.{name} = s.{name}" for name in key)
        target = DeltaTable.forPath(self._spark, self._table).alias("t")

        def write(frame: DataFrame, _: int) -> None:
            merge = target.merge(frame.alias("s"), same)
            merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()

        return write

    def _append(self, profiles: DataFrame) -> Write:
        """As of the view's moment: the newest profile not later than it."""

        def write(frame: DataFrame, _: int) -> None:
            then = (F.col("user_id") == F.col("known")) & (F.col("profile.at") <= F.col("viewed_at"))
            names = frame.columns
            newest = F.max("profile").alias("profile")
            joined = frame.join(profiles, then, "left").groupBy(*names).agg(newest)
            taken = [F.col(f"profile.{name}") for name in ("user_name", "zipcode", "interests")]
            given = [name for name in names if name != "user_id"]
            user = F.coalesce("profile.user_id", F.lit(-1)).alias("user_id")
            rows = joined.select(*given, user, *taken)
            rows.write.format("delta").partitionBy("_part").mode("append").save(self._table)

        return write

    def _create(self, rows: DataFrame) -> None:
        empty = self._spark.createDataFrame([], rows.schema)
        empty.write.format("delta").partitionBy("_part").save(self._table)

    def _run(self, rows: DataFrame, mode: str, write: Write) -> None:
        query = rows.writeStream.outputMode(mode).option("checkpointLocation", self._checkpoint)
        query.foreachBatch(write).trigger(availableNow=True).start().awaitTermination()


def _value(topic: Topic) -> Column:
    text, first = F.col("value").cast("string"), topic.columns[0].name
    if topic.format is Format.TEXT:
        return F.struct(text.alias(first))
    return F.from_json(text, ", ".join(f"`{column.name}` {column.sql}" for column in topic.columns))


def main(job: str, query: str, folder: str) -> None:
    settings = load()
    load_job(job, settings.root)
    bare = Bare(settings, session(settings, f"bare {job}"), folder)
    if query == "noop":
        bare.noop(job)
    else:
        getattr(bare, job)()


if __name__ == "__main__":
    main(*sys.argv[1:])
