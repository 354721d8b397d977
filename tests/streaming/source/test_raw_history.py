"""Raw tables: what they have of a topic, when they are read from, and the source that reads them."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from platform_core.storage import Place
from platform_core.streaming.source.raw_history import RawHistory, bounded, needed, stream_of
from platform_core.streaming.source.raw_history_source import RawHistoryReader

SHAPE = pa.schema(
    [
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("timestamp", pa.timestamp("us", "UTC")),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
    ]
)


def row(partition: int, offset: int, second: float) -> dict[str, object]:
    at = datetime.fromtimestamp(second, UTC)
    value = f"{partition}@{offset}".encode()
    return {"topic": "in", "partition": partition, "offset": offset, "timestamp": at, "key": None, "value": value}


@pytest.fixture
def table(tmp_path: Path) -> RawHistory:
    """Partition 0 from 10 to 14, its times out of order; partition 1 from 0; nothing of partition 2 yet."""
    rows = [row(0, 10, 100), row(0, 11, 103), row(0, 12, 101.5), row(0, 13, 110), row(1, 0, 99), row(1, 1, 105)]
    write_deltalake(tmp_path / "raw", pa.Table.from_pylist(rows, schema=SHAPE))
    return RawHistory("in", "in_raw@v1", Place(str(tmp_path / "raw")), 0, {0: 14, 1: 2, 2: 0})


def test_a_table_knows_where_it_begins_and_how_old_it_is(table: RawHistory) -> None:
    assert table.begins == {0: 10, 1: 0, 2: 0}
    assert table.oldest_ms == 99_000


def test_the_first_offset_since_a_moment_is_before_every_later_record(table: RawHistory) -> None:
    assert table.since(0) == {0: 10, 1: 0, 2: 0}
    assert table.since(101_000) == {0: 11, 1: 1, 2: 0}  # 12 is of 101.5 s, and 11 before it of 103 s
    assert table.since(104_000) == {0: 13, 1: 1, 2: 0}
    assert table.since(111_000) == {0: 14, 1: 2, 2: 0}


def test_a_hole_in_a_table_is_where_it_begins(table: RawHistory) -> None:
    holed = replace(table, holes={0: 12})
    assert holed.begins == {0: 12, 1: 0, 2: 0}
    assert not holed.fills({0: 10, 1: 0, 2: 0}, {0: 14, 1: 1, 2: 0})
    assert holed.since(0) == {0: 12, 1: 0, 2: 0}


def test_a_record_dated_ahead_is_no_clock(tmp_path: Path) -> None:
    rows = [row(0, 0, 100), row(0, 1, 32_503_680_000), row(0, 2, 101), row(0, 3, 102)]
    write_deltalake(tmp_path / "raw", pa.Table.from_pylist(rows, schema=SHAPE))
    ahead = RawHistory("in", "in_raw@v1", Place(str(tmp_path / "raw")), 0, {0: 4})
    assert (ahead.begins, ahead.since(102_000), ahead.since(103_000)) == ({0: 0}, {0: 3}, {0: 4})


@pytest.mark.parametrize(
    ("at", "starts", "fills"),
    [
        ({0: 10, 1: 0, 2: 0}, {0: 14, 1: 1, 2: 0}, True),
        ({0: 12, 1: 2, 2: 0}, {0: 14, 1: 1, 2: 0}, True),
        ({0: 9, 1: 0, 2: 0}, {0: 14, 1: 1, 2: 0}, False),  # before its own beginning
        ({0: 10, 1: 0, 2: 0}, {0: 15, 1: 1, 2: 0}, False),  # 14 is gone from both
    ],
)
def test_a_table_fills_a_gap_that_it_has_whole(
    table: RawHistory, at: dict[int, int], starts: dict[int, int], fills: bool
) -> None:
    assert table.fills(at, starts) is fills


def test_a_reading_comes_from_tables_as_a_whole_or_not_at_all(table: RawHistory) -> None:
    at = {"in": {0: 10, 1: 0, 2: 0}, "other": {0: 5}, "looked-up": {0: 0}}
    starts = {"in": {0: 12, 1: 0, 2: 0}, "other": {0: 0}, "looked-up": {0: 0}}
    assert needed([["in"], ["looked-up"]], at, starts, {"in": table}) == {"in": table}
    assert needed([["in", "other"], ["looked-up"]], at, starts, {"in": table}) == {}
    assert needed([["in"]], at, {"in": {0: 10, 1: 0, 2: 0}}, {"in": table}) == {}, "the broker has it all"


def test_a_step_ends_where_the_tables_do(table: RawHistory) -> None:
    at, bound = {"in": {0: 10, 1: 5, 2: 0}}, {"in": {0: 20, 1: 7, 2: 3}, "other": {0: 9}}
    assert bounded(at, bound, {"in": table}) == {"in": {0: 14, 1: 5, 2: 0}, "other": {0: 9}}


def test_records_come_in_the_order_of_offsets_within_their_range(table: RawHistory) -> None:
    reader = _reader(table)
    chunks = reader.partitions({"in": {"0": 11, "1": 0}}, {"in": {"0": 13, "1": 1, "2": 0}})
    read = [one["value"] for chunk in chunks for batch in reader.read(chunk) for one in batch.to_pylist()]
    assert read == [b"0@11", b"0@12", b"1@0"]


def test_what_is_not_landed_yet_is_no_empty_answer(table: RawHistory) -> None:
    with pytest.raises(ValueError, match=r"in\[0\]@15 is not landed yet"):
        _reader(table).partitions({"in": {"0": 10}}, {"in": {"0": 15}})


def test_spark_reads_them_with_the_offsets_of_kafkas_source(
    table: RawHistory, spark: SparkSession, tmp_path: Path
) -> None:
    rows = stream_of(spark, {"in": table}, {"in": {0: 10, 1: 0, 2: 0}}).selectExpr("cast(value as string) as text")
    writer = rows.writeStream.format("parquet").option("path", str(tmp_path / "out"))
    writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(once=True).start().awaitTermination()
    said = (tmp_path / "checkpoint" / "offsets" / "0").read_text().splitlines()[2]
    assert json.loads(said) == {"in": {"0": 14, "1": 2, "2": 0}}
    found = spark.read.parquet(str(tmp_path / "out")).collect()
    assert sorted(one["text"] for one in found) == ["0@10", "0@11", "0@12", "0@13", "1@0", "1@1"]


def _reader(table: RawHistory) -> RawHistoryReader:
    ends = {str(partition): end for partition, end in table.ends.items()}
    place = {"uri": table.place.uri, "version": table.version, "options": {}}
    return RawHistoryReader({"tables": {"in": place}, "begins": {"in": {}}, "ends": {"in": ends}})
