"""What goes to people and what to programs."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

from platform_core.cli.output import plain, text_table


def test_json_rounds_no_decimal_and_tells_times_in_utc() -> None:
    vienna = datetime(2026, 1, 31, 13, 0, 5, tzinfo=timezone(timedelta(hours=1)))
    row = {"price": Decimal("5000.000001"), "at": vienna, "day": date(2026, 1, 31), "raw": b"\xff", "tags": ("a", None)}
    assert plain(row) == {
        "price": "5000.000001",
        "at": "2026-01-31T12:00:05Z",
        "day": "2026-01-31",
        "raw": "ff",
        "tags": ["a", None],
    }


def test_a_table_is_aligned_with_numbers_to_the_right() -> None:
    shown = text_table(("word", "count"), [("weir", 7), ("a", 1200), (None, None), ("b", 1)])
    assert shown.splitlines() == ["word  count", "----  -----", "weir      7", "a      1200", "", "b         1"]


def test_a_table_without_rows_has_its_heading() -> None:
    assert text_table(("at",), []).splitlines() == ["at", "--"]


def test_a_time_in_a_table_is_readable() -> None:
    assert "2026-01-31T12:00:00Z" in text_table(("at",), [(datetime(2026, 1, 31, 12, tzinfo=UTC),)])
