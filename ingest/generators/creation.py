"""The topics that a generator needs, on a broker that the platform does not look after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from platform_core.declare import Topic
from platform_core.errors import ServiceUnavailable

SECONDS = 15.0
ANY_TIME = str(2**63 - 1)  # brokers since Kafka 4.0 refuse what is stamped more than an hour ahead


class TopicCreation:
    def __init__(self, servers: str, client: Mapping[str, str]) -> None:
        self._servers = servers
        self._admin: Any = AdminClient({"bootstrap.servers": servers, "log_level": 2, **client})

    def missing(self, topics: Sequence[Topic]) -> list[Topic]:
        try:
            there = self._admin.list_topics(timeout=SECONDS).topics
        except KafkaException as error:
            raise self._unavailable("answer", error) from error
        return [topic for topic in topics if topic.name not in there]

    def create(self, topics: Sequence[Topic]) -> None:
        """As they are declared; a topic that somebody else created meanwhile is as good."""
        asked = self._admin.create_topics([self._new(topic) for topic in topics], operation_timeout=SECONDS)
        for name, future in asked.items():
            try:
                future.result(SECONDS)
            except KafkaException as error:
                if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                    raise self._unavailable(f"create topic {name!r}", error) from error

    def _new(self, topic: Topic) -> Any:
        kept = -1 if topic.kept_for is None else topic.kept_for // timedelta(milliseconds=1)
        config = {
            "retention.ms": str(kept),
            "cleanup.policy": "compact" if topic.compacted else "delete",
            "message.timestamp.after.max.ms": ANY_TIME,
        }
        return NewTopic(topic.name, topic.partitions, -1, config=config)

    def _unavailable(self, doing: str, error: KafkaException) -> ServiceUnavailable:
        return ServiceUnavailable(
            f"Kafka at {self._servers} did not {doing}: {error.args[0].str()}.",
            remedy="Check the address and the client settings; for the platform's own broker see `weir status`.",
        )
