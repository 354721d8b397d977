"""The ten biggest gains of a day, over records as the platform hands them to a daily table."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession

from analytics.top_gainers.table import TEN, ten_biggest_gains, top_gainers

MONDAY, TUESDAY = date(2026, 3, 9), date(2026, 3, 10)
TRADE = (
    "type STRING, ticker STRING, price DECIMAL(18,6), event_time TIMESTAMP, day DATE, "
    "record STRUCT<topic: STRING, partition: INT, offset: BIGINT, timestamp: TIMESTAMP>"
)
Trade = tuple[str, str, float, date, str]  # ticker, price, second, day, type
Ranked = Callable[..., list[tuple[Any, ...]]]


def ask(ticker: str, price: str, *, second: float, day: date = MONDAY, kind: str = "ASK") -> Trade:
    return (ticker, price, second, day, kind)


@pytest.fixture
def ranked(spark: SparkSession) -> Ranked:
    """Place, ticker, open, close and gain of a day."""

    def of(*trades: Trade, day: date = MONDAY) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = []
        for offset, (ticker, price, second, of_day, kind) in enumerate(trades):
            at = datetime(of_day.year, of_day.month, of_day.day, 15, tzinfo=UTC) + timedelta(seconds=second)
            rows.append((kind, ticker, Decimal(price), at, of_day, ("stocks", 0, offset, at)))
        found = ten_biggest_gains(spark.createDataFrame(rows, TRADE)).where(f"day = DATE'{day}'")
        columns = ("place", "ticker", "open", "close", "gain")
        return [tuple(row) for row in found.select(*columns).orderBy("place").collect()]

    return of


def places(found: list[tuple[Any, ...]]) -> list[tuple[int, str, str]]:
    return [(place, ticker, f"{gain.normalize():f}") for place, ticker, _, _, gain in found]


def test_a_gain_is_the_last_ask_of_the_day_less_the_first(ranked: Ranked) -> None:
    trades = [ask("MMM", "10", second=1), ask("MMM", "50", second=2), ask("MMM", "12.5", second=3)]
    assert ranked(*trades) == [(1, "MMM", Decimal(10), Decimal("12.5"), Decimal("2.5"))]


def test_order_is_by_time_and_of_the_same_instant_by_offset(ranked: Ranked) -> None:
    trades = [
        ask("MMM", "12", second=3),
        ask("MMM", "10", second=1),
        ask("MMM", "11", second=1),
        ask("MMM", "13", second=3),
    ]
    assert ranked(*trades)[0][2:4] == (Decimal(10), Decimal(13))


def test_bids_do_not_count_and_days_do_not_mix(ranked: Ranked) -> None:
    trades = [
        ask("MMM", "10", second=1),
        ask("MMM", "99", second=9, kind="BID"),
        ask("MMM", "90", second=1, day=TUESDAY),
        ask("MMM", "80", second=2, day=TUESDAY),
    ]
    assert places(ranked(*trades)) == [(1, "MMM", "0")]
    assert places(ranked(*trades, day=TUESDAY)) == [(1, "MMM", "-10")]


def test_of_equal_gains_the_ticker_decides_and_ten_are_kept(ranked: Ranked) -> None:
    tickers = [f"T{number:02d}" for number in range(TEN + 2)]
    trades = [
        one
        for number, ticker in enumerate(reversed(tickers))
        for one in (ask(ticker, "10", second=number), ask(ticker, "15", second=60 + number))
    ]
    assert places(ranked(*trades)) == [(place + 1, ticker, "5") for place, ticker in enumerate(tickers[:TEN])]


def test_a_ticker_that_falls_again_leaves_the_ten(ranked: Ranked) -> None:
    opened = [ask(f"T{number:02d}", "10", second=0) for number in range(TEN + 1)]
    rose = [ask(f"T{number:02d}", str(30 - number), second=1) for number in range(TEN + 1)]
    assert [ticker for _, ticker, _ in places(ranked(*opened, *rose))] == [f"T{number:02d}" for number in range(TEN)]
    fell = ask("T00", "9", second=2)
    assert [ticker for _, ticker, _ in places(ranked(*opened, *rose, fell))] == [f"T{n:02d}" for n in range(1, TEN + 1)]


def test_a_trade_that_comes_late_or_twice_is_in_its_place(ranked: Ranked) -> None:
    trades = [ask("MMM", "10", second=5), ask("MMM", "12", second=9)]
    assert ranked(*trades, *trades) == ranked(*trades)
    assert places(ranked(*trades, ask("MMM", "7", second=1))) == [(1, "MMM", "5")]


def test_the_rows_are_those_declared(spark: SparkSession) -> None:
    kinds = dict(ten_biggest_gains(spark.createDataFrame([], TRADE)).dtypes)
    assert {column.name: column.sql for column in top_gainers.output.columns} == kinds
