"""A plan on a real broker and control store: what a replay would read, how long, how large, and who is touched."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from platform_core.control import clients, leases, positions
from platform_core.control.facts import BatchFacts
from platform_core.control.owners import Owner
from platform_core.control.position import Position
from platform_core.control.releases import Release
from platform_core.control.store import ControlStore
from platform_core.declare import Table
from platform_core.names import ReleaseId
from platform_core.release.first import first_release
from platform_core.release.plan import wording
from platform_core.release.plan.changes import ChangeKind
from platform_core.release.plan.estimate import estimated
from platform_core.release.plan.plan import notes, plan_of
from platform_core.release.plan.reading import Reading, TopicReading
from platform_core.settings import Settings
from platform_core.tables.delta import TableWriter
from platform_core.tables.schema import table_schema
from tests.conftest import Broker
from tests.release.conftest import Tree

HOUR_MS = 3_600_000


def _facts(records: int, seconds: float, second: int = 0) -> BatchFacts:
    at = datetime(2026, 1, 1, 0, 0, second, tzinfo=UTC)
    rate = records / seconds
    return BatchFacts(at, second, records, 1, batch_seconds=seconds, records_per_second=rate)


def test_the_time_is_that_of_the_largest_batches() -> None:
    history = [_facts(100, 1.0), *(_facts(50_000, 0.5, second) for second in range(1, 21)), _facts(0, 0.1)]
    found = estimated(history, 360_000_000, ReleaseId("sums", 1))
    assert found.hours == pytest.approx(1.0)
    assert found.basis == (
        "100,000 records/s in the 20 largest batches of sums@v1 in the last 24 hours, 50,000 to 50,000 records each"
    )


def test_small_batches_are_said_to_be_slow_ones() -> None:
    found = estimated([_facts(100, 0.5)], 720_000, ReleaseId("sums", 1))
    assert found.hours == pytest.approx(1.0)
    assert found.basis.endswith("; a replay's batches are larger, and faster by the record")


def test_without_history_there_is_no_time() -> None:
    found = estimated([], 1, ReleaseId("sums", 1))
    assert (found.hours, found.basis) == (None, "sums@v1 has recorded no batch with records in the last 24 hours")


@pytest.mark.parametrize(
    ("count", "said"), [(None, "not known"), (999, "999 bytes"), (1_234_000, "1.23 MB"), (5_000_000_000_000, "5 TB")]
)
def test_sizes_are_round(count: int | None, said: str) -> None:
    assert wording.size(count) == said


@pytest.mark.parametrize(("hours", "said"), [(0.01, "36 s"), (0.5, "30 minutes"), (30.0, "30.0 hours")])
def test_times_are_round(hours: float, said: str) -> None:
    assert wording.duration(hours) == said


def test_a_replay_that_takes_longer_than_records_are_kept_is_told() -> None:
    day = TopicReading("lines", 10, 10, 10, {0: 0}, 0, 24 * HOUR_MS, compacted=False)
    assert list(notes(Reading((day,)), 23.0)) == []
    assert list(notes(Reading((day,)), None)) == []
    assert list(notes(Reading((day,)), 25.0)) == [
        "topic 'lines' keeps records for 24 hours: the replay would lose the race"
    ]
    assert list(notes(Reading((replace(day, compacted=True),)), 25.0)) == []


@pytest.fixture
def live(settings: Settings, store: ControlStore, tree: Tree) -> Release:
    return first_release(tree.job, settings, store, "ann")


@pytest.mark.stack
def test_an_unchanged_tree_has_no_plan(settings: Settings, store: ControlStore, tree: Tree, live: Release) -> None:
    found = plan_of(tree.job, settings, store)
    assert (found.kind, found.changes, found.live) == (ChangeKind.NONE, (), str(live.id))
    assert wording.text(found) == (
        f"{tree.job}: no change, compared with {live.id}\n  The live release runs this code already."
    )


@pytest.mark.stack
def test_a_comment_is_a_revision_and_costs_nothing(
    settings: Settings, store: ControlStore, tree: Tree, live: Release
) -> None:
    _ = live
    tree.edit("Lines, as they come.", "Lines.")
    found = plan_of(tree.job, settings, store)
    assert (found.kind, found.reading) == (ChangeKind.REVISION, None)
    assert f"weir release {tree.job} --revision" in wording.text(found)


@pytest.mark.stack
def test_a_replay_is_told_with_records_bytes_age_and_retention(
    settings: Settings, store: ControlStore, tree: Tree, live: Release, broker: Broker
) -> None:
    _ = live
    now = int(time.time() * 1000)
    records = [(None, b"x" * 100)] * 40
    broker.produce(f"lines-{tree.job}", *records, partition=0, at=now - HOUR_MS)
    broker.produce(f"lines-{tree.job}", *records, partition=1, at=now)
    tree.edit('lines.select("line")', 'lines.select("line").distinct()')
    found = plan_of(tree.job, settings, store)
    assert found.kind is ChangeKind.REPLAY
    assert found.reading is not None
    topic = found.reading.topics[0]
    assert (topic.records, topic.bytes, topic.oldest_offsets) == (80, 8000, {0: 0, 1: 0})
    assert topic.oldest_at_ms == now - HOUR_MS
    assert (topic.kept_until_ms, topic.gone) == (None, 0)
    said = wording.text(found, "the topics")
    assert "the transform's function same changed (operator distinct added)" in said
    assert "has recorded no batch with records in the last 24 hours" in said


@pytest.mark.stack
def test_records_that_retention_took_are_told(
    settings: Settings, store: ControlStore, tree: Tree, live: Release, broker: Broker
) -> None:
    _ = live
    from confluent_kafka import TopicPartition

    topic = f"lines-{tree.job}"
    broker.produce(topic, *[(None, b"x")] * 10, partition=0)
    for one in broker.admin.delete_records([TopicPartition(topic, 0, 4)]).values():
        one.result(20)
    tree.edit('lines.select("line")', 'lines.select("line").distinct()')
    found = plan_of(tree.job, settings, store)
    assert found.reading is not None
    assert (found.reading.topics[0].gone, found.reading.records) == (4, 6)
    assert "has lost its first 4 records to retention" in found.notes[0]


@pytest.mark.stack
def test_time_and_room_come_from_the_live_release(
    settings: Settings, store: ControlStore, tree: Tree, live: Release
) -> None:
    lease = leases.acquire(store, leases.driver_lease(live.id), Owner.this_process(), 30)
    positions.record(store, lease, Position(str(live.id), 0, {}), _facts(50_000, 0.5), 1)
    schema = table_schema(Table(name="t", schema="line STRING", key=("line",)))
    TableWriter(settings.storage.table(live.id), schema, str(live.id), ("line",)).write(
        pa.table({"line": ["a", "b"]}), 0, "{}"
    )
    tree.edit('lines.select("line")', 'lines.select("line").distinct()')
    found = plan_of(tree.job, settings, store)
    assert found.time is not None
    assert found.room is not None
    assert found.time.hours == 0
    assert found.time.basis.startswith(f"100,000 records/s in the 1 largest batches of {live.id}")
    assert 100 < (found.room.bytes or 0) < 10_000
    assert (found.room.free or 0) > 0


@pytest.mark.stack
def test_clients_and_downstream_are_named(settings: Settings, store: ControlStore, tree: Tree, live: Release) -> None:
    clients.bind(store, "dashboard", tree.job, live.id, "ann")
    other = tree.root / "streaming_jobs" / f"{tree.job}_reader"
    other.mkdir()
    (other / "__init__.py").touch()
    text = tree.module.read_text().replace(tree.job, f"{tree.job}_reader").replace("Stream(LINES)", "Stream(ECHOES)")
    (other / "job.py").write_text(text.replace("publish=Publish(ECHOES", "publish=Publish(LINES"))
    tree.edit('lines.select("line")', 'lines.select("line").distinct()')
    found = plan_of(tree.job, settings, store)
    assert found.touched is not None
    assert list(wording.touches(found.touched)) == [
        f"table {tree.job}",
        f"topic echoes-{tree.job}",
        f"client dashboard (bound to {live.id})",
        f"job {tree.job}_reader, which reads topic echoes-{tree.job} as lines",
    ]


@pytest.mark.stack
def test_a_topic_made_again_must_be_replayed(
    settings: Settings, store: ControlStore, tree: Tree, live: Release, broker: Broker
) -> None:
    broker.delete(f"lines-{tree.job}")
    broker.create(f"lines-{tree.job}", 2)
    found = plan_of(tree.job, settings, store)
    assert found.kind is ChangeKind.REPLAY
    assert str(found.changes[0]).endswith(f"was deleted and created again since {live.id} was made")


@pytest.mark.stack
def test_a_broker_that_is_away_leaves_the_reasons(
    settings: Settings, store: ControlStore, tree: Tree, live: Release
) -> None:
    _ = live
    tree.edit('lines.select("line")', 'lines.select("line").distinct()')
    away = settings.model_copy(update={"kafka": settings.kafka.model_copy(update={"port": 1})})
    found = plan_of(tree.job, away, store)
    assert (found.kind, found.reading) == (ChangeKind.REPLAY, None)
    assert "What the broker holds is not known: Kafka at 127.0.0.1:1 did not" in found.notes[0]


@pytest.mark.stack
def test_a_plan_in_markdown_is_a_table_of_reasons(
    settings: Settings, store: ControlStore, tree: Tree, live: Release
) -> None:
    _ = live
    tree.edit('lines.select("line")', 'lines.select("line").where("line <> \'|\'")')
    lines = wording.markdown(plan_of(tree.job, settings, store)).splitlines()
    assert lines[0] == f"### `{tree.job}`: must replay"
    assert "|  | what changed | where |" in lines
    assert any(line.startswith("| must replay | the transform's function same changed") for line in lines)


@pytest.mark.stack
def test_a_job_that_was_never_started_reads_everything(settings: Settings, store: ControlStore, tree: Tree) -> None:
    found = plan_of(tree.job, settings, store)
    assert (found.kind, found.live) == (ChangeKind.REPLAY, None)
    assert f"`weir start {tree.job}` makes the first release." in wording.text(found)
