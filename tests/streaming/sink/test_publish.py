"""What a row becomes in the output topic, and how a batch that is published already is known."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from platform_core.declare import Format, Json, Publish, Text, Topic
from platform_core.streaming.sink.encoding import encoded
from platform_core.streaming.sink.publish import newest_marker

TOPIC = Topic(name="out", value="v STRING", format=Format.TEXT)
NOON = datetime(2025, 3, 1, 12, 0, 0, 120_000, tzinfo=UTC)


@pytest.fixture
def duck() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'Asia/Tokyo'")  # of whatever machine
        yield connection


def rows(**columns: Any) -> pa.Table:
    return pa.table(columns)


def test_times_are_iso_8601_in_utc_with_milliseconds_on_any_machine(duck: duckdb.DuckDBPyConnection) -> None:
    out = rows(k=["a"], at=pa.array([NOON], pa.timestamp("us", "UTC")))
    ((key, value),) = encoded(out, Publish(TOPIC, key=Text("k")), duck)
    assert key == b"a"
    assert json.loads(value or b"") == {"k": "a", "at": "2025-03-01T12:00:00.120Z"}


def test_decimals_keep_every_digit_and_nulls_arrays_and_accents_survive(duck: duckdb.DuckDBPyConnection) -> None:
    out = rows(
        price=pa.array([Decimal("999999999999.100000")], pa.decimal128(18, 6)),
        none=pa.array([None], pa.string()),
        tags=[["é", "b"]],
    )
    ((_, value),) = encoded(out, Publish(TOPIC, key=Text("price")), duck)
    read = json.loads(value or b"", parse_float=Decimal)
    assert read == {"price": Decimal("999999999999.100000"), "none": None, "tags": ["é", "b"]}


def test_a_key_can_be_json_of_some_columns_and_a_value_text(duck: duckdb.DuckDBPyConnection) -> None:
    out = rows(word=["a"], n=[3])
    ((key, value),) = encoded(out, Publish(TOPIC, key=Json(("word",)), value=Text("n")), duck)
    assert (key, value) == (b'{"word":"a"}', b"3")


def test_records_are_in_the_order_of_their_keys(duck: duckdb.DuckDBPyConnection) -> None:
    out = rows(k=["b", "a", "c"])
    assert [key for key, _ in encoded(out, Publish(TOPIC, key=Text("k")), duck)] == [b"a", b"b", b"c"]


def test_the_platforms_own_column_is_not_published(duck: duckdb.DuckDBPyConnection) -> None:
    ((_, value),) = encoded(rows(k=["a"], _part=["2025"]), Publish(TOPIC, key=Text("k")), duck)
    assert json.loads(value or b"") == {"k": "a"}


class Group:
    """The committed offsets of a consumer group, by their metadata."""

    def __init__(self, *metadata: str | None) -> None:
        self._metadata = metadata

    def committed(self, asked: list[Any], timeout: float) -> list[Any]:
        assert timeout > 0
        assert asked
        return [SimpleNamespace(metadata=text, error=None) for text in self._metadata]


def marker(batch: int, epoch: int = 1) -> str:
    return json.dumps({"batch": batch, "checkpoint": "c", "epoch": epoch})


def test_the_newest_marker_of_the_newest_owner_counts() -> None:
    group: Any = Group(marker(9, epoch=1), marker(3, epoch=2), marker(2, epoch=2), None)
    found = newest_marker(group, {"stocks": {0: 1}})
    assert found is not None
    assert (found.batch, found.epoch) == (3, 2)


@pytest.mark.parametrize("metadata", [None, "", "reset by hand", "{}", "[]", '{"batch": 1}'])
def test_metadata_of_others_is_no_marker(metadata: str | None) -> None:
    group: Any = Group(metadata)
    assert newest_marker(group, {"stocks": {0: 1}}) is None
