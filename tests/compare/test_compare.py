"""Every seeded difference between two Delta tables is found, and nothing else."""

from __future__ import annotations

import math
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from platform_core.errors import Retryable, UsageError
from platform_core.names import PART
from tests.compare.tables import NOON, STATS, Row, Tables, changed, counts, many, stat


@pytest.fixture(params=["on this machine", "in an object store"])
def tables(tmp_path: Path, request: pytest.FixtureRequest) -> Tables:
    return Tables(tmp_path, far=request.param == "in an object store")


def test_tables_of_equal_rows_are_the_same_however_their_files_are_cut(tables: Tables) -> None:
    rows = many(5000)
    left = tables.write(1, rows)
    for start in range(4000, -1, -1000):
        tables.write(2, rows[start : start + 1000])
    found = tables.compare(left, tables.side(2))
    assert found.same
    assert (found.rows_left, found.rows_right, found.parts_paired) == (5000, 5000, 0)


def test_one_changed_value_in_one_row_of_many_is_found(tables: Tables) -> None:
    rows = many(20_000)
    other = [*rows[:777], {**rows[777], "avg_price": rows[777]["avg_price"] + Decimal("0.000001")}, *rows[778:]]
    found = tables.of(rows, other)
    assert counts(found) == (0, 0, 1)
    assert changed(found) == {"avg_price": 1}
    assert [column.largest for column in found.columns if column.name == "avg_price"] == [1e-06]
    [example] = found.examples
    assert example.key == {"ticker": "T7", "window_start": "2026-01-31 12:01:17Z"}
    assert (example.left or {})["avg_price"] == "777.000000"
    assert (example.right or {})["avg_price"] == "777.000001"
    assert example.changed == ("avg_price",)


def test_keys_that_only_one_side_has_are_found(tables: Tables) -> None:
    found = tables.of([stat("A"), stat("B")], [stat("B"), stat("C"), stat("D")])
    assert counts(found) == (1, 2, 0)
    assert sorted((one.kind, one.key["ticker"]) for one in found.examples) == [
        ("only left", "A"),
        ("only right", "C"),
        ("only right", "D"),
    ]


def test_a_doubled_key_is_found_with_its_surplus_row(tables: Tables) -> None:
    found = tables.of([stat("A"), stat("B")], [stat("A"), stat("B"), stat("B")])
    assert counts(found) == (0, 1, 0)
    assert (found.doubled_left, found.doubled_right) == (0, 1)


def test_a_doubled_key_with_another_value_is_no_lost_row(tables: Tables) -> None:
    found = tables.of([stat("A"), stat("B")], [stat("A"), stat("B"), stat("B", price="11")])
    assert found.counts["only left"].found == 0
    assert found.doubled_right == 1
    assert not found.same


def test_a_key_that_moved_to_another_part_is_found(tables: Tables) -> None:
    found = tables.of([stat("A", second=3599)], [stat("A", second=3600)])
    assert counts(found) == (1, 1, 0)


def test_parts_that_are_laid_out_otherwise_hold_the_same_rows(tables: Tables) -> None:
    left = tables.write(1, many(100))
    tables.write(2, [{**row, PART: "0001"} for row in many(100)])
    assert tables.compare(left, tables.side(2, layout="buckets")).same


def test_an_empty_side_lacks_every_row(tables: Tables) -> None:
    DeltaTable.create(tables.uri(1), schema=STATS, partition_by=[PART])
    right = tables.write(2, many(50))
    assert counts(tables.compare(tables.side(1), right)) == (0, 50, 0)
    assert counts(tables.compare(right, tables.side(1))) == (50, 0, 0)


def test_two_empty_tables_are_the_same(tables: Tables) -> None:
    for number in (1, 2):
        DeltaTable.create(tables.uri(number), schema=STATS, partition_by=[PART])
    assert tables.compare(tables.side(1), tables.side(2)).same


def test_the_version_that_was_asked_for_is_compared(tables: Tables) -> None:
    left = tables.write(1, many(10))
    tables.write(2, many(10))
    tables.write(2, [stat("LATER")])
    assert tables.compare(left, tables.side(2, version=0)).same
    assert counts(tables.compare(left, tables.side(2, version=1))) == (0, 1, 0)


def test_a_version_whose_files_were_cleaned_up_is_told(tables: Tables) -> None:
    left = tables.write(1, many(10))
    right = tables.write(2, many(10))
    Path(tables.uri(2), next(iter(right.files))).unlink()
    with pytest.raises(Retryable, match=r"stats@v2 at version 0: 1 of its files are gone"):
        tables.compare(left, right)
    with pytest.raises(Retryable, match="version 99"):
        tables.compare(left, tables.side(2, version=99))


# columns


def one_column(kind: pa.DataType) -> pa.Schema:
    return pa.schema([("id", pa.int64()), ("v", kind)])


def rows_of(*values: Any) -> list[Row]:
    return [{"id": at, "v": value} for at, value in enumerate(values)]


NESTED = pa.struct([("a", pa.list_(pa.int64())), ("b", pa.struct([("c", pa.string())]))])


@pytest.mark.parametrize(
    ("kind", "one", "other"),
    [
        (pa.int64(), 1, 2),
        (pa.int64(), 0, None),
        (pa.int8(), 1, 2),
        (pa.float64(), 0.1, 0.1 + 2**-56),
        (pa.float64(), math.nan, None),
        (pa.float64(), math.nan, math.inf),
        (pa.float64(), 0.0, None),
        (pa.bool_(), False, None),
        (pa.string(), "", None),
        (pa.string(), "a", "A"),
        (pa.string(), "a", "a "),
        (pa.binary(), b"\x00", b""),
        (pa.date32(), NOON.date(), NOON.date() + timedelta(days=1)),
        (pa.timestamp("us", "UTC"), NOON, NOON + timedelta(microseconds=1)),
        (pa.timestamp("us"), NOON.replace(tzinfo=None), None),
        (pa.decimal128(38, 18), Decimal("1.000000000000000001"), Decimal("1.000000000000000002")),
        (pa.decimal128(38, 0), Decimal("9" * 38), Decimal("-" + "9" * 38)),
        (pa.list_(pa.string()), [], None),
        (pa.list_(pa.string()), [None], []),
        (pa.list_(pa.string()), ["a", "b"], ["b", "a"]),
        (pa.list_(pa.string()), ["a, b"], ["a", "b"]),
        (pa.list_(pa.string()), ["NULL"], [None]),
        (NESTED, {"a": [], "b": {"c": None}}, {"a": None, "b": {"c": None}}),
        (NESTED, {"a": [1], "b": {"c": "x"}}, {"a": [1], "b": {"c": "y"}}),
        (NESTED, {"a": [1], "b": None}, {"a": [1], "b": {"c": None}}),
        (pa.map_(pa.string(), pa.int64()), [("a", 1), ("b", 2)], [("a", 2), ("b", 1)]),
        (pa.map_(pa.string(), pa.int64()), [("a", None)], []),
        (pa.list_(pa.map_(pa.string(), pa.int64())), [[("a", 1)]], [[("a", 2)]]),
    ],
)
def test_values_that_differ_in_any_type_are_told_apart(tables: Tables, kind: pa.DataType, one: Any, other: Any) -> None:
    left, right = rows_of(one, one, one), rows_of(one, other, one)
    found = tables.of(left, right, one_column(kind), key=("id",))
    assert counts(found) == (0, 0, 1)
    assert [example.key for example in found.examples] == [{"id": "1"}]
    assert tables.compare(tables.side(1), tables.side(1), ("id",)).same


@pytest.mark.parametrize(
    ("kind", "one", "other"),
    [
        (pa.int64(), None, None),
        (pa.float64(), math.nan, -math.nan),
        (pa.float64(), 0.0, -0.0),
        (pa.map_(pa.string(), pa.int64()), [("a", 1), ("b", 2)], [("b", 2), ("a", 1)]),
        (
            pa.struct([("m", pa.map_(pa.string(), pa.list_(pa.map_(pa.string(), pa.int64()))))]),
            {"m": [("x", [[("a", 1), ("b", 2)]]), ("y", None)]},
            {"m": [("y", None), ("x", [[("b", 2), ("a", 1)]])]},
        ),
    ],
)
def test_values_that_mean_the_same_are_the_same(tables: Tables, kind: pa.DataType, one: Any, other: Any) -> None:
    assert tables.of(rows_of(one), rows_of(other), one_column(kind), key=("id",)).same


def test_a_changed_type_is_found_where_the_values_are_the_same(tables: Tables) -> None:
    left = tables.write(1, rows_of(Decimal("1.50"), None), one_column(pa.decimal128(18, 6)))
    right = tables.write(2, rows_of(Decimal("1.50"), None), one_column(pa.decimal128(18, 2)))
    found = tables.compare(left, right, ("id",))
    assert [str(one) for one in found.schema] == ["column v was decimal(18,6) and is decimal(18,2)"]
    assert counts(found) == (0, 0, 0)
    assert not found.same


@pytest.mark.parametrize(
    ("one", "other", "left", "right"),
    [
        (pa.decimal128(18, 6), pa.decimal128(18, 2), Decimal("1.005"), Decimal("1.01")),
        (pa.decimal128(18, 6), pa.float64(), Decimal("1.005"), 1.01),
        (pa.int32(), pa.int64(), 1, 2),
        (pa.int64(), pa.string(), 1, "2"),
        (pa.list_(pa.int64()), pa.list_(pa.string()), [1], ["2"]),
        (pa.timestamp("us", "UTC"), pa.timestamp("us"), NOON, NOON.replace(tzinfo=None, hour=13)),
        (pa.timestamp("us", "UTC"), pa.int64(), NOON, 5),
    ],
)
def test_values_of_two_types_are_compared_by_what_they_say(
    tables: Tables, one: pa.DataType, other: pa.DataType, left: Any, right: Any
) -> None:
    sides = (
        tables.write(1, rows_of(left, None), one_column(one)),
        tables.write(2, rows_of(right, None), one_column(other)),
    )
    found = tables.compare(*sides, ("id",))
    assert len(found.schema) == 1
    assert counts(found) == (0, 0, 1)


def test_a_renamed_column_is_one_gone_and_one_new(tables: Tables) -> None:
    left = tables.write(1, rows_of(1, 2), one_column(pa.int64()))
    right = tables.write(2, [{"id": 0, "w": 1}, {"id": 1, "w": 2}], pa.schema([("id", pa.int64()), ("w", pa.int64())]))
    found = tables.compare(left, right, ("id",))
    assert [str(one) for one in found.schema] == ["column v (long) is gone", "column w (long) is new"]
    assert counts(found) == (0, 0, 0)


def test_files_from_before_a_column_was_added_hold_null_in_it(tables: Tables) -> None:
    kind = one_column(pa.int64())
    tables.write(1, [{"id": 0}], pa.schema([("id", pa.int64())]))
    left = tables.write(1, [{"id": 1, "v": 1}], kind, schema_mode="merge")
    right = tables.write(2, [{"id": 0, "v": None}, {"id": 1, "v": 1}], kind)
    assert tables.compare(left, right, ("id",)).same


def test_a_key_that_one_side_lacks_is_refused(tables: Tables) -> None:
    left = tables.write(1, rows_of(1), one_column(pa.int64()))
    with pytest.raises(UsageError, match="'window_start', part of the key"):
        tables.compare(left, left, ("id", "window_start"))


# appended tables


def test_appended_rows_are_compared_as_often_as_they_come(tables: Tables) -> None:
    found = tables.of([stat("A"), stat("A"), stat("B")], [stat("A"), stat("B"), stat("B"), stat("B")], key=())
    assert counts(found) == (1, 2, 0)
    assert (found.doubled_left, found.doubled_right) == (0, 0)


def test_an_appended_row_with_another_value_is_one_gone_and_one_new(tables: Tables) -> None:
    assert counts(tables.of([stat("A", price="1")], [stat("A", price="2")], key=())) == (1, 1, 0)


def test_appended_rows_meet_by_what_may_not_differ(tables: Tables) -> None:
    left = [stat("A", price="1"), stat("A", price="2"), stat("B", price="3")]
    right = [stat("A", price="1"), stat("A", price="7"), stat("C", price="3")]
    found = tables.of(left, right, key=(), avg_price="changes")
    assert counts(found) == (1, 1, 1)
    assert found.unexplained == 2
