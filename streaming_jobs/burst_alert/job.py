"""More than 5 failed logins of one user in any 10 seconds: one alert for each burst, not one for each further failure.

Each failed login has a window of its own, the 10 seconds that end with it, both ends in. A burst begins with a failed
login whose window holds more than 5, where the window of the user's failed login before it did not, or where that one
is more than 10 seconds back. So a burst is over when a failed login finds 5 or fewer in its window, itself included,
and the next one over the limit begins another. Failures of the same time are counted together.

The alert's row: the user, the first failed login of that window, the last one, with which the burst began, and how
many there are in between, at least 6. A successful login neither counts nor ends a burst. A duplicate record counts
as a second login: what it means twice cannot be told from what was tried twice.

Lateness: the watermark stands 10 seconds behind the newest login of all partitions. An alert is written once and
final, when no login can change it: at most 20 seconds of event time after the burst began, and only while logins come
in. A failed login behind the watermark is counted as late. It begins no burst, but counts in windows of younger ones
that are still open; a burst that it would have begun may so be left without an alert.

What a Kafka Streams user may expect otherwise:
- These are its SlidingWindows of 10 seconds with a grace of 10 seconds, and `suppress(untilWindowCloses)`. Without
  that, Kafka Streams writes a row for each record, also ones that a login out of order will correct.
- The window that Kafka Streams begins right after each record is left out. It holds no more than the one that ends
  at its newest record.
- One clock serves all partitions. Kafka Streams keeps one for each.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ingest.topics import LOGIN_ALERTS, LOGINS
from platform_core.declare import Days, Publish, RowRule, Stream, StreamingJob, Table, Text
from platform_core.patterns import sliding_windows

MORE_THAN, WITHIN = 5, "10 seconds"


def bursts(logins: DataFrame) -> DataFrame:
    failed = logins.where("NOT succeeded")
    windows = sliding_windows(failed, "user_id", size=WITHIN)
    begins = (F.col("count") > MORE_THAN) & (F.col("count_before") <= MORE_THAN)
    return windows.where(begins).select(
        "user_id",
        F.col("window_end").alias("began_at"),
        F.col("first_at").alias("first_failure"),
        F.col("count").alias("failures"),
    )


burst_alert = StreamingJob(
    name="burst_alert",
    inputs={"logins": Stream(LOGINS, lateness="10 seconds", rules=(RowRule("user_id is given", "user_id <> ''"),))},
    transform=bursts,
    output=Table(
        name="burst_alert",
        schema="""
            user_id STRING,
            began_at TIMESTAMP COMMENT 'the failed login that was one too many',
            first_failure TIMESTAMP COMMENT 'the first one in the 10 seconds before',
            failures BIGINT COMMENT 'failed logins from the first to that one'
        """,
        key=("user_id", "began_at"),
        layout=Days("began_at"),
        personal=("user_id",),
        description="Bursts of failed logins: a row for each, with the user, the time and the number.",
    ),
    publish=Publish(LOGIN_ALERTS, key=Text("user_id")),
    emits="final",
    state="memory",  # event times of 30 seconds and the lateness
    description="Raises an alert for more than 5 failed logins of a user in any 10 seconds.",
)
