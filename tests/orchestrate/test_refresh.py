"""Which days are computed again when records come."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from analytics.daily_prices.table import daily_prices
from platform_core.orchestrate.refresh import Refreshed, days_to_refresh

ZONE = ZoneInfo(daily_prices.zone)
NOON = datetime(2026, 3, 10, 12, tzinfo=ZONE)
INTERVAL = daily_prices.refreshes_every


def ago(now: datetime, past: timedelta, end: int = 100) -> Refreshed:
    return Refreshed(end, (now - past).timestamp())


def test_new_records_refresh_today() -> None:
    assert days_to_refresh(ago(NOON, INTERVAL), 200, NOON, daily_prices) == [date(2026, 3, 10)]


def test_nothing_is_refreshed_without_new_records() -> None:
    assert days_to_refresh(ago(NOON, INTERVAL), 100, NOON, daily_prices) == []


def test_nothing_is_refreshed_before_the_interval_has_passed() -> None:
    assert days_to_refresh(ago(NOON, INTERVAL / 2), 200, NOON, daily_prices) == []


def test_yesterday_is_refreshed_too_while_late_records_may_come() -> None:
    midnight = datetime(2026, 3, 10, 0, 20, tzinfo=ZONE)
    days = days_to_refresh(ago(midnight, INTERVAL), 200, midnight, daily_prices)
    assert days == [date(2026, 3, 9), date(2026, 3, 10)]


def test_days_are_those_of_the_zone() -> None:
    evening = datetime(2026, 3, 10, 22, tzinfo=ZONE)  # the 11th in UTC
    assert days_to_refresh(ago(evening, INTERVAL), 200, evening, daily_prices) == [date(2026, 3, 10)]


def test_a_sensor_that_was_off_for_weeks_asks_for_the_newest_days_alone() -> None:
    days = days_to_refresh(ago(NOON, timedelta(days=30)), 200, NOON, daily_prices)
    assert days == [date(2026, 3, 8), date(2026, 3, 9), date(2026, 3, 10)]


def test_what_was_refreshed_survives_the_cursor() -> None:
    assert Refreshed.from_json(Refreshed(7, 1.5).to_json()) == Refreshed(7, 1.5)
