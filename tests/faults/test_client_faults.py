"""Kafka's clients after their broker was killed and came back: what they remember of it is out of date."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from platform_core.broker import Broker, NewTopic
from platform_core.errors import Superseded
from platform_core.services import kafka, ports
from platform_core.settings import Settings, load
from platform_core.stream import publish
from platform_core.stream.publish import Message, TransactionalPublisher
from tests.stack.running import Platform, until

pytestmark = [pytest.mark.stack, pytest.mark.timeout(300)]
END = {"in": {0: 1}}


@pytest.fixture
def platform(tmp_path: Path) -> Iterator[Platform]:
    port = str(ports.free(1)[0])
    made = Platform(load(environment={"WEIR_HOME": str(tmp_path), "WEIR_KAFKA__PORT": port}))
    made.serve(kafka.broker(made.settings))
    yield made
    made.end()


def killed_and_back(platform: Platform) -> None:
    platform.service("kafka").kill_all()
    platform.serve(kafka.broker(platform.settings))


def committed(settings: Settings, topic: str) -> list[bytes | None]:
    consumer = Consumer(
        {"bootstrap.servers": settings.kafka.servers, "group.id": "reader", "isolation.level": "read_committed"}
    )
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        return [message.value() for message in consumer.consume(100, 5)]
    finally:
        consumer.close()


def test_a_publisher_goes_on_and_each_record_is_there_once(platform: Platform, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publish, "_HANGS", 3.0)
    broker = Broker(platform.settings)
    broker.create([NewTopic("out", 1, {}), NewTopic("in", 1, {})])
    ours = TransactionalPublisher(platform.settings, "out", "job", "job-v1", "checkpoint", 1)
    assert ours.publish([(b"k", b"0")], 0, END) == 1
    until(lambda: broker.ends({"out": [0]}) == {"out": {0: 2}}, "readers see it: decision 0013 says what else is lost")
    killed_and_back(platform)
    assert ours.publish([(b"k", b"1")], 1, END) == 1
    assert ours.publish([(b"k", b"1")], 1, END) == 0
    assert ours.publish([(b"k", b"2")], 2, END) == 1
    assert committed(platform.settings, "out") == [b"0", b"1", b"2"]
    ours.close()


class Interrupted(list[Message]):
    """Messages of which the second is produced only after something has happened, once."""

    def __init__(self, messages: Iterable[Message], happens: Callable[[], None]) -> None:
        super().__init__(messages)
        self._happens = [happens]

    def __iter__(self) -> Iterator[Message]:
        first, *others = list.__iter__(self)
        yield first
        while self._happens:
            self._happens.pop()()
        yield from others


def test_a_transaction_that_the_broker_took_for_abandoned_is_repeated(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a freeze that outlasts it: the broker ends it, and fences whoever had begun it."""
    monkeypatch.setattr(publish, "_ABANDONED_MS", 3000)
    broker = Broker(platform.settings)
    broker.create([NewTopic("out", 1, {}), NewTopic("in", 1, {})])
    asked: list[bool] = []
    ours = TransactionalPublisher(
        platform.settings, "out", "job", "job-v1", "checkpoint", 1, lambda: asked.append(True) or True
    )
    assert ours.publish([(b"k", b"0")], 0, END) == 1

    def abandoned() -> None:
        until(
            lambda: broker.ends({"out": [0]}) == {"out": {0: 4}}, "the broker ends it: a record and the mark of its end"
        )

    assert ours.publish(Interrupted([(b"k", b"1"), (b"k", b"2")], abandoned), 1, END) == 2
    assert asked == [True]
    assert committed(platform.settings, "out") == [b"0", b"1", b"2"]
    ours.close()


def test_a_publisher_whose_topic_is_not_its_own_any_more_writes_nothing(platform: Platform) -> None:
    broker = Broker(platform.settings)
    broker.create([NewTopic("out", 1, {}), NewTopic("in", 1, {})])
    ours = TransactionalPublisher(platform.settings, "out", "job", "job-v1", "checkpoint", 1, lambda: False)
    assert ours.publish([(b"k", b"0")], 0, END) == 1
    Producer({"bootstrap.servers": platform.settings.kafka.servers, "transactional.id": "job"}).init_transactions(30)
    with pytest.raises(Superseded, match="another producer has taken over"):
        ours.publish([(b"k", b"1")], 1, END)
    assert committed(platform.settings, "out") == [b"0"]
    ours.close()


def test_offsets_are_told_again(platform: Platform) -> None:
    broker = Broker(platform.settings)
    broker.create([NewTopic("in", 1, {})])
    assert broker.ends({"in": [0]}) == {"in": {0: 0}}
    killed_and_back(platform)
    assert broker.ends({"in": [0]}) == {"in": {0: 0}}
