"""Records read again by their coordinates, whole."""

from __future__ import annotations

from typing import Any

from confluent_kafka import Consumer, TopicPartition

from platform_core.settings import Settings
from platform_core.stream.rejects import Reject

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


def _value(consumer: Consumer, reject: Reject) -> bytes | None:
    consumer.assign([TopicPartition(reject.topic, reject.partition, reject.offset)])
    message = consumer.poll(_PATIENCE)
    found = message is not None and message.error() is None and message.offset() == reject.offset
    return message.value() if message is not None and found else reject.value
