"""Visits: the page views of one user with at most 30 minutes from each to the next.

A visit starts with its first view and ends with its last one, so that a visit of one view has no length. Views exactly
30 minutes apart are one visit, a millisecond more makes two. Views of one millisecond are ordered by partition and
offset; so first and last page are the same in every replay. A view that was sent twice is two views.

A row is written once and final: when the watermark, 10 minutes of event time behind the newest view of anybody, is more
than 30 minutes past the visit's last view. Until then the state has one row for the visit, however long it is; a visit
that is never interrupted for 30 minutes has no row yet.

Lateness: a view that the watermark has passed still counts for 30 minutes, in a visit that is open, or else in one of
its own. So next to a visit that was written already, a late view may make a visit less than 30 minutes away. What comes
later than 40 minutes after the newest view is dropped and counted as late.

What a Kafka Streams user may expect otherwise:
- No row changes. Kafka Streams sends a session each time it has grown, and a tombstone for each that was merged into
  another one; with `suppress(untilWindowCloses(...))` it sends one record as here.
- Start, end and the gap's bound are those of Kafka Streams. Spark's own session windows end 30 minutes after the last
  view and hold no view that is exactly 30 minutes after the one before.
- One clock serves all partitions and users, and moves between batches.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ingest.topics import PAGE_VIEWS
from platform_core.declare import Days, RowRule, Stream, StreamingJob, Table
from streaming_jobs.visits.schemas import VISITS

# Spark asks for less than the gap from view to view. Records are stamped in milliseconds: 30 minutes are less, the next
# millisecond is more.
GAP = "30 minutes 1 microsecond"


def visits_of_users(views: DataFrame) -> DataFrame:
    order = F.struct("event_time", "record.partition", "record.offset")
    visits = views.groupBy("user_id", F.session_window("event_time", GAP)).agg(
        F.max("event_time").alias("ended_at"),
        F.count("*").alias("views"),
        F.min_by("page", order).alias("first_page"),
        F.max_by("page", order).alias("last_page"),
    )
    return visits.select(
        "user_id", F.col("session_window.start").alias("started_at"), "ended_at", "views", "first_page", "last_page"
    )


visits = StreamingJob(
    name="visits",
    inputs={"views": Stream(PAGE_VIEWS, lateness="10 minutes", rules=(RowRule("page is given", "page <> ''"),))},
    transform=visits_of_users,
    output=Table(
        name="visits",
        schema=VISITS,
        layout=Days("started_at"),
        personal=("user_id", "first_page", "last_page"),
        description="Every visit of a user that has ended: from when to when, how many pages, the first and the last.",
    ),
    updates_every="5 seconds",
    description="Makes visits of page views that are at most 30 minutes apart.",
)
