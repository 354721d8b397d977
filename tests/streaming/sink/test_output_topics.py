"""A topic on a broker: a batch is there once, its group shows how far the release is, and one role writes at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from confluent_kafka import Consumer, TopicPartition

from platform_core.broker import Broker as Asked
from platform_core.control.position import Position
from platform_core.declare import Json, Publish, StreamingJob, Topic
from platform_core.errors import PositionError
from platform_core.names import CHANGE, ReleaseId
from platform_core.settings import Settings
from platform_core.streaming.batch.value import Batch
from platform_core.streaming.checkpoint.files import Checkpoint
from platform_core.streaming.sink.output_topics import OutputTopics
from platform_core.streaming.sink.protocol import Retiring
from platform_core.tables.changes import ChangeType
from tests.conftest import Broker
from tests.testing import jobs

pytestmark = pytest.mark.stack


@pytest.fixture
def duck() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": "1"}) as connection:
        yield connection


@pytest.fixture
def job(request: pytest.FixtureRequest, broker: Broker) -> StreamingJob:
    name = f"outlet_{abs(hash(request.node.name)) % 10**9}"
    for topic in (f"{name}.in", f"{name}.out", f"{name}.out.v1"):
        broker.create(topic)
    published = Publish(Topic(name=f"{name}.out", value="total BIGINT"), Json(("user",)), Json(("total",)))
    return jobs.job(name, lambda purchases: purchases, "user STRING, total BIGINT", "user", publish=published)


class Opened:
    """An outlet over a checkpoint, as one driver after another opens it."""

    def __init__(self, settings: Settings, job: StreamingJob, folder: Any, duck: duckdb.DuckDBPyConnection) -> None:
        self.release, self._job, self._epoch = ReleaseId(job.name, 1), job, 0
        self._having = (settings, job, self.release)
        self._checkpoint, self._duck = Checkpoint(folder), duck

    def by_the_next_driver(self) -> OutputTopics:
        self._epoch += 1
        monitor: Any = SimpleNamespace(
            write=lambda: None, lease=SimpleNamespace(epoch=self._epoch), owns=lambda _: False
        )
        return OutputTopics(*self._having, monitor, self._checkpoint, self._duck)

    def batch(self, number: int, *changes: tuple[str, int, ChangeType]) -> Batch:
        kinds = [change.value for _, _, change in changes]
        rows = {"user": [one[0] for one in changes], "total": [one[1] for one in changes], CHANGE: kinds}
        end = {f"{self._job.name}.in": {0: number + 1}}
        return Batch(position=Position(str(self.release), number, end), changes=pa.table(rows))

    def group(self) -> tuple[int, str | None]:
        settings = self._having[0]
        consumer = Consumer({"bootstrap.servers": settings.kafka.servers, "group.id": self.release.group})
        (part,) = consumer.committed([TopicPartition(f"{self._job.name}.in", 0)], timeout=20)
        consumer.close()
        return part.offset, part.metadata


@pytest.fixture
def opened(platform_settings: Settings, job: StreamingJob, tmp_path: Any, duck: duckdb.DuckDBPyConnection) -> Opened:
    return Opened(platform_settings, job, tmp_path, duck)


ANN = ("ann", 1, ChangeType.INSERT)


def values(broker: Broker, topic: str, count: int) -> list[tuple[bytes | None, bytes | None]]:
    return [(one.key(), one.value()) for one in broker.consume(topic, count)]


def test_a_batch_is_published_once_whoever_repeats_it(opened: Opened, job: StreamingJob, broker: Broker) -> None:
    first = opened.by_the_next_driver()
    first.to("live")
    assert first.commit(opened.batch(0, ANN)).published == 1
    assert first.commit(opened.batch(0, ANN)).published == 0
    assert (first.committed(), opened.group()[0]) == (0, 1)
    second = opened.by_the_next_driver()
    second.to("live")
    assert second.commit(opened.batch(0, ANN)).published == 0
    assert second.commit(opened.batch(1, ("bob", 2, ChangeType.INSERT))).published == 1
    assert values(broker, f"{job.name}.out", 2) == [
        (b'{"user":"ann"}', b'{"total":1}'),
        (b'{"user":"bob"}', b'{"total":2}'),
    ]
    for output_topics in (first, second):
        output_topics.close()


def test_a_deletion_is_a_tombstone(opened: Opened, job: StreamingJob, broker: Broker) -> None:
    output_topics = opened.by_the_next_driver()
    output_topics.to("live")
    output_topics.commit(opened.batch(0, ANN, ("bob", 2, ChangeType.INSERT)))
    assert output_topics.commit(opened.batch(1, ("ann", 0, ChangeType.DELETE))).published == 1
    assert values(broker, f"{job.name}.out", 3)[2] == (b'{"user":"ann"}', None)
    output_topics.close()


def test_several_topics_have_a_batch_together_and_once(
    platform_settings: Settings, job: StreamingJob, tmp_path: Any, duck: duckdb.DuckDBPyConnection, broker: Broker
) -> None:
    (all_of,) = job.publishes
    broker.create(f"{job.name}.few")
    few = Publish(replace(all_of.topic, name=f"{job.name}.few"), all_of.key, all_of.value, where="total > 1")
    opened = Opened(platform_settings, replace(job, publish=(all_of, few)), tmp_path, duck)
    published: list[int] = []
    for _ in range(2):
        output_topics = opened.by_the_next_driver()
        output_topics.to("live")
        published.append(output_topics.commit(opened.batch(0, ANN, ("bob", 2, ChangeType.INSERT))).published)
        output_topics.close()
    assert published == [4, 0], "the second driver finds it there"
    assert len(values(broker, f"{job.name}.out", 2)) == 2
    assert values(broker, f"{job.name}.few", 2) == [(b'{"user":"bob"}', b'{"total":2}'), (b'{"user":"ann"}', None)]


def test_a_topic_that_has_more_than_the_checkpoint_runs_is_refused(opened: Opened) -> None:
    output_topics = opened.by_the_next_driver()
    output_topics.to("live")
    for number in range(3):
        output_topics.commit(opened.batch(number, ANN))
    restored = opened.by_the_next_driver()
    restored.to("live")
    with pytest.raises(PositionError, match=r"has batch 2 of group .*, the checkpoint runs 1\."):
        restored.commit(opened.batch(1, ANN))
    for one in (output_topics, restored):
        one.close()


def test_who_publishes_nothing_shows_how_far_it_is(opened: Opened, job: StreamingJob, broker: Broker) -> None:
    output_topics = opened.by_the_next_driver()
    output_topics.to("silent")
    assert output_topics.commit(opened.batch(4, ANN)).published == 0
    output_topics.close()  # flushes what was committed in the background
    assert (output_topics.committed(), opened.group()[0]) == (-1, 5)
    aside = opened.by_the_next_driver()
    aside.to("aside")
    aside.commit(opened.batch(5, ANN))
    assert values(broker, f"{job.name}.out.v1", 1) == [(b'{"user":"ann"}', b'{"total":1}')]
    aside.close()


def test_what_it_leaves_goes_and_the_jobs_topic_stays(
    opened: Opened, job: StreamingJob, broker: Broker, platform_settings: Settings
) -> None:
    output_topics = opened.by_the_next_driver()
    output_topics.to("aside")
    output_topics.commit(opened.batch(0, ANN))
    output_topics.close()
    declared = {"publish": {"topic": {"name": f"{job.name}.out"}}}
    left = list(OutputTopics.remains(Retiring(platform_settings, Asked(platform_settings), opened.release, declared)))
    assert [one.what for one in left] == [f"topic {job.name}.out.v1", f"group {opened.release.group}"]
    assert all(one.exists() for one in left)
    for one in left:
        one.remove()
    assert not any(one.exists() for one in left)
    assert f"{job.name}.out" in broker.admin.list_topics(timeout=10).topics
