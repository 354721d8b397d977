"""Which days of a daily table new records call for, decided from where the topic was and is."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from platform_core.declare import DailyTable

DAYS_A_TICK = 3  # a sensor that was off for weeks leaves the rest to a backfill


@dataclass(frozen=True)
class Refreshed:
    """How far the topic was when days were last asked for, and when that was; kept in the sensor's cursor."""

    end: int
    at: float

    def to_json(self) -> str:
        return json.dumps({"end": self.end, "at": self.at})

    @classmethod
    def from_json(cls, text: str) -> Refreshed:
        raw = json.loads(text)
        return cls(raw["end"], raw["at"])


def days_to_refresh(last: Refreshed, end: int, now: datetime, table: DailyTable) -> list[date]:
    """The days that records since `last` may belong to; none before the table's interval has passed."""
    if end == last.end or now.timestamp() - last.at < table.refreshes_every.total_seconds():
        return []
    zone = ZoneInfo(table.zone)
    today = now.astimezone(zone).date()
    oldest = (datetime.fromtimestamp(last.at, zone) - table.late_for).date()
    oldest = max(oldest, table.since, today - timedelta(days=DAYS_A_TICK - 1))
    return [oldest + timedelta(days=n) for n in range((today - oldest).days + 1)]
