from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from ingest.topics import STOCKS
from streaming_jobs.stock_stats.job import ask_statistics, stock_stats
from tests.streaming_jobs.conftest import Batch, Row, TableOf


def ask(ticker: str, price: str, *, second: float) -> Row:
    return {"type": "ASK", "ticker": ticker, "price": Decimal(price), "size": 100, "second": second}


def bid(ticker: str, price: str, *, second: float) -> Row:
    return ask(ticker, price, second=second) | {"type": "BID"}


def row(ticker: str, window: tuple[int, int], count: int, total: str, lowest: str, average: str) -> tuple[Any, ...]:
    return (ticker, *window, count, Decimal(total), Decimal(lowest), Decimal(average))


@pytest.fixture
def table(batch: Batch, table_of: TableOf) -> Any:
    def of(*trades: Row) -> list[tuple[Any, ...]]:
        return table_of(ask_statistics(batch(STOCKS, list(trades))))

    return of


def test_a_trade_is_in_the_five_windows_that_contain_it(table: Any) -> None:
    assert table(ask("MMM", "10", second=4)) == [
        row("MMM", (start, start + 5), 1, "10", "10", "10") for start in (0, 1, 2, 3, 4)
    ]


def test_a_window_holds_its_start_and_not_its_end(table: Any) -> None:
    found = table(ask("MMM", "10", second=5), ask("MMM", "20", second=9.999), ask("MMM", "30", second=10))
    assert [part for part in found if part[1] == 5] == [row("MMM", (5, 10), 2, "30", "10", "15")]


def test_windows_that_share_trades_have_count_sum_minimum_and_average_of_their_own(table: Any) -> None:
    assert table(ask("MMM", "10", second=0), ask("MMM", "20", second=1)) == [
        row("MMM", (-1, 4), 2, "30", "10", "15"),
        row("MMM", (-2, 3), 2, "30", "10", "15"),
        row("MMM", (-3, 2), 2, "30", "10", "15"),
        row("MMM", (-4, 1), 1, "10", "10", "10"),
        row("MMM", (0, 5), 2, "30", "10", "15"),
        row("MMM", (1, 6), 1, "20", "20", "20"),
    ]


def test_a_bid_moves_neither_count_nor_minimum(table: Any) -> None:
    assert table(ask("MMM", "10", second=4), bid("MMM", "1", second=4)) == table(ask("MMM", "10", second=4))


def test_bids_alone_make_no_row(table: Any) -> None:
    assert table(bid("MMM", "10", second=4)) == []


def test_tickers_do_not_mix(table: Any) -> None:
    both = table(ask("MMM", "10", second=4), ask("AES", "20", second=4))
    assert both == table(ask("AES", "20", second=4)) + table(ask("MMM", "10", second=4))


def test_an_average_is_rounded_half_up_at_the_sixth_digit(table: Any) -> None:
    up = table(ask("MMM", "0.000001", second=4), ask("MMM", "0.000002", second=4))
    down = table(*(ask("MMM", price, second=4) for price in ("0.000001", "0.000001", "0.000002")))
    assert {part[-1] for part in up} == {Decimal("0.000002")}
    assert {part[-1] for part in down} == {Decimal("0.000001")}


def test_the_sum_is_exact_where_binary_numbers_are_not(table: Any) -> None:
    (total,) = {part[4] for part in table(*(ask("MMM", "0.1", second=4) for _ in range(10)))}
    assert total == Decimal("1.000000")


def test_the_largest_prices_add_up(table: Any) -> None:
    highest = "999999999999.999999"
    assert table(ask("MMM", highest, second=0), ask("MMM", highest, second=0))[0] == row(
        "MMM", (-1, 4), 2, "1999999999999.999998", highest, highest
    )


def test_the_output_has_the_declared_columns(batch: Batch) -> None:
    frame = ask_statistics(batch(STOCKS, []))
    assert frame.dtypes == [(column.name, column.sql) for column in stock_stats.output.columns]


def test_a_record_that_is_no_trade_breaks_a_rule(batch: Batch) -> None:
    bad = [{"type": "SELL"}, {"type": "ask"}, {"ticker": ""}, {"price": Decimal(0)}, {"price": Decimal("-1")}]
    assert _kept(batch, *(ask("MMM", "10", second=4) | wrong for wrong in bad)) == 0


def test_a_trade_needs_type_ticker_and_price() -> None:
    assert [column.name for column in STOCKS.columns if column.required] == ["type", "ticker", "price"]


def test_asks_and_bids_keep_all_rules(batch: Batch) -> None:
    assert _kept(batch, ask("MMM", "10", second=4), bid("MMM", "0.000001", second=4)) == 2


def _kept(batch: Batch, *rows: Row) -> int:
    rules = stock_stats.streams["trades"].rules
    return batch(STOCKS, list(rows)).where(" AND ".join(f"({rule.holds})" for rule in rules)).count()
