"""What a row of stock_stats must look like, whatever was traded."""

from __future__ import annotations

from platform_core.declare import Expect, Suite

stock_stats = Suite(
    table="stock_stats",
    newest_by="window_start",
    newest="2 hours",
    expectations=(
        Expect(
            "one_row_a_window",
            "expect_compound_columns_to_be_unique",
            {"column_list": ["ticker", "window_start"]},
            description="A window of a ticker has one row, however often it was updated.",
        ),
        Expect(
            "ticker_is_given",
            "expect_column_values_to_not_be_null",
            {"column": "ticker"},
            description="Rules of the input refuse trades without a ticker; none may come through.",
        ),
        Expect(
            "has_trades",
            "expect_column_values_to_be_between",
            {"column": "trade_count", "min_value": 1},
            description="A window exists because of a trade in it.",
        ),
        Expect(
            "lowest_price_is_positive",
            "expect_column_values_to_be_between",
            {"column": "min_price", "min_value": 0, "strict_min": True},
        ),
        Expect(
            "average_is_not_below_lowest",
            "expect_column_pair_values_a_to_be_greater_than_b",
            {"column_A": "avg_price", "column_B": "min_price", "or_equal": True},
        ),
        Expect(
            "known_tickers",
            "expect_column_values_to_be_in_set",
            {
                "column": "ticker",
                "value_set": ["MMM", "ABT", "ABBV", "ACN", "ATVI", "AYI", "ADBE", "AAP", "AES", "AET"],
            },
            severity="warn",
            description="The ten tickers of the demo; another one is news, not an error.",
        ),
    ),
)
