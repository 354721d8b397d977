"""daily_prices on a real broker and Delta: the days of the exchange, whole, once."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import dagster as dg
import pytest
from deltalake import DeltaTable

from analytics.daily_prices.table import LAST, daily_prices
from platform_core.declare import DailyTable
from platform_core.orchestrate.daily import daily_asset
from platform_core.orchestrate.days import compute
from platform_core.orchestrate.keys import table_key
from platform_core.settings import Settings
from tests.conftest import Broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.stack

NEW_YORK = ZoneInfo("America/New_York")
MONDAY, TUESDAY = date(2026, 3, 9), date(2026, 3, 10)
_numbers = itertools.count(1)

Row = tuple[Any, ...]  # ticker, day, low, high, moving average, trades


def at(day: date, hour: int = 12, minute: int = 0, second: int = 0) -> int:
    """A moment of the exchange's day, in milliseconds."""
    moment = datetime(day.year, day.month, day.day, hour, minute, second, tzinfo=NEW_YORK)
    return int(moment.timestamp() * 1000)


class Market:
    """Sends trades to a topic of its own, of which `table` is computed."""

    def __init__(self, broker: Broker, spark: SparkSession) -> None:
        name = f"daily_{next(_numbers)}"
        self.broker, self.spark = broker, spark
        self.topic = broker.create(f"{name}.in", partitions=2)
        stream = replace(daily_prices.input, topic=replace(daily_prices.input.topic, name=self.topic))
        self.table: DailyTable = replace(daily_prices, input=stream, output=replace(daily_prices.output, name=name))

    @property
    def settings(self) -> Settings:
        return self.broker.settings

    def sends(self, price: str, moment: int, *, ticker: str = "MMM", kind: str = "ASK", partition: int = 0) -> None:
        value = json.dumps({"type": kind, "ticker": ticker, "price": float(price), "size": 100}).encode()
        self.broker.produce(self.topic, (ticker.encode(), value), partition=partition, at=moment)

    def computes(self, first: date, last: date) -> None:
        compute(self.spark, self.settings, self.table, first, last)

    def rows(self) -> list[Row]:
        found = DeltaTable(self.settings.storage.daily(self.table.name).uri).to_pyarrow_table().to_pylist()
        prices = ("low", "high", "moving_average")
        return sorted((r["ticker"], r["day"], *(_text(r[name]) for name in prices), r["trades"]) for r in found)


def _text(price: Decimal) -> str:
    return f"{price.normalize():f}"


@pytest.fixture
def market(broker: Broker, spark: SparkSession) -> Market:
    return Market(broker, spark)


def test_a_day_has_lowest_highest_and_the_mean_of_its_asks(market: Market) -> None:
    for price, minute in (("10", 1), ("14", 2), ("12", 3)):
        market.sends(price, at(MONDAY, minute=minute))
    market.sends("7", at(MONDAY), ticker="ABT", partition=1)
    market.computes(MONDAY, MONDAY)
    assert market.rows() == [("ABT", MONDAY, "7", "7", "7", 1), ("MMM", MONDAY, "10", "14", "12", 3)]


def test_a_bid_never_moves_a_price(market: Market) -> None:
    market.sends("10", at(MONDAY))
    market.sends("1", at(MONDAY), kind="BID")
    market.computes(MONDAY, MONDAY)
    assert market.rows() == [("MMM", MONDAY, "10", "10", "10", 1)]


def test_the_moving_average_is_of_the_newest_asks_by_time_not_by_arrival(market: Market) -> None:
    market.sends("1000", at(MONDAY, hour=13))
    for n in range(LAST - 1):
        market.sends("10", at(MONDAY, second=n + 1))
    market.sends("5", at(MONDAY))  # the oldest of one more than count
    market.computes(MONDAY, MONDAY)
    mean = (1000 + 10 * (LAST - 1)) / LAST
    assert market.rows() == [("MMM", MONDAY, "5", _text(Decimal(1000)), _text(Decimal(str(mean))), LAST + 1)]


def test_a_day_is_that_of_the_exchange_also_when_clocks_change(market: Market) -> None:
    sunday = date(2026, 3, 8)  # 23 hours long in New York
    moments = {
        datetime(2026, 3, 8, 4, 59, 59, tzinfo=UTC): None,  # still Saturday there
        datetime(2026, 3, 8, 5, 0, tzinfo=UTC): sunday,
        datetime(2026, 3, 9, 3, 59, 59, tzinfo=UTC): sunday,
        datetime(2026, 3, 9, 4, 0, tzinfo=UTC): MONDAY,
    }
    for price, moment in enumerate(moments, start=1):
        market.sends(str(price), int(moment.timestamp() * 1000))
    market.computes(sunday, MONDAY)
    assert market.rows() == [("MMM", sunday, "2", "3", "2.5", 2), ("MMM", MONDAY, "4", "4", "4", 1)]


def test_a_record_dated_years_ahead_hides_none_that_follow_it(market: Market) -> None:
    market.sends("10", at(MONDAY))
    market.sends("99", at(date(2099, 1, 1)))
    market.sends("12", at(MONDAY, minute=1))
    market.computes(MONDAY, MONDAY)
    assert market.rows() == [("MMM", MONDAY, "10", "12", "11", 2)]


def test_records_that_break_a_rule_are_left_out(market: Market) -> None:
    market.sends("10", at(MONDAY))
    market.sends("-3", at(MONDAY))
    market.broker.produce(market.topic, (b"MMM", b"not json"), (None, b"{}"), at=at(MONDAY))
    market.computes(MONDAY, MONDAY)
    assert market.rows() == [("MMM", MONDAY, "10", "10", "10", 1)]


def test_computing_a_day_again_replaces_it_and_no_other(market: Market) -> None:
    market.sends("10", at(MONDAY))
    market.sends("20", at(TUESDAY))
    market.computes(MONDAY, TUESDAY)
    first = market.rows()
    market.computes(MONDAY, TUESDAY)
    assert market.rows() == first
    market.sends("30", at(MONDAY))
    market.sends("40", at(TUESDAY))
    market.computes(MONDAY, MONDAY)
    assert market.rows() == [("MMM", MONDAY, "10", "30", "20", 2), ("MMM", TUESDAY, "20", "20", "20", 1)]


def test_a_day_without_trades_has_no_rows(market: Market) -> None:
    market.computes(MONDAY, MONDAY)
    assert market.rows() == []


def test_the_asset_computes_the_days_that_dagster_asks_for(market: Market) -> None:
    market.sends("10", at(MONDAY))
    market.sends("20", at(TUESDAY))
    result = _materialized(market, partition_key=str(TUESDAY))
    assert market.rows() == [("MMM", TUESDAY, "20", "20", "20", 1)]
    (event,) = result.asset_materializations_for_node(f"compute_{market.table.name}")
    assert {name: event.metadata[name].value for name in ("rows", "days", "records_read", "rejected")} == {
        "rows": 1,
        "days": 1,
        "records_read": 1,
        "rejected": 0,
    }


def test_a_backfill_of_several_days_is_one_run(market: Market) -> None:
    market.sends("10", at(MONDAY))
    market.sends("20", at(TUESDAY))
    days = {"dagster/asset_partition_range_start": str(MONDAY), "dagster/asset_partition_range_end": str(TUESDAY)}
    result = _materialized(market, tags=days)
    assert [row[1] for row in market.rows()] == [MONDAY, TUESDAY]
    told = result.asset_materializations_for_node(f"compute_{market.table.name}")
    assert [event.partition for event in told] == [str(MONDAY), str(TUESDAY)]


def _materialized(market: Market, **how: Any) -> dg.ExecuteInProcessResult:
    class Given:
        """The session of the tests, where a run has one of its own."""

        spark_session = market.spark

    asset = daily_asset(market.table, market.settings)
    assert asset.key == table_key(market.table.name)
    with dg.DagsterInstance.ephemeral() as instance:
        return dg.materialize([asset], resources={"spark": Given()}, instance=instance, **how)
