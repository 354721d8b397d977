"""A kind of input that reads no topic: the rows that another release's table gains. The platform has none such yet."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from platform_core.control.gaps import Gap
from platform_core.control.position import Places, Position, TableVersion, tables_of
from platform_core.declare.durations import duration
from platform_core.declare.inputs import Input
from platform_core.errors import PositionError
from platform_core.names import ReleaseId
from platform_core.streaming.source.kind import InputContext, Left, Query
from platform_core.streaming.source.parsing import INPUT
from tests.streaming.source import appended_source
from tests.streaming.source.appended_source import added

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Appended(Input):
    release: str
    schema: str
    id: str  # Delta's, of the table that the release was made for
    event_time: str
    lateness: str

    @property
    def reads(self) -> str:
        return self.release

    @property
    def late_after(self) -> timedelta:
        return duration(self.lateness, "lateness")


class AppendedTables:
    def __init__(self, reader: InputContext) -> None:
        inputs = reader.job.inputs.items()
        self._parts = {name: part for name, part in inputs if isinstance(part, Appended)}
        self._uris = {
            part.release: reader.settings.storage.table(ReleaseId.parse(part.release)).uri
            for part in self._parts.values()
        }

    @property
    def origin(self) -> Places:
        return {release: TableVersion(release, -1) for release in self._uris}

    @property
    def paced(self) -> Collection[str]:
        return self._uris

    @property
    def elsewhere(self) -> bool:
        return False

    def prove(self) -> None:
        for part in self._parts.values():
            found = str(DeltaTable(self._uris[part.release]).metadata().id)
            if found != part.id:
                raise PositionError(
                    f"table {part.release} was {part.id} when the release was made, it is {found} now.",
                    remedy="Make a new release.",
                )

    def ends(self, of: Places) -> Places:
        return {name: TableVersion(name, DeltaTable(self._uris[name]).version()) for name in self._own(of)}

    def reachable(self, at: Places, goal: Places) -> Places:
        for name, place in self._own(at).items():
            try:
                DeltaTable(self._uris[name], version=place.version + 1)
            except DeltaError as error:
                if DeltaTable(self._uris[name]).version() > place.version:
                    raise PositionError(f"table {place} was cleaned up: {error}", remedy="Start anew.") from error
        return self._own(goal)

    def lost(self, at: Places) -> list[Gap]:  # noqa: ARG002 - none that anybody could be told to do without
        return []

    def moments(self, at: Places, goal: Places, now_ms: int) -> Callable[[int], Places]:  # noqa: ARG002
        """By the time of the commits."""
        ends = self._own(goal)
        commits = {name: DeltaTable(self._uris[name]).history() for name in ends}

        def since(at_ms: int) -> Places:
            before = {
                name: max((one["version"] for one in commits[name] if one["timestamp"] < at_ms), default=-1)
                for name in ends
            }
            return {name: TableVersion(name, version) for name, version in before.items()}

        return since

    def left(self, at: Places, end: Places) -> Left:
        here = {**tables_of(self.origin), **self._own(at)}
        return {
            name: {0: sum(_rows(one) for one in added(self._uris[name], here[name].version, place.version))}
            for name, place in self._own(end).items()
        }

    def source(self, spark: SparkSession, query: Query) -> AppendedRows:
        return AppendedRows(spark, self._parts, self._uris, {**self.origin, **(query.begins or {})})

    def behind(self, spark: SparkSession, position: Position, last_ms: int) -> int:
        began = {**tables_of(self.origin), **self._own(position.began)}
        read = [
            spark.read.parquet(f"{self._uris[name]}/{one['path']}").where(f"unix_millis(at) <= {last_ms}").count()
            for name, place in self._own(position.places).items()
            for one in added(self._uris[name], began[name].version, place.version)
        ]
        return sum(read)

    def close(self) -> None:
        """Holds nothing open."""

    def _own(self, places: Places) -> dict[str, TableVersion]:
        return {name: place for name, place in tables_of(places).items() if name in self._uris}


class AppendedRows:
    def __init__(self, spark: SparkSession, parts: dict[str, Appended], uris: dict[str, str], begins: Places) -> None:
        self._spark, self._parts, self._uris, self._begins = spark, parts, uris, tables_of(begins)

    def rows(self, name: str, delay: timedelta | None) -> DataFrame:  # noqa: ARG002 - nothing of it is ever late
        from pyspark import cloudpickle
        from pyspark.sql import functions as F

        cloudpickle.register_pickle_by_value(appended_source)
        self._spark.dataSource.register(appended_source.AppendedSource)
        part = self._parts[name]
        options = {"release": part.release, "uri": self._uris[part.release], "shape": part.schema}
        reader = self._spark.readStream.format(appended_source.NAME).options(**options)
        rows = reader.option("begins", str(self._begins[part.release].version)).load()
        timed = rows.withColumn("event_time", F.col(part.event_time))
        clock = F.unix_millis("event_time")
        return timed.observe(
            INPUT + name,
            F.count(F.lit(1)).alias("records"),
            F.count(F.lit(1)).alias("used"),
            F.min(clock).alias("oldest_ms"),
            F.max(clock).alias("newest_ms"),
            F.max(clock).alias("newest_record_ms"),
        )

    def lookups(self) -> DataFrame | None:
        return None


def _rows(file: dict[str, object]) -> int:
    return int(json.loads(str(file["stats"]))["numRecords"])
