"""Jobs with state of the author's own: a running total, and an alarm when a user has been silent."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql.streaming.stateful_processor import (
    ExpiredTimerInfo,
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)
from typing_extensions import override

from tests.testing.jobs import job

SILENCE_MS = 30_000


class RunningTotal(StatefulProcessor):
    """The sum so far and the number of purchases, a row for each batch that changed it."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._sum = handle.getValueState("sum", "total BIGINT")
        self._amounts = handle.getListState("amounts", "amount BIGINT")

    @override
    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: TimerValues) -> Iterator[Row]:
        amounts = [row["amount"] for row in rows]
        total = (self._sum.get() or (0,))[0] + sum(amounts)
        self._sum.update((total,))
        self._amounts.appendList([(amount,) for amount in amounts])
        yield Row(user=key[0], total=total, count=sum(1 for _ in self._amounts.get()))

    def close(self) -> None:
        pass


class Silence(StatefulProcessor):
    """One row for each user that no purchase has come of for half a minute of event time."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._last = handle.getValueState("last", "at BIGINT")

    @override
    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: TimerValues) -> Iterator[Row]:
        newest = max(int(row["event_time"].replace(tzinfo=UTC).timestamp() * 1000) for row in rows)
        if former := self._last.get():
            self._handle.deleteTimer(former[0] + SILENCE_MS)
            newest = max(newest, former[0])
        self._last.update((newest,))
        self._handle.registerTimer(newest + SILENCE_MS)
        return iter(())

    @override
    def handleExpiredTimer(
        self, key: Any, timerValues: TimerValues, expiredTimerInfo: ExpiredTimerInfo
    ) -> Iterator[Row]:
        (last,) = self._last.get() or (0,)
        self._last.clear()
        yield Row(user=key[0], last_seen=datetime.fromtimestamp(last / 1000, UTC).replace(tzinfo=None))

    def close(self) -> None:
        pass


def _running(purchases: DataFrame) -> DataFrame:
    return purchases.groupBy("user").transformWithState(
        RunningTotal(), "user STRING, total BIGINT, count BIGINT", outputMode="Update", timeMode="None"
    )


def _silent(purchases: DataFrame) -> DataFrame:
    return purchases.groupBy("user").transformWithState(
        Silence(), "user STRING, last_seen TIMESTAMP", outputMode="Append", timeMode="EventTime"
    )


running = job("running", _running, "user STRING, total BIGINT, count BIGINT", "user")
silent = job("silent", _silent, "user STRING, last_seen TIMESTAMP")
