"""Every format is held to one contract: what is published, or made by a test, is read back the same."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from platform_core.declare import Bytes, Double, Format, Json, Long, Publish, Stream, Text, Topic
from platform_core.declare.publishing import Part
from platform_core.declare.schemas import columns
from platform_core.formats import codec
from platform_core.streaming.sink.encoding import encoded
from platform_core.streaming.source.parsing import parsed
from platform_core.tables.schema import arrow_schema, delta_schema
from platform_core.testing import Record, at, record
from platform_core.testing.topics import ScriptTopics
from tests.testing import jobs

Row = dict[str, Any]
NOON = datetime(2025, 3, 1, 12, 0, 0, 120_000, tzinfo=UTC)
EVERYTHING: Row = {
    "text": 'é"\\\n',
    "tiny": -8,
    "whole": -3,
    "large": 2**62,
    "real": 0.5,
    "double": 0.1,
    "money": Decimal("999999999999.100000"),
    "yes": True,
    "day": date(2024, 2, 29),
    "moment": NOON,
    "local": NOON.replace(tzinfo=None),
    "raw": b"\xff\x00a",
    "tags": ["a", None],
    "moments": [NOON, None],
    "blobs": [b"\xff"],
    "pairs": {"b": 1, "a": None},
    "times": {"a": NOON},
    "nested": {"number": 1, "moment": NOON, "deep": [{"raw": b"\x00"}]},
}


DOUBLES = (0.0, -1.0, 0.1, -1e300, 5e-324, 2.2250738585072014e-308, -2.2250738585072009e-308, sys.float_info.max)


@dataclass(frozen=True)
class Example:
    """A schema of the format with rows of it, and how a job writes such a row."""

    schema: str
    part: Part
    rows: list[Row]
    garbage: dict[bytes, str] = field(default_factory=dict[bytes, str])  # what cannot be read, and why

    @property
    def names(self) -> list[str]:
        return [column.name for column in columns(self.schema, "example")]

    def table(self) -> pa.Table:
        """The rows with a key, as a batch has them."""
        kept = arrow_schema(delta_schema(columns(self.schema, "example"))).append(pa.field("id_", pa.int64()))
        return pa.Table.from_pylist([{**row, "id_": number} for number, row in enumerate(self.rows)], schema=kept)


EXAMPLES = {
    Format.JSON: Example(
        "text STRING, tiny TINYINT, whole INT, large BIGINT, real FLOAT, double DOUBLE, money DECIMAL(18,6), "
        "yes BOOLEAN, day DATE, moment TIMESTAMP, local TIMESTAMP_NTZ, raw BINARY, tags ARRAY<STRING>, "
        "moments ARRAY<TIMESTAMP>, blobs ARRAY<BINARY>, pairs MAP<STRING, BIGINT>, times MAP<STRING, TIMESTAMP>, "
        "nested STRUCT<number: INT, moment: TIMESTAMP, deep: ARRAY<STRUCT<raw: BINARY>>>",
        Json(),
        [EVERYTHING, dict.fromkeys(EVERYTHING), {**EVERYTHING, "text": "", "tags": [], "pairs": {}}],
        {b"": "empty value", b"\xff": "not UTF-8", b"{": "not JSON", b"[1]": "not JSON"},
    ),
    Format.TEXT: Example("line STRING", Text("line"), [{"line": "é\n"}, {"line": ""}], {b"\xff": "not UTF-8"}),
    Format.BYTES: Example("raw BINARY", Bytes("raw"), [{"raw": b"\xff\x00"}, {"raw": b""}]),
    Format.LONG: Example(
        "n BIGINT",
        Long("n"),
        [{"n": number} for number in (0, 1, -1, 255, -256, 2**62, 2**63 - 1, -(2**63))],
        {b"": "not 8 bytes", b"7": "not 8 bytes", bytes(9): "not 8 bytes"},
    ),
    Format.DOUBLE: Example(
        "x DOUBLE",
        Double("x"),
        [{"x": number} for number in (*DOUBLES, math.inf, -math.inf)],
        {b"": "not 8 bytes", b"0.5": "not 8 bytes"},
    ),
}


@pytest.fixture
def duck() -> Any:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'Asia/Tokyo'")  # of whatever machine
        yield connection


@pytest.fixture(params=list(Format), ids=str)
def form(request: pytest.FixtureRequest) -> Format:
    return request.param


def topic(form: Format) -> Topic:
    return Topic(name="t", value=EXAMPLES[form].schema, format=form, partitions=1)


def published(form: Format, duck: duckdb.DuckDBPyConnection) -> list[bytes | None]:
    """The values of the example's records, in the order of its rows."""
    example = EXAMPLES[form]
    value = Json(tuple(example.names)) if isinstance(example.part, Json) else example.part
    return [value for _, value in encoded(example.table(), Publish(topic(form), Text("id_"), value), duck)]


def read(spark: SparkSession, folder: Path, form: Format, values: list[Record]) -> list[tuple[Any, Row]]:
    """Why each is refused, or None, and the columns that a transform would see, of those that are not."""
    stream = Stream(topic(form))
    topics = ScriptTopics(jobs.job("j", lambda purchases: purchases, "a INT", inputs={"purchases": stream}), folder)
    topics.append(values)
    found = parsed(topics.between(spark, {}, topics.end(0)), stream).orderBy("offset")
    kept = [F.when(F.col("reason").isNull(), F.col(f"v.{name}")).alias(name) for name in EXAMPLES[form].names]
    seen = found.select("reason", *kept).toArrow().to_pylist(maps_as_pydicts="strict")
    return [(row.pop("reason"), plain(row)) for row in seen]


def plain(value: Any) -> Any:
    """Times in one object of UTC."""
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items()}
    if isinstance(value, list):
        return [plain(part) for part in value]
    return value.astimezone(UTC) if isinstance(value, datetime) and value.tzinfo else value


def test_what_is_published_is_read_back_the_same(
    form: Format, duck: duckdb.DuckDBPyConnection, spark: SparkSession, tmp_path: Path
) -> None:
    records = [record(topic(form), value=value) for value in published(form, duck)]
    assert read(spark, tmp_path, form, records) == [(None, row) for row in EXAMPLES[form].rows]


def test_a_tests_record_is_read_back_as_the_row_that_it_was_made_of(
    form: Format, spark: SparkSession, tmp_path: Path
) -> None:
    records = [record(topic(form), value=row) for row in EXAMPLES[form].rows]
    assert read(spark, tmp_path, form, records) == [(None, row) for row in EXAMPLES[form].rows]


def test_a_test_compares_what_is_published_with_what_it_would_write_itself(
    form: Format, duck: duckdb.DuckDBPyConnection
) -> None:
    own = codec(form)
    told = [None if value is None else own.loads(value) for value in published(form, duck)]
    assert [loosely(one) for one in told] == [loosely(own.loads(own.dumps(row))) for row in EXAMPLES[form].rows]


def loosely(value: Any) -> Any:
    """Python writes a time's zone as +00:00 and Spark reads either; maps have no order."""
    if isinstance(value, dict):
        return {name: loosely(part) for name, part in sorted(value.items())}
    if isinstance(value, list):
        return [loosely(part) for part in value]
    if isinstance(value, str) and value.startswith("2025-03-01T"):
        return datetime.fromisoformat(value)
    return value


def test_what_cannot_be_read_is_refused_with_its_reason(form: Format, spark: SparkSession, tmp_path: Path) -> None:
    garbage = EXAMPLES[form].garbage
    found = read(spark, tmp_path, form, [record(topic(form), value=value) for value in [*garbage, None]])
    expected = [*garbage.values(), "empty value"]
    assert [str(reason)[: len(said)] for (reason, _), said in zip(found, expected, strict=True)] == expected


@pytest.mark.parametrize(
    "part", [Text("line"), Bytes("line"), Long("line"), Double("line")], ids=lambda one: one.format
)
def test_a_row_without_the_one_column_is_published_as_a_tombstone(part: Part, duck: duckdb.DuckDBPyConnection) -> None:
    kinds = {Format.BYTES: pa.binary(), Format.LONG: pa.int32(), Format.DOUBLE: pa.float32()}
    rows = pa.table({"id_": [1], "line": pa.array([None], kinds.get(part.format, pa.string()))})
    assert encoded(rows, Publish(topic(part.format), Text("id_"), part), duck) == [(b"1", None)]


@pytest.mark.parametrize(
    "values",
    [
        pa.array(["é", "", None], pa.string()),
        pa.array([-(2**63), 0, None], pa.int64()),
        pa.array([-128, 127, None], pa.int8()),
    ],
    ids=["text", "long", "tiny"],
)
def test_text_that_arrow_writes_is_what_duckdb_would_write(values: pa.Array, duck: duckdb.DuckDBPyConnection) -> None:
    rows = pa.table({"line": values})
    (found,) = codec(Format.TEXT).encode(rows, [("line",)], duck)
    duck.register("written", rows)
    theirs = duck.sql("SELECT encode(CAST(line AS VARCHAR)) AS line FROM written").to_arrow_table()
    assert found.to_pylist() == theirs["line"].to_pylist()


@pytest.mark.parametrize("key", [Text("id"), Json(("id",))], ids=["two formats", "one format"])
def test_key_and_value_of_a_row_stay_together_in_a_large_batch(key: Part, duck: duckdb.DuckDBPyConnection) -> None:
    numbers = [number * 7919 % 150_000 for number in range(150_000)]
    rows = pa.table({"id": numbers, "line": [f"of {number}" for number in numbers]})
    out = encoded(rows, Publish(topic(Format.TEXT), key, Json(("line",))), duck)
    told = [(codec(key.format).loads(one or b""), codec(Format.JSON).loads(value or b"")) for one, value in out]
    assert all(value == {"line": f"of {_number(one)}"} for one, value in told)
    keys = [one or b"" for one, _ in out]
    assert keys == sorted(keys)
    assert {_number(one) for one, _ in told} == set(numbers)


def _number(key: Any) -> int:
    return int(key["id"] if isinstance(key, dict) else key)


def test_any_eight_bytes_are_the_double_that_java_reads(spark: SparkSession) -> None:
    random = Random(7)
    values = [random.randbytes(8) for _ in range(5_000)]
    own = codec(Format.DOUBLE)
    frame = spark.createDataFrame([(value,) for value in values], "value BINARY")
    found = frame.select(own.read(F.col("value"), columns("x DOUBLE", "x"))["x"].alias("x")).toArrow()["x"].to_pylist()
    assert list(map(repr, found)) == [repr(own.loads(value)) for value in values]


def test_an_empty_batch_publishes_nothing(form: Format, duck: duckdb.DuckDBPyConnection) -> None:
    example = EXAMPLES[form]
    assert encoded(example.table().slice(0, 0), Publish(topic(form), Text("id_"), example.part), duck) == []


def test_a_time_in_a_tests_record_is_iso_8601() -> None:
    assert codec(Format.JSON).dumps({"at": at(1)}) == b'{"at": "2025-03-01T12:00:01+00:00"}'
