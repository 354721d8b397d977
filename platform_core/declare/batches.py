"""Daily tables: batch assets that compute whole days of a topic anew."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from platform_core.declare.durations import duration
from platform_core.declare.inputs import Stream
from platform_core.declare.tables import Table
from platform_core.declare.wanted import is_a, is_callable
from platform_core.errors import DeclarationError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

DAY = "day"  # the column by which the platform replaces what a run computed


@dataclass(frozen=True, kw_only=True)
class DailyTable:
    """A table with a partition a day of `zone`, each computed from the records of `input` and replaced as a whole.

    `transform` takes the records of some days (the value's columns, `event_time`, `key`, `record`, and `day`, the date
    of the event in `zone`) and gives the table's rows of those days. A day depends on no other day: so any set of days
    may be computed in any order, and again. Records that break a rule of the input or lie ahead are left out.
    """

    input: Stream
    transform: Callable[[DataFrame], DataFrame]
    output: Table
    since: date  # the first day that can be computed
    zone: str = "UTC"
    refresh: str = "15 minutes"  # days with new records are computed again, at most this often
    lateness: str = "1 hour"  # how long after its end a day is still refreshed

    def __post_init__(self) -> None:
        is_a(self.output, Table, "daily table.output", "Write Table(name=..., schema=...).")
        here = f"daily table {self.output.name!r}"
        is_a(self.input, Stream, f"{here}.input", "Write Stream(TOPIC).")
        is_a(self.since, date, f"{here}.since", "Write a date, as in date(2026, 1, 31).")
        is_callable(self.transform, f"{here}.transform")
        duration(self.refresh, f"{here}.refresh")
        duration(self.lateness, f"{here}.lateness")
        _check_zone(here, self.zone)
        days = [column for column in self.output.columns if column.name == DAY and column.sql == "date"]
        if not days or DAY not in self.output.key:
            raise DeclarationError(
                f"{here}.output: no DATE column {DAY!r} in its key {self.output.key}.",
                remedy=f"Declare `{DAY} DATE` and make it part of the key.",
            )
        parameters = list(inspect.signature(self.transform).parameters.values())
        if not parameters or any(one.default is inspect.Parameter.empty for one in parameters[1:]):
            raise DeclarationError(
                f"{here}.transform: it takes {list(inspect.signature(self.transform).parameters)}.",
                remedy="Take one argument, the records.",
            )

    @property
    def name(self) -> str:
        return self.output.name

    @property
    def refreshes_every(self) -> timedelta:
        return duration(self.refresh, "refresh")

    @property
    def late_for(self) -> timedelta:
        return duration(self.lateness, "lateness")


def _check_zone(here: str, zone: str) -> None:
    try:
        ZoneInfo(zone)
    except (KeyError, ValueError, OSError) as error:  # an unknown name, a path, a folder of the zone database
        raise DeclarationError(
            f"{here}.zone: {zone!r} is not a time zone.", remedy="Name one of the IANA database, as in 'Europe/Vienna'."
        ) from error
