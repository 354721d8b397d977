"""State functions of an author's own that are given the rows of a key in the order of their time.

Records of several partitions come out of order, and a replay reads them in other batches: a function that looks at
what came before would leave other rows then. So rows wait, in the state, until the watermark has passed them. Nothing
older can come after that, and the function is given them by time, partition and offset. A row that is behind the
watermark when it comes is late: Spark drops and counts it. A batch has no watermark, but all rows of a key at once.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import (
    ExpiredTimerInfo,
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)
from typing_extensions import override

from platform_core.declare.durations import duration

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Key = tuple[Any, ...]
Waiting = tuple[Any, ...]  # time, partition, offset, and the values

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_PLACE = "at BIGINT, partition INT, offset BIGINT"
_TIME, _VALUES = 0, 3  # places in what waits


class InOrder(StatefulProcessor):
    """What `transformWithState` takes, for functions over one row after the other: subclass it, and give it to
    `in_order`. Times are whole microseconds since 1970; `moment` makes a TIMESTAMP of them."""

    values: ClassVar[str] = ""  # the columns that `take` is given, as DDL
    forgets_after: ClassVar[str]  # a key's state is forgotten when no row of it comes for so long

    @abstractmethod
    def open(self, handle: StatefulProcessorHandle) -> None:
        """Makes the state variables of the function's own."""

    @abstractmethod
    def take(self, key: Key, at: int, *values: Any) -> Iterator[Row]:
        """What comes of one row; rows of a key come by time, partition and offset."""

    @abstractmethod
    def forget(self) -> None:
        """Clears the state variables: the key's next row is as its first."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._forgets = duration(self.forgets_after, f"{type(self).__name__}.forgets_after") // _MICROSECOND
        self._waiting = handle.getListState("waiting", ", ".join(filter(None, (_PLACE, self.values))))
        self._kept = handle.getValueState("kept", "last BIGINT, timer BIGINT")  # the one timer that is registered
        self.open(handle)

    @override
    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: TimerValues) -> Iterator[Row]:
        came = [_waiting(row, len(key)) for row in rows]
        if timerValues.getCurrentWatermarkInMs() < 0:  # a batch
            yield from self._taken(key, came, None)
            return
        self._waiting.appendList(came)
        first = _milliseconds(min(row[_TIME] for row in came))
        last, timer = self._kept.get() or (None, None)
        if timer is None or first < timer:
            if timer is not None:
                self._handle.deleteTimer(timer)
            self._wait(last, first)

    @override
    def handleExpiredTimer(
        self, key: Any, timerValues: TimerValues, expiredTimerInfo: ExpiredTimerInfo
    ) -> Iterator[Row]:
        passed = timerValues.getCurrentWatermarkInMs()
        waiting: list[Waiting] = [tuple(row) for row in self._waiting.get()]
        due = [row for row in waiting if row[_TIME] <= passed * 1000]
        left = [row for row in waiting if row[_TIME] > passed * 1000]
        last, _ = self._kept.get() or (None, None)
        if due:
            yield from self._taken(key, due, last)
            last = max(row[_TIME] for row in due)
            self._keep(left)
        ends = _milliseconds(min(row[_TIME] for row in left) if left else (last or 0) + self._forgets)
        if ends > passed:
            self._wait(last, ends)
        else:
            self._kept.clear()
            self.forget()

    def close(self) -> None:
        pass

    def _keep(self, waiting: list[Waiting]) -> None:
        if waiting:
            self._waiting.put(waiting)
        else:
            self._waiting.clear()

    def _wait(self, last: int | None, until: int) -> None:
        self._handle.registerTimer(until)
        self._kept.update((last, until))

    def _taken(self, key: Key, rows: list[Waiting], last: int | None) -> Iterator[Row]:
        for row in sorted(rows, key=lambda one: one[:_VALUES]):
            at = row[_TIME]
            if last is not None and at - last > self._forgets:
                self.forget()
            yield from self.take(key, at, *row[_VALUES:])
            last = at


def in_order(rows: DataFrame, *by: str, function: InOrder, gives: str) -> DataFrame:
    """What the function leaves of the rows, which have `event_time` and `record`; `gives` are its columns as DDL.

    For streams with a lateness, in jobs whose rows are final: an appended table, or `emits="final"`.
    """
    from platform_core.declare.schemas import columns

    here = f"{type(function).__name__}.values"
    names = [column.name for column in columns(function.values, here)] if function.values else []
    given = rows.select(*by, "event_time", "record.partition", "record.offset", *names)
    return given.groupBy(*by).transformWithState(function, gives, outputMode="Append", timeMode="EventTime")


def microseconds(moment: datetime) -> int:
    """A TIMESTAMP reaches a worker as a datetime in UTC."""
    return (moment.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND


def _waiting(row: Any, keys: int) -> Waiting:
    at, *rest = tuple(row)[keys:]
    return (microseconds(at), *rest)


def moment(at: int) -> datetime:
    return _EPOCH + at * _MICROSECOND


def _milliseconds(at: int) -> int:
    """Timers are in milliseconds: the first one that is not before."""
    return -(-at // 1000)
