"""Records read again by their coordinates: whole, or for their stamps alone."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from confluent_kafka import Consumer, TopicPartition

from platform_core.errors import ServiceUnavailable
from platform_core.settings import Settings
from platform_core.streaming.sink.rejects import Reject

_PATIENCE = 30.0


class KafkaFetcher:
    """For the few refused records whose value was too large to ride in a batch's metrics."""

    def __init__(self, settings: Settings) -> None:
        self._client: dict[str, Any] = {**settings.kafka.client, "bootstrap.servers": settings.kafka.servers}

    def values(self, rejects: list[Reject]) -> list[bytes | None]:
        """What the topic holds there; of a record that retention has removed meanwhile, what is known of it."""
        consumer = Consumer({**self._client, "group.id": "weir-rejects", "enable.auto.commit": False})
        try:
            return [_value(consumer, reject) for reject in rejects]
        finally:
            consumer.close()


class KafkaStamps:
    """When single records are stamped. Each is asked for once: a search by halves meets the same ones again."""

    def __init__(self, settings: Settings) -> None:
        self._where = settings.kafka.servers
        self._client: dict[str, Any] = {**settings.kafka.client, "bootstrap.servers": self._where}
        self._known: dict[tuple[str, int, int], int] = {}

    @cached_property
    def _consumer(self) -> Consumer:
        return Consumer({**self._client, "group.id": "weir-stamps", "enable.auto.commit": False})

    def of(self, topic: str, partition: int, offset: int) -> int:
        """In milliseconds; of the next record where there is none at the offset."""
        place = topic, partition, offset
        if place not in self._known:
            self._consumer.assign([TopicPartition(*place)])
            message = self._consumer.poll(_PATIENCE)
            if message is None or message.error() is not None:
                raise ServiceUnavailable(
                    f"Kafka at {self._where} did not give {topic}[{partition}]@{offset}.",
                    remedy="See the broker's log; the replay is tried again.",
                )
            self._known[place] = message.timestamp()[1]
        return self._known[place]

    def close(self) -> None:
        """An idle consumer goes on fetching ahead, up to 64 MB; the next question opens another."""
        if "_consumer" in vars(self):
            vars(self).pop("_consumer").close()
        self._known.clear()


def _value(consumer: Consumer, reject: Reject) -> bytes | None:
    consumer.assign([TopicPartition(reject.topic, reject.partition, reject.offset)])
    message = consumer.poll(_PATIENCE)
    found = message is not None and message.error() is None and message.offset() == reject.offset
    return message.value() if message is not None and found else reject.value
