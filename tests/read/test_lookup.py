"""Rows by key."""

from __future__ import annotations

import shutil
from datetime import timedelta

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from platform_core.errors import UsageError
from platform_core.read import get
from platform_core.settings import Settings
from tests.read.conftest import NOON, Publish, stats

pytestmark = pytest.mark.stack
KEY = ("ticker", "window_start")


@pytest.mark.parametrize("time", ["2026-01-31 12:00:01", "2026-01-31T12:00:01Z", "2026-01-31 13:00:01+01"])
def test_a_whole_key_gives_its_row(settings: Settings, publish: Publish, time: str) -> None:
    publish("stock_stats", stats("MMM", "ABT"), KEY)
    answer = get(settings, "stock_stats", ["ABT", time])
    assert [(row["ticker"], row["trade_count"]) for row in answer.records()] == [("ABT", 4)]


def test_a_part_of_the_key_gives_all_rows_that_begin_with_it_the_newest_first(
    settings: Settings, publish: Publish
) -> None:
    publish("stock_stats", stats("MMM", "ABT").take([5, 3, 4, 2, 0, 1]), KEY)
    answer = get(settings, "stock_stats", ["MMM"])
    assert [row["trade_count"] for row in answer.records()] == [2, 1, 0]
    assert answer.rows[-1][1] == NOON


def test_of_many_rows_of_a_part_the_newest_are_given(settings: Settings, publish: Publish) -> None:
    publish("stock_stats", stats("MMM", windows=10), KEY)
    answer = get(settings, "stock_stats", ["MMM"], limit=4)
    starts = [row["window_start"] for row in answer.records()]
    assert (starts, answer.truncated) == ([NOON + timedelta(seconds=second) for second in (9, 8, 7, 6)], True)


def test_a_key_is_read_by_its_columns_type(settings: Settings, publish: Publish) -> None:
    publish("users", pa.table({"id": pa.array([7, 8], pa.int64()), "name": ["a", "b"]}), ("id",))
    assert get(settings, "users", ["8"]).rows == [(8, "b")]
    with pytest.raises(UsageError, match=r"'x' is not a key of table 'users', which is \(id BIGINT\)"):
        get(settings, "users", ["x"])


def test_a_key_that_is_not_there_gives_no_rows(settings: Settings, publish: Publish) -> None:
    publish("stock_stats", stats("MMM"), KEY)
    assert get(settings, "stock_stats", ["'; drop table x; --"]).rows == []


@pytest.mark.parametrize("key", [[], ["MMM", "2026-01-31 12:00:00", "more"]])
def test_a_key_of_the_wrong_length_is_told_the_columns(settings: Settings, publish: Publish, key: list[str]) -> None:
    publish("stock_stats", stats("MMM"), KEY)
    with pytest.raises(UsageError, match=r"has the key \(ticker, window_start\); \d values came"):
        get(settings, "stock_stats", key)


def test_a_table_without_a_key_says_so(settings: Settings, publish: Publish) -> None:
    publish("views", pa.table({"page": ["a"]}))
    with pytest.raises(UsageError, match="'views' has no key"):
        get(settings, "views", ["a"])


def test_an_unknown_table_is_answered_with_those_that_are(settings: Settings, publish: Publish) -> None:
    publish("stock_stats", stats("MMM"), KEY)
    with pytest.raises(UsageError, match=r"There is no table 'stocks'\. Tables: .*stock_stats, .*_rejects"):
        get(settings, "stocks", ["MMM"])


def test_a_daily_table_is_read_by_the_key_that_it_declares(settings: Settings, publish: Publish) -> None:
    publish("stock_stats", stats("MMM"), KEY)
    days = pa.table({"ticker": ["MMM", "MMM"], "day": pa.array([20484, 20485], pa.date32()), "trades": [7, 8]})
    write_deltalake(settings.storage.daily("daily_prices").uri, days, partition_by=["day"], mode="overwrite")
    assert [row["trades"] for row in get(settings, "daily_prices", ["MMM"]).records()] == [8, 7]
    assert [row["trades"] for row in get(settings, "daily_prices", ["MMM", "2026-01-31"]).records()] == [7]
    shutil.rmtree(settings.storage.daily("daily_prices").uri)
