"""Frozen values that say what topics, tables and jobs are. Imports nothing of the rest of the platform."""

from platform_core.declare.batches import DailyTable
from platform_core.declare.checks import Expect, Suite
from platform_core.declare.inputs import Lookup, Raw, RowRule, Stream
from platform_core.declare.jobs import StreamingJob
from platform_core.declare.landings import as_landed, raw_table
from platform_core.declare.publishing import Bytes, Double, Json, Long, Publish, Text
from platform_core.declare.tables import Buckets, Days, Hours, Table
from platform_core.declare.topics import Format, Topic

__all__ = [
    "Buckets",
    "Bytes",
    "DailyTable",
    "Days",
    "Double",
    "Expect",
    "Format",
    "Hours",
    "Json",
    "Long",
    "Lookup",
    "Publish",
    "Raw",
    "RowRule",
    "Stream",
    "StreamingJob",
    "Suite",
    "Table",
    "Text",
    "Topic",
    "as_landed",
    "raw_table",
]
