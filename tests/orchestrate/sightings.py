"""Words for what was seen of a stream."""

from __future__ import annotations

from dataclasses import replace

from platform_core.broker import TopicFacts
from platform_core.orchestrate.observed_state import (
    ObservedBatch,
    ObservedBroker,
    ObservedDriver,
    ObservedRelease,
    ObservedSupervisor,
    ObservedTopic,
)

SUPERVISED = ObservedSupervisor(silent_for=2.0)
ALIVE = ObservedDriver("running", lease_alive=True, pid=17, host="here")
DEAD = ObservedDriver("running", lease_alive=False, pid=17, age=20.0)


def batch(number: int = 1, *, age: float = 5.0, records: int = 1000, lag: int = 0, **changes: float) -> ObservedBatch:
    made = ObservedBatch(age, number, records, records, rows=60, late=0, rejected=0, filtered=0, seconds=0.3, lag=lag)
    return replace(made, **changes)


def running(
    *batches: ObservedBatch, driver: ObservedDriver | None = ALIVE, at: int = 5000, **changes: object
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
