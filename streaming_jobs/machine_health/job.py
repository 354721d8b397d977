"""Machines that fail more and more often: one alert when it becomes too often, not one a reading.

- A machine's failures are counted over the last 6 hours, both ends in: at each failed reading, those of the machine
  from 6 hours before it up to itself.
- The alert is raised by the failed reading with which the count rises above 4.
- Hysteresis: no other alert is raised for the machine until its count has fallen to 2, half of the limit, or below.
  It falls as failures come to lie more than 6 hours back, whether there are readings or not. From then on the next
  rise above 4 raises another alert.

The alert's row: the machine, the failure that raised it, the first of the 5 failures of those 6 hours, and the highest
temperature of these failed readings. Readings without a failure change nothing. A duplicate record of a failed reading
counts as a second failure.

Readings are looked at in the order of their time: one waits until the watermark, 10 minutes behind the newest reading
of all partitions, has passed it. So an alert comes 10 minutes of event time after the failure, and is final. A reading
that comes behind the watermark is late: it is left out, and counted.

State: for each machine its newest 5 failures, whether its alert is raised, and the failures of the last 10 minutes. A
machine without a failure for 6 hours has no state.

What a Kafka Streams user may expect otherwise:
- A processor there sees readings in the order of offsets and decides by wall clock when to punctuate; a replay may
  raise other alerts. Here order and forgetting follow event time.
- One clock serves all machines: a machine that stays silent holds nothing back, one whose clock runs ahead makes
  others' readings late.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle
from typing_extensions import override

from ingest.topics import MACHINE_READINGS
from platform_core.declare import Days, RowRule, Stream, StreamingJob, Table
from platform_core.patterns import InOrder, in_order, moment

HOURS_US = 6 * 3_600_000_000
LIMIT = 4
ALERTS = "machine STRING, raised_at TIMESTAMP, first_failure TIMESTAMP, hottest DOUBLE"


class Failures(InOrder):
    """Of a machine: its newest failures, one more than the limit, and whether its alert is raised."""

    values = "temperature DOUBLE"
    forgets_after = "6 hours"

    @override
    def open(self, handle: StatefulProcessorHandle) -> None:
        self._failures = handle.getListState("failures", "at BIGINT, temperature DOUBLE")
        self._raised = handle.getValueState("raised", "raised BOOLEAN")

    @override
    def take(self, key: Any, at: int, *values: Any) -> Iterator[Row]:
        recent = [tuple(one) for one in self._failures.get() if at - one[0] <= HOURS_US]
        raised = self._raised.exists() and len(recent) > LIMIT // 2
        recent = [*recent, (at, *values)][-LIMIT - 1 :]
        self._failures.put(recent)
        if len(recent) > LIMIT and not raised:
            raised = True
            hottest = max(temperature for _, temperature in recent)
            yield Row(machine=key[0], raised_at=moment(at), first_failure=moment(recent[0][0]), hottest=hottest)
        self._raised.update((True,)) if raised else self._raised.clear()

    @override
    def forget(self) -> None:
        self._failures.clear()
        self._raised.clear()


def alerts(readings: DataFrame) -> DataFrame:
    return in_order(readings.where("failed"), "machine", function=Failures(), gives=ALERTS)


machine_health = StreamingJob(
    name="machine_health",
    inputs={
        "readings": Stream(
            MACHINE_READINGS, lateness="10 minutes", rules=(RowRule("machine is given", "machine <> ''"),)
        )
    },
    transform=alerts,
    output=Table(
        name="machine_health",
        schema=ALERTS,
        key=("machine", "raised_at"),
        layout=Days("raised_at"),
        description="When a machine began to fail too often: a row for each time.",
    ),
    emits="final",
    updates_every="5 seconds",
    description="Raises one alert when a machine's failures of the last six hours pass a limit.",
)
