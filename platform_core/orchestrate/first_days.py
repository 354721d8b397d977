"""Where the partitions of a daily table begin: at the day of its topic's first record, once somebody has looked."""

from __future__ import annotations

import bisect
import json
from collections.abc import Callable
from datetime import date, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

from platform_core.broker import Broker
from platform_core.declare import DailyTable
from platform_core.settings import Settings


def places(settings: Settings) -> Path:
    """A file, since to load the location asks no server."""
    return settings.home / "dagster" / "first_days.json"


def first_day(settings: Settings, table: DailyTable) -> date:
    """The declared one until it is known; never an earlier one."""
    found = _kept(settings).get(table.name)
    return table.since if found is None else max(table.since, date.fromisoformat(found))


def known(settings: Settings, table: DailyTable) -> bool:
    return table.name in _kept(settings)


def keep(settings: Settings, table: DailyTable, day: date) -> None:
    """For good: a topic that is made anew takes no partition away."""
    path = places(settings)
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps({table.name: str(day), **_kept(settings)}))
    fresh.replace(path)


def find(settings: Settings, table: DailyTable, now: datetime) -> date | None:
    """The day of the first record of the table's topic; None while it has none. Ten questions for two years."""
    broker, topic = Broker(settings), table.input.topic.name
    parts = {topic: range(broker.topics([topic])[topic].partitions)}
    begin = broker.starts(parts)
    if begin == broker.ends(parts):
        return None

    def holds(day: date) -> bool:
        after = datetime.combine(day + timedelta(days=1), datetime.min.time(), ZoneInfo(table.zone))
        return broker.since(parts, int(after.timestamp() * 1000)) != begin

    return earliest(table.since, now.astimezone(ZoneInfo(table.zone)).date(), holds)


def earliest(since: date, today: date, holds: Callable[[date], bool]) -> date:
    """The first day by whose end there is a record: `holds` is true from some day on. Today, when there is none."""
    days = [since + timedelta(days=n) for n in range((today - since).days + 1)]
    return days[min(bisect.bisect_left(days, True, key=holds), len(days) - 1)]


def _kept(settings: Settings) -> dict[str, str]:
    path = places(settings)
    return json.loads(path.read_text()) if path.is_file() else {}
