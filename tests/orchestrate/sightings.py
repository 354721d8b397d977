"""Words for what was seen of a stream."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from platform_core.broker import TopicFacts
from platform_core.control.facts import BatchFacts
from platform_core.orchestrate.observed_state import (
    ObservedBroker,
    ObservedDriver,
    ObservedRelease,
    ObservedSupervisor,
    ObservedTopic,
    SeenBatch,
)

SUPERVISED = ObservedSupervisor(silent_for=2.0)
ALIVE = ObservedDriver("running", lease_alive=True, pid=17, host="here")
DEAD = ObservedDriver("running", lease_alive=False, pid=17, age=20.0)


def batch(number: int = 1, *, age: float = 5.0, records: int = 1000, lag: int = 0, **changes: float) -> SeenBatch:
    when = datetime.fromtimestamp(1_800_000_000 - age, UTC)
    facts = BatchFacts(when, number, records, 60, used=records, batch_seconds=0.3, lag={"stocks": {0: lag}})
    return SeenBatch(age, replace(facts, **changes))  # type: ignore[arg-type]


def running(
    *batches: SeenBatch, driver: ObservedDriver | None = ALIVE, at: int = 5000, **changes: object
) -> ObservedRelease:
    """A release wanted to run for an hour, its one input partition read up to `at`."""
    made = ObservedRelease(
        "stock_stats@v1",
        wanted="run",
        wanted_by="ann",
        wanted_age=3600.0,
        driver=driver,
        batches=batches,
        offsets={"stocks": {0: at}},
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def topic(
    end: int = 5000, *, begin: int = 0, id: str = "id-1", partitions: int = 1, retention_ms: int = -1
) -> ObservedTopic:
    facts = TopicFacts(id, partitions, retention_ms, "delete", "CreateTime")
    return ObservedTopic(facts, {0: begin}, {0: end})


def broker(end: int = 5000) -> ObservedBroker:
    return ObservedBroker({"stocks": topic(end)})


SILENT_BROKER = ObservedBroker(trouble="Kafka at 127.0.0.1:19092 did not answer.")
