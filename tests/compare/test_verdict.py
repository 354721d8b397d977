"""Which differences pass: those that were declared, and those that are explained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from platform_core.compare import Explain, Verdict, verdict
from tests.compare.tables import NOON, Row, Tables, many, stat


@pytest.fixture
def tables(tmp_path: Path) -> Tables:
    return Tables(tmp_path)


def judged(tables: Tables, left: Sequence[Row], right: Sequence[Row], **expect: str) -> Verdict:
    return verdict(tables.of(left, right, **expect))


def test_equal_tables_pass_without_a_word(tables: Tables) -> None:
    assert judged(tables, many(10), many(10)) == Verdict(True, ())


def test_every_unexpected_difference_is_a_reason(tables: Tables) -> None:
    left = [stat("A"), stat("B", price="1"), stat("C"), stat("D", count=1)]
    right = [stat("B", price="1.5"), stat("C"), stat("C"), stat("D", count=2), stat("E"), stat("F")]
    assert judged(tables, left, right) == Verdict(
        False,
        (
            "1 key has several rows in stats@v2",
            "1 key is only in stats@v1",
            "3 keys are only in stats@v2",
            "trade_count differs in 1 key, by 1 at most",
            "avg_price differs in 1 key, by 0.5 at most",
        ),
    )


def test_a_column_that_was_to_change_may_change_and_no_other(tables: Tables) -> None:
    left, right = [stat("A", price="1"), stat("B")], [stat("A", price="2"), stat("B")]
    assert judged(tables, left, right, avg_price="changes") == Verdict(
        True, (), ("avg_price differs in 1 key; expected: changes",)
    )


def test_a_row_that_changes_as_expected_and_otherwise_too_fails(tables: Tables) -> None:
    found = judged(tables, [stat("A", price="1", count=1)], [stat("A", price="2", count=2)], avg_price="changes")
    assert found.reasons == ("trade_count differs in 1 key, by 1 at most",)


def test_an_expectation_that_nothing_meets_is_told(tables: Tables) -> None:
    found = judged(tables, many(3), many(3), avg_price="changes", old="gone")
    assert found == Verdict(
        True,
        (),
        ("avg_price differs nowhere; expected: changes", "old is on both sides or on none; expected: gone"),
    )


@pytest.mark.parametrize(
    ("expect", "one", "other", "passes"),
    [
        ("within 0.01", "1.01", "1.00", True),
        ("within 0.01", "1.00", "1.01", True),
        ("within 0.01", "1.000000", "1.010001", False),
        ("within 1%", "100", "101", True),
        ("within 1%", "-100", "-99", True),
        ("within 1%", "100", "101.000001", False),
    ],
)
def test_a_tolerance_is_kept_to_the_last_digit(tables: Tables, expect: str, one: str, other: str, passes: bool) -> None:
    found = judged(tables, [stat("A", price=one)], [stat("A", price=other)], avg_price=expect)
    assert found.passed is passes


def test_a_value_that_is_missing_on_one_side_is_within_no_tolerance(tables: Tables) -> None:
    gone = {**stat("A"), "avg_price": None}
    assert not judged(tables, [stat("A")], [gone], avg_price="within 1000").passed


@pytest.mark.parametrize(("text", "passes"), [("new", True), ("changes", True), ("gone", False)])
def test_rows_may_come_where_new_ones_are_expected(tables: Tables, text: str, passes: bool) -> None:
    assert judged(tables, [stat("A")], [stat("A"), stat("B")], **{"*": text}).passed is passes


def test_columns_come_and_go_and_change_their_type_as_declared(tables: Tables) -> None:
    left = tables.write(1, [{"id": 1, "a": 1, "b": 1}], _columns(a=pa.int64(), b=pa.int32()))
    right = tables.write(2, [{"id": 1, "b": 1, "c": 1}], _columns(b=pa.int64(), c=pa.int64()))
    fails = verdict(tables.compare(left, right, ("id",)))
    assert fails.reasons == (
        "column a (long) is gone",
        "column b was integer and is long",
        "column c (long) is new",
    )
    assert verdict(tables.compare(left, right, ("id",), {"a": "gone", "b": "changes", "c": "new"})).passed


def test_what_is_explained_does_not_fail_and_is_counted(tables: Tables) -> None:
    left, right = tables.write(1, [stat("A", count=1), stat("B")]), tables.write(2, [stat("A", count=2), stat("C")])
    passed = tables.compare(left, right, explain=_all_of("A", "B", "C"))
    assert verdict(passed) == Verdict(True, (), ("3 differences explained: late",))
    rest = tables.compare(left, right, explain=_all_of("A", "B"))
    assert verdict(rest) == Verdict(False, ("1 key is only in stats@v2",), ("2 differences explained: late",))
    assert [one.because for one in rest.examples] == ["", "late", "late"]


def test_what_was_expected_is_not_asked_about(tables: Tables) -> None:
    def never(rows: pa.Table) -> Mapping[str, Sequence[int]]:
        raise AssertionError(rows)

    left, right = tables.write(1, [stat("A", price="1")]), tables.write(2, [stat("A", price="2")])
    assert verdict(tables.compare(left, right, expect={"avg_price": "changes"}, explain=never)).passed


def test_the_rows_that_are_asked_about_are_as_the_tables_have_them(tables: Tables) -> None:
    seen: list[Row] = []

    def look(rows: pa.Table) -> Mapping[str, Sequence[int]]:
        seen.extend(rows.to_pylist())
        return {}

    left, right = tables.write(1, [stat("A", price="1.5")]), tables.write(2, [stat("A", price="2"), stat("B")])
    tables.compare(left, right, explain=look)
    assert sorted((row["side"], row["ticker"], row["avg_price"]) for row in seen) == [
        ("left", "A", Decimal("1.5")),
        ("right", "A", Decimal("2")),
        ("right", "B", Decimal("10")),
    ]
    assert {row["window_start"] for row in seen} == {NOON.replace(tzinfo=None)}


def _columns(**kinds: pa.DataType) -> pa.Schema:
    return pa.schema([("id", pa.int64()), *kinds.items()])


def _all_of(*tickers: str) -> Explain:
    def explain(rows: pa.Table) -> Mapping[str, Sequence[int]]:
        return {"late": sorted({row["number"] for row in rows.to_pylist() if row["ticker"] in tickers})}

    return explain
