"""A replay begins where retention has taken the records, and a raw table still has them."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pyarrow as pa
import pytest
from confluent_kafka import TopicPartition

from platform_core.control import leases, positions, releases
from platform_core.control.facts import BatchFacts
from platform_core.control.owners import Owner
from platform_core.control.position import Position
from platform_core.control.releases import Release
from platform_core.control.starts import StartPosition
from platform_core.control.store import ControlStore
from platform_core.declare import Format, Raw, StreamingJob, Topic, as_landed, raw_table
from platform_core.errors import UsageError
from platform_core.names import PART, ReleaseId
from platform_core.release.candidate import CandidateOptions, release_candidate
from platform_core.release.declared import declared as told_of
from platform_core.release.first import first_release
from platform_core.release.starting import start_of
from platform_core.settings import Settings
from platform_core.streaming.sink.table import output_of
from tests.conftest import Broker
from tests.control.words import created
from tests.release.conftest import Tree

pytestmark = pytest.mark.stack
ROWS = ('lines.select("line")', 'lines.select("line").distinct()')


@pytest.fixture
def live(settings: Settings, store: ControlStore, tree: Tree) -> Release:
    return first_release(tree.job, settings, store, "ann")


def test_records_that_are_gone_but_landed_can_be_replayed(
    settings: Settings, store: ControlStore, tree: Tree, live: Release, broker: Broker
) -> None:
    """Of ten records, a second apart, retention has taken four; the raw table has the first seven."""
    topic, began = f"lines-{tree.job}", int(time.time()) - 60
    for number in range(10):
        broker.produce(topic, (None, b"x"), partition=0, at=(began + number) * 1000)
    for one in broker.admin.delete_records([TopicPartition(topic, 0, 4)]).values():
        one.result(20)
    landing = _landed(settings, store, topic, live.topics[topic], [(0, n, began + n) for n in range(7)], {0: 7, 1: 0})
    tree.edit(*ROWS)
    moment = datetime.fromtimestamp(began + 2, UTC).isoformat()
    declared = {"inputs": {"lines": {"is": "Stream", "topic": {"name": topic}}}}
    assert start_of(settings, store, declared, moment, None).offsets == {topic: {0: 2, 1: 0}}
    assert release_candidate(tree.job, settings, store, "ann", CandidateOptions()).replay_from == StartPosition(
        "earliest", None, {topic: {0: 0, 1: 0}}
    )
    releases.set_state(store, landing, "retired", "a test", by="ann")
    with pytest.raises(UsageError, match=r"4 records that the live release began with are gone"):
        start_of(settings, store, declared, "earliest", None)


def _landed(
    settings: Settings,
    store: ControlStore,
    topic: str,
    topic_id: str,
    rows: list[tuple[int, int, int]],
    ends: dict[int, int],
) -> ReleaseId:
    """A live landing whose table has these records: partition, offset, second."""
    job = StreamingJob(
        name=f"{topic.replace('-', '_')}_raw",
        inputs={"records": Raw(Topic(name=topic, format=Format.TEXT, value="line STRING"))},
        transform=as_landed,
        output=raw_table("raw", Topic(name=topic, format=Format.TEXT, value="line STRING")),
    )
    landing = ReleaseId(job.name, 1)
    created(store, landing, "live", {"declared": told_of(job)}, {topic: topic_id})
    lease = leases.acquire(store, leases.driver_lease(landing), Owner.this_process(), 30)
    records = [(topic, p, o, datetime.fromtimestamp(at, UTC), None, b"x", "part") for p, o, at in rows]
    table = output_of(settings, job, landing)
    names = [*(column.name for column in job.output.columns), PART]
    position = Position(str(landing), 0, {topic: ends})
    version = table.write(
        pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in records]), 0, position.to_json()
    )
    positions.record(store, lease, position, BatchFacts(datetime.now(UTC), 0, len(rows), len(rows)), version)
    return landing


def test_a_replay_that_would_lose_the_race_is_refused_with_figures(
    settings: Settings, store: ControlStore, tree: Tree, live: Release, broker: Broker
) -> None:
    """An hour of retention; the live release has worked 20,000 records in four hours."""
    topic = f"lines-{tree.job}"
    broker.set(topic, retention_ms="3600000")
    broker.produce(topic, *[(None, b"x")] * 10, partition=0, at=int(time.time() * 1000))
    lease = leases.acquire(store, leases.driver_lease(live.id), Owner.this_process(), 30)
    seconds = 4 * 3600.0
    slow = BatchFacts(datetime.now(UTC), 0, 20_000, 1, batch_seconds=seconds, records_per_second=1 / seconds)
    positions.record(store, lease, Position(str(live.id), 0, {topic: {0: 10, 1: 0}}), slow, 1)
    tree.edit(*ROWS)
    with pytest.raises(
        UsageError, match=r"would lose the race: topic .* keeps records for 1 hours, reading .* about 40"
    ):
        release_candidate(tree.job, settings, store, "ann", CandidateOptions())
    assert len(releases.of_job(store, tree.job)) == 1
