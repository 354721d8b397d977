"""Computes days of a daily table anew from the topic, and replaces them in one commit."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from platform_core.control.position import Offsets, as_text, records_between
from platform_core.declare import DailyTable
from platform_core.declare.batches import DAY
from platform_core.orchestrate.topics import offsets_from
from platform_core.settings import Settings
from platform_core.streaming.source.kafka_source import records_in
from platform_core.streaming.source.parsing import admitted, parsed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Computed:
    """What a computation did: offsets that it read, rows that now stand in its days."""

    first: date
    last: date
    start: Offsets
    end: Offsets
    rows: int
    rejected: int  # records that were left out: unreadable, against a rule, or dated ahead

    @property
    def records(self) -> int:
        return records_between(self.start, self.end)


def compute(spark: SparkSession, settings: Settings, table: DailyTable, first: date, last: date) -> Computed:
    """Computes the days from `first` to `last`, both in; the same days again give the same rows.

    The topic is read from the first day's beginning, found by record time, to its end. An end found by time would be
    wrong: one record dated years ahead hides from such a lookup all that follow it.
    """
    start, end = offsets_from(settings, table.input.topic.name, _reads_from(table, first))
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    refused = Observation()
    read = parsed(records_in(spark, settings, start, end), table.input)
    read = read.observe(refused, F.count(F.when(F.col("reason").isNotNull(), 1)).alias("rejected"))
    records = of_days(read, table, first, last)
    rows = table.transform(records).select(*(column.name for column in table.output.columns))
    _create(spark, settings, table)
    _replace(rows, settings, table, first, last, json.dumps({"start": as_text(start), "end": as_text(end)}))
    rejected = refused.get["rejected"] if records_between(start, end) else 0  # nothing read, nothing observed
    return Computed(first, last, start, end, _rows(spark, settings, table, first, last), rejected)


def of_days(read: DataFrame, table: DailyTable, first: date, last: date) -> DataFrame:
    from pyspark.sql import functions as F

    # a day is computed when it is over: nothing that is here by now is late
    read = read.withColumn("late", F.lit(False))
    local = F.from_utc_timestamp("event_time", table.zone)  # the session's zone is UTC
    return admitted(read, table.input).withColumn(DAY, F.to_date(local)).where(F.col(DAY).between(first, last))


def beginning(day: date, zone: str) -> datetime:
    return datetime.combine(day, time(), ZoneInfo(zone))


def _reads_from(table: DailyTable, first: date) -> datetime:
    """Where event time is a field, a record may be stamped before its event, by as much as the input lets it."""
    ahead = table.input.far_future if table.input.topic.event_time else timedelta()
    return beginning(first, table.zone) - ahead


def _create(spark: SparkSession, settings: Settings, table: DailyTable) -> None:
    from delta.tables import DeltaTable

    builder = DeltaTable.createIfNotExists(spark).location(settings.storage.daily(table.name).uri).partitionedBy(DAY)
    for column in table.output.columns:
        builder = builder.addColumn(column.name, column.sql, comment=column.comment or None)
    builder.execute()


def _replace(rows: DataFrame, settings: Settings, table: DailyTable, first: date, last: date, position: str) -> None:
    writer = rows.write.format("delta").mode("overwrite").option("userMetadata", position)
    days = f"{DAY} >= DATE'{first}' AND {DAY} <= DATE'{last}'"  # BETWEEN is an internal error of Delta's on Spark 4.2
    writer.option("replaceWhere", days).save(settings.storage.daily(table.name).uri)


def _rows(spark: SparkSession, settings: Settings, table: DailyTable, first: date, last: date) -> int:
    from pyspark.sql import functions as F

    stored = spark.read.format("delta").load(settings.storage.daily(table.name).uri)
    return stored.where(F.col(DAY).between(first, last)).count()
