"""How much of each hour a device said that it was up, with heartbeats that arrive hours after they were made.

A heartbeat carries the time at which the device made it, in the field `at`; the record's timestamp says when it reached
the topic. It counts in the hour of `at`: hours are half-open, in UTC. `up_share` is the share of an hour's heartbeats
that say UP, rounded half up to four digits. An hour without heartbeats has no row: silence is not counted as down. A
heartbeat that was sent twice counts twice.

Lateness: a heartbeat that reached the topic up to 3 hours after it was made updates the row of its hour, whatever order
it comes in. One that took longer, by a millisecond or by weeks, changes no row: it is in the rejects, table
`device_uptime_rejects`, with its bytes and the reason `more than 3 hours late`, and that reason's count is the count of
late heartbeats. Which ones these are is decided by each record's own two times: so it is the same in every replay, in
whatever batches. One dated more than 5 minutes after it arrived is rejected, too.

What a Kafka Streams user may expect otherwise:
- A grace of 3 hours there counts from the newest record of the partition; here from the record's own arrival. A device
  that is slow is late, and never because another one is fast.
- Kafka Streams drops what is later than the grace, and counts it. Here it is kept, and can be sent again.
- A row is written once for each batch that changed it. State is one row a device and hour, of the last 7 hours.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ingest.topics import HEARTBEATS
from platform_core.declare import Hours, RowRule, Stream, StreamingJob, Table


def uptime_by_hour(heartbeats: DataFrame) -> DataFrame:
    hours = heartbeats.groupBy("device_id", F.window("event_time", "1 hour")).agg(
        F.count("*").alias("heartbeats"),
        F.count_if(F.col("status") == "UP").alias("up"),
    )
    share = (F.col("up") / F.col("heartbeats")).cast("decimal(5,4)")
    return hours.select("device_id", F.col("window.start").alias("hour"), "heartbeats", "up", share.alias("up_share"))


BEATS = Stream(
    HEARTBEATS,
    lateness="3 hours",
    late="rejected",
    future="5 minutes",  # no clock of a device is further ahead; one that was, would close the hours of all others
    rules=(
        RowRule("device_id is given", "device_id <> ''"),
        RowRule("status is UP or DOWN", "status IN ('UP', 'DOWN')"),
    ),
)

device_uptime = StreamingJob(
    name="device_uptime",
    inputs={"heartbeats": BEATS},
    transform=uptime_by_hour,
    output=Table(
        name="device_uptime",
        schema="device_id STRING, hour TIMESTAMP, heartbeats BIGINT, up BIGINT, up_share DECIMAL(5,4)",
        key=("device_id", "hour"),
        layout=Hours("hour"),
        description="Heartbeats per device and hour, and the share of them that say UP.",
    ),
    updates_every="5 seconds",
    reject_limit=0.9,  # devices that were cut off for a night come back with nothing but late heartbeats
    description="Computes the uptime of devices, up to 3 hours back.",
)
