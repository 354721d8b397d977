"""The suite of stock_stats says yes to what the job writes, and no to what it must never write."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from platform_core.declare.discover import load_jobs, load_suites
from platform_core.orchestrate.expectations import validate
from quality.stock_stats import stock_stats

pytestmark = pytest.mark.ordinary  # Great Expectations takes seconds to import
ROOT = Path(__file__).resolve().parents[2]


def row(second: int, **changes: Any) -> dict[str, Any]:
    sound = {
        "ticker": "MMM",
        "window_start": datetime(2026, 3, 10, 15, 0, second, tzinfo=UTC),
        "window_end": datetime(2026, 3, 10, 15, 0, second + 5, tzinfo=UTC),
        "trade_count": 2,
        "sum_price": Decimal("21.000000"),
        "min_price": Decimal("10.000000"),
        "avg_price": Decimal("10.500000"),
    }
    return {**sound, **changes}


def broken(*rows: dict[str, Any]) -> set[str]:
    """The names of the expectations that do not hold."""
    return {
        finding.expect.name for finding in validate(pd.DataFrame(rows), stock_stats.expectations) if not finding.holds
    }


def test_sound_rows_break_nothing() -> None:
    assert broken(row(1), row(2), row(2, ticker="ABT")) == set()


@pytest.mark.parametrize(
    ("rows", "name"),
    [
        ([row(1), row(1)], "one_row_a_window"),
        ([row(1, ticker=None)], "ticker_is_given"),
        ([row(1, trade_count=0)], "has_trades"),
        ([row(1, min_price=Decimal(0))], "lowest_price_is_positive"),
        ([row(1, avg_price=Decimal("9.999999"))], "average_is_not_below_lowest"),
        ([row(1, ticker="NEWS")], "known_tickers"),
    ],
)
def test_each_expectation_finds_what_it_is_for(rows: list[dict[str, Any]], name: str) -> None:
    assert broken(row(9), *rows) == {name}


def test_a_missing_column_is_an_expectation_that_does_not_hold() -> None:
    rows = pd.DataFrame([row(1)]).drop(columns="min_price")
    findings = {finding.expect.name: finding for finding in validate(rows, stock_stats.expectations)}
    assert not findings["lowest_price_is_positive"].holds
    assert "min_price" in findings["lowest_price_is_positive"].trouble
    assert findings["has_trades"].holds


def test_every_suite_is_of_a_declared_table_and_of_its_columns() -> None:
    tables = {job.output.name: job.output for job in load_jobs(ROOT).values()}
    for suite in load_suites(ROOT).values():
        known = {column.name: column.sql for column in tables[suite.table].columns}
        assert known[suite.newest_by] == "timestamp"
        for expect in suite.expectations:
            named = [value for key, value in expect.arguments.items() if key.startswith("column")]
            assert {name for value in named for name in ([value] if isinstance(value, str) else value)} <= set(known)


def test_it_validates_where_main_has_no_file_as_in_a_run_worker() -> None:
    program = """
import pandas as pd
from platform_core.orchestrate.expectations import validate
from quality.stock_stats import stock_stats
print(len(validate(pd.DataFrame({"trade_count": [1]}), stock_stats.expectations[2:3])), "validated")
"""
    ran = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, check=False)
    assert ran.stdout.decode().strip() == "1 validated", ran.stderr.decode()
