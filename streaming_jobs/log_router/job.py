"""Log lines to one of two topics: ERROR and FATAL to `logs.high`, the rest to `logs.low`. No state.

Every line is in table `log_lines`, once, and in exactly one of the topics; both topics and the batch's offsets are one
transaction. A level is compared in upper case, and one that nobody knows is of the rest. A line without a level, a
service or a message is rejected. Nothing is late: no line waits for another. A line that comes twice is two lines.

What a Kafka Streams user may expect otherwise:
- This is `stream.split().branch(...)`. The branches are conditions over the table's columns, so that a comparison of
  two releases covers the topics, too: equal rows are equal records.
- Records of a batch are sent in the order of their keys. Of one service, they are in the order of arrival.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ingest.topics import LOGS, LOGS_HIGH, LOGS_LOW
from platform_core.declare import Days, Json, Publish, RowRule, Stream, StreamingJob, Table, Text

HIGH = "level IN ('ERROR', 'FATAL')"
LINE = Json(("level", "service", "message", "logged_at"))


def read_lines(lines: DataFrame) -> DataFrame:
    return lines.select(
        F.concat_ws("-", "record.topic", "record.partition", "record.offset").alias("line_id"),
        F.upper("level").alias("level"),
        "service",
        "message",
        F.col("event_time").alias("logged_at"),
    )


log_router = StreamingJob(
    name="log_router",
    inputs={"lines": Stream(LOGS, rules=(RowRule("level is given", "level <> ''"),))},
    transform=read_lines,
    output=Table(
        name="log_lines",
        schema="line_id STRING, level STRING, service STRING, message STRING, logged_at TIMESTAMP",
        layout=Days("logged_at"),
        description="Every log line, once.",
    ),
    publish=(
        Publish(LOGS_HIGH, key=Text("service"), value=LINE, where=HIGH),
        Publish(LOGS_LOW, key=Text("service"), value=LINE, where=f"NOT {HIGH}"),
    ),
    updates_every="1 second",
    description="Routes log lines by their level.",
)
