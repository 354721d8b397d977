"""Spark's streaming source over the rows that a table gains: what each commit between two versions has added."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
from deltalake import DeltaTable
from pyarrow import parquet
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit

NAME = "weir_appended"


@dataclass
class Added(InputPartition):
    path: str


class AppendedSource(DataSource):
    """Options: `release` is whose table, `uri` where it is, `shape` its columns, `begins` a version."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> str:
        return self.options["shape"]

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: ARG002 - Spark's signature
        return AppendedReader(self.options["release"], self.options["uri"], int(self.options["begins"]))


class AppendedReader(DataSourceStreamReader):
    def __init__(self, release: str, uri: str, begins: int) -> None:
        self._release, self._uri, self._begins = release, uri, begins

    def initialOffset(self) -> dict[str, Any]:
        return self._place(self._begins)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: ARG002
        return self._place(DeltaTable(self._uri).version())

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        first, last = (place[self._release]["version"] for place in (start, end))
        return [Added(f"{self._uri}/{one['path']}") for one in added(self._uri, first, last)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        yield from parquet.ParquetFile(cast("Added", partition).path).read().to_batches()

    def _place(self, version: int) -> dict[str, Any]:
        return {self._release: {"release": self._release, "version": version}}


def added(uri: str, after: int, to: int) -> list[dict[str, Any]]:
    """The files that the commits after one version up to another have added."""
    logs = [Path(uri) / "_delta_log" / f"{version:020}.json" for version in range(after + 1, to + 1)]
    lines = [json.loads(line) for log in logs for line in log.read_text().splitlines()]
    return [line["add"] for line in lines if line.get("add", {}).get("dataChange")]
