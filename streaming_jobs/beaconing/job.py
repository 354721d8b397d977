"""Hosts that call an address which they do not usually call, again and again: one alert for each host and address.

- Usually: a pair of host and address is new for 24 hours from its first call. After that it is usual. It is forgotten,
  and new again, when more than 7 days lie between two of its calls.
- Again and again: a new pair has called 10 times or more, the gaps are 10 seconds long or longer on average, and their
  standard deviation is at most 0.2 of that. The gaps are those from the first call on. Looked at with each call.
- One alert: with the call that first makes it so; none for that pair again until it has been forgotten.

A call of the same time as the one before it, as a duplicate record is, counts as the same call.

Calls are looked at in the order of their time: one waits until the watermark, 1 minute behind the newest call of all
partitions, has passed it. So an alert comes a minute of event time after the call that raised it, and is final. A call
that comes behind the watermark is late: it is left out, and counted.

State: for each pair that has called in the last 7 days four numbers, and the calls of the last minute. It grows with
the pairs of a week, not with the calls.

What a Kafka Streams user may expect otherwise:
- A processor there sees records in the order of offsets, whatever their times; a replay with another interleaving of
  partitions gives other rows. Here order is by event time.
- Forgetting follows event time. A store with retention or a wall-clock punctuator forgets by other clocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle
from typing_extensions import override

from ingest.topics import CONNECTIONS
from platform_core.declare import Days, RowRule, Stream, StreamingJob, Table
from platform_core.patterns import InOrder, in_order, moment
from streaming_jobs.beaconing.schemas import BEACONING

NEW_FOR_MS = 24 * 3_600_000
CALLS, SHORTEST_GAP, LARGEST_DEVIATION = 10, 10.0, 0.2
GIVEN = (RowRule("host is given", "host <> ''"), RowRule("address is given", "address <> ''"))
PAIR = "first BIGINT, last BIGINT, calls BIGINT, squares BIGINT, decided BOOLEAN"


class Beacons(InOrder):
    """Keeps of a pair its first and newest call, their number, the sum of squared gaps, and whether it is decided."""

    forgets_after = "7 days"

    @override
    def open(self, handle: StatefulProcessorHandle) -> None:
        self._pair = handle.getValueState("pair", PAIR)

    @override
    def take(self, key: Any, at: int, *values: Any) -> Iterator[Row]:
        now = at // 1000
        first, last, calls, squares, decided = self._pair.get() or (now, now, 1, 0, False)
        if decided:
            return
        calls, squares = calls + (now > last), squares + (now - last) ** 2
        new, (gap, deviation) = now - first <= NEW_FOR_MS, _gaps(calls - 1, now - first, squares)
        found = new and calls >= CALLS and gap >= SHORTEST_GAP and deviation <= LARGEST_DEVIATION
        self._pair.update((first, now, calls, squares, found or not new))
        if found:
            pair = {"host": key[0], "address": key[1], "first_call": moment(first * 1000), "raised_at": moment(at)}
            yield Row(**pair, calls=calls, mean_gap=gap, gap_deviation=deviation)

    @override
    def forget(self) -> None:
        self._pair.clear()


def _gaps(number: int, total: int, squares: int) -> tuple[float, float]:
    """Their mean in seconds, and their standard deviation as a share of it."""
    if not total:
        return 0.0, 0.0
    return total / (1000 * number), sqrt(number * squares - total * total) / total


def beacons(connections: DataFrame) -> DataFrame:
    return in_order(connections, "host", "address", function=Beacons(), gives=BEACONING)


beaconing = StreamingJob(
    name="beaconing",
    inputs={"connections": Stream(CONNECTIONS, lateness="1 minute", rules=GIVEN)},
    transform=beacons,
    output=Table(
        name="beaconing",
        schema=BEACONING,
        key=("host", "address", "first_call"),
        layout=Days("first_call"),
        personal=("host", "address"),
        description="Hosts that call an unusual address again and again, with the evidence: a row for each pair.",
    ),
    emits="final",
    updates_every="5 seconds",
    description="Raises one alert for each host that calls an unusual address at regular gaps.",
)
