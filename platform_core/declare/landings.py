"""A topic's raw table: every record's bytes and coordinates, for replays that reach further back than the broker does.

stocks_raw = StreamingJob(
    name="stocks_raw", inputs={"records": Raw(STOCKS)}, transform=as_landed, output=raw_table("stocks_raw", STOCKS)
)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from platform_core.declare.tables import Days, Table
from platform_core.declare.topics import Topic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_COLUMNS = """
    topic STRING,
    partition INT,
    offset BIGINT,
    timestamp TIMESTAMP COMMENT 'of the record',
    key BINARY,
    value BINARY
"""


def as_landed(records: DataFrame) -> DataFrame:
    return records.select("record.topic", "record.partition", "record.offset", "record.timestamp", "key", "value")


def raw_table(name: str, topic: Topic) -> Table:
    return Table(
        name=name,
        schema=_COLUMNS,
        layout=Days("timestamp"),
        personal=("key", "value") if topic.personal else (),
        owner=topic.owner,
        description=f"Every record of topic {topic.name} as it came: its bytes and coordinates.",
    )
