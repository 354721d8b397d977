"""Kafka's clients after their broker was killed and came back: what they remember of it is out of date."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from platform_core.broker import Broker, NewTopic
from platform_core.errors import Superseded
from platform_core.services import kafka, ports
from platform_core.settings import Settings, load
from platform_core.streaming.sink import publish
from platform_core.streaming.sink.encoding import Message
from platform_core.streaming.sink.publish import TransactionalPublisher
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


def committed(settings: Settings, topic: str, partitions: int = 1) -> list[bytes | None]:
    """What is there for readers up to the end of each partition; nothing that is open holds them back."""
    consumer = Consumer(
        {
            "bootstrap.servers": settings.kafka.servers,
            "group.id": "reader",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    values: list[bytes | None] = []
    ended: set[int | None] = set()
    try:
        consumer.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
        while len(ended) < partitions:
            message = consumer.poll(30)
            assert message is not None, f"{topic}: silent for 30 s, {len(ended)} of {partitions} at an end"
            error = message.error()
            if error is None:
                values.append(message.value())
            else:
                assert error.code() == KafkaError._PARTITION_EOF, error
                ended.add(message.partition())
        return values
    finally:
        consumer.close()


def test_a_publisher_goes_on_and_each_record_is_there_once(platform: Platform, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publish, "_HANGS", 3.0)
    broker = Broker(platform.settings)
    broker.create([NewTopic("out", 1, {}), NewTopic("in", 1, {})])
    ours = TransactionalPublisher(platform.settings, ["out"], "job", "job-v1", "checkpoint", 1)
    assert ours.publish({"out": [(b"k", b"0")]}, 0, END) == 1
    killed_and_back(platform)
    assert ours.publish({"out": [(b"k", b"1")]}, 1, END) == 1
    assert ours.publish({"out": [(b"k", b"1")]}, 1, END) == 0
    assert ours.publish({"out": [(b"k", b"2")]}, 2, END) == 1
    assert committed(platform.settings, "out") == [b"0", b"1", b"2"]
    ours.close()


def test_what_was_confirmed_just_before_the_kill_is_there(platform: Platform) -> None:
    """The broker has decided on the transaction, and has not told its partitions: many of them, so that it is killed
    in the middle. Kafka 4.3 forgets to (decision 0013); readers and the group's offsets then hang for ever."""
    many = 100
    broker = Broker(platform.settings)
    broker.create([NewTopic("out", many, {}), NewTopic("in", 1, {})])
    keys = [f"k{number}".encode() for number in range(10 * many)]
    ours = TransactionalPublisher(platform.settings, ["out"], "job", "job-v1", "checkpoint", 1)
    expected: list[bytes] = []
    for batch in range(3):
        value = str(batch).encode()
        assert ours.publish({"out": [(key, value) for key in keys]}, batch, END) == len(keys)
        killed_and_back(platform)
        successor = TransactionalPublisher(platform.settings, ["out"], "job", "job-v1", "checkpoint", batch + 2)
        assert successor.publish({"out": [(key, value) for key in keys]}, batch, END) == 0
        ours = successor
        expected += [value] * len(keys)
    assert sorted(value or b"" for value in committed(platform.settings, "out", many)) == expected
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
        platform.settings, ["out"], "job", "job-v1", "checkpoint", 1, lambda: asked.append(True) or True
    )
    assert ours.publish({"out": [(b"k", b"0")]}, 0, END) == 1

    def abandoned() -> None:
        until(
            lambda: broker.ends({"out": [0]}) == {"out": {0: 4}}, "the broker ends it: a record and the mark of its end"
        )

    assert ours.publish({"out": Interrupted([(b"k", b"1"), (b"k", b"2")], abandoned)}, 1, END) == 2
    assert asked == [True]
    assert committed(platform.settings, "out") == [b"0", b"1", b"2"]
    ours.close()


def test_a_publisher_whose_topic_is_not_its_own_any_more_writes_nothing(platform: Platform) -> None:
    broker = Broker(platform.settings)
    broker.create([NewTopic("out", 1, {}), NewTopic("in", 1, {})])
    ours = TransactionalPublisher(platform.settings, ["out"], "job", "job-v1", "checkpoint", 1, lambda: False)
    assert ours.publish({"out": [(b"k", b"0")]}, 0, END) == 1
    Producer({"bootstrap.servers": platform.settings.kafka.servers, "transactional.id": "job"}).init_transactions(30)
    with pytest.raises(Superseded, match="another producer has taken over"):
        ours.publish({"out": [(b"k", b"1")]}, 1, END)
    assert committed(platform.settings, "out") == [b"0"]
    ours.close()


def test_offsets_are_told_again(platform: Platform) -> None:
    broker = Broker(platform.settings)
    broker.create([NewTopic("in", 1, {})])
    assert broker.ends({"in": [0]}) == {"in": {0: 0}}
    killed_and_back(platform)
    assert broker.ends({"in": [0]}) == {"in": {0: 0}}
