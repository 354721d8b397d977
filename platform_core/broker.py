"""What the broker says of topics: their ids, settings and offsets; and creating them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from platform_core.errors import ServiceUnavailable
from platform_core.settings import Settings
from platform_core.waiting import looks

_SECONDS = 15.0
_NO_LEADER, _NOT_LEADER, _FENCED, _UNKNOWN_EPOCH = 5, 6, 74, 75  # Kafka's own numbers, named before it is imported
_NO_LEADER_KNOWN = -156  # to librdkafka
_PASSING = {_NO_LEADER, _NOT_LEADER, _FENCED, _UNKNOWN_EPOCH, _NO_LEADER_KNOWN}

Offsets = dict[str, dict[int, int]]  # topic -> partition -> offset


@dataclass(frozen=True)
class TopicFacts:
    id: str  # a topic that was deleted and created again differs in nothing but this (KIP-516)
    partitions: int
    retention_ms: int
    policy: str
    timestamps: str


@dataclass(frozen=True)
class NewTopic:
    name: str
    partitions: int
    settings: dict[str, str]


class Broker:
    def __init__(self, settings: Settings, seconds: float = _SECONDS) -> None:
        """`seconds` is how long each answer may take."""
        quiet = {"log_level": "0"}  # librdkafka writes to stderr by itself what arrives here as an exception too
        self._where, self._seconds = settings.kafka.servers, seconds
        self._options: dict[str, Any] = {"bootstrap.servers": self._where, **quiet, **settings.kafka.client}
        self._admin = self._connected()

    def _connected(self) -> Any:
        from confluent_kafka.admin import AdminClient

        return AdminClient(self._options)

    def topics(self, names: Iterable[str]) -> dict[str, TopicFacts]:
        """Those that exist."""
        from confluent_kafka import KafkaError, TopicCollection

        wanted = list(names)
        if not wanted:
            return {}
        asked = self._ask(lambda: self._admin.describe_topics(TopicCollection(wanted), request_timeout=self._seconds))
        unknown = KafkaError.UNKNOWN_TOPIC_OR_PART
        found = {name: self._result(one, f"describe topic {name!r}", unless=unknown) for name, one in asked.items()}
        there = {name: facts for name, facts in found.items() if facts is not None}
        configured = self._settings_of(list(there))
        return {name: _facts(one, configured[name]) for name, one in there.items() if name in configured}

    def ends(self, partitions: Mapping[str, Iterable[int]]) -> Offsets:
        """The offset after the last record that a read_committed reader sees, of every partition named."""
        from confluent_kafka.admin._listoffsets import OffsetSpec

        return self._offsets(partitions, OffsetSpec.latest())

    def starts(self, partitions: Mapping[str, Iterable[int]]) -> Offsets:
        """The oldest offset that retention has left."""
        from confluent_kafka.admin._listoffsets import OffsetSpec

        return self._offsets(partitions, OffsetSpec.earliest())

    def since(self, partitions: Mapping[str, Iterable[int]], at_ms: int) -> Offsets:
        """The first record stamped at or after `at_ms`; the end where there is none."""
        from confluent_kafka.admin._listoffsets import OffsetSpec

        found, ends = self._offsets(partitions, OffsetSpec.for_timestamp(at_ms)), self.ends(partitions)
        return {t: {p: o if o >= 0 else ends[t][p] for p, o in parts.items()} for t, parts in found.items()}

    def newest(self, partitions: Mapping[str, Iterable[int]]) -> int | None:
        """The newest timestamp of any record, in milliseconds; None where there are no records."""
        from confluent_kafka.admin._listoffsets import OffsetSpec

        found = [one.timestamp for _, one in self._told(partitions, OffsetSpec.max_timestamp()) if one.offset >= 0]
        return max(found, default=None)

    def _offsets(self, partitions: Mapping[str, Iterable[int]], spec: Any) -> Offsets:
        found: Offsets = {}
        for at, one in self._told(partitions, spec):
            found.setdefault(at.topic, {})[at.partition] = one.offset
        return found

    def _told(self, partitions: Mapping[str, Iterable[int]], spec: Any) -> Iterator[tuple[Any, Any]]:
        from confluent_kafka import IsolationLevel, TopicPartition

        asked = {TopicPartition(t, p): spec for t, parts in partitions.items() for p in parts}
        if not asked:
            return
        level, seconds = IsolationLevel.READ_COMMITTED, self._seconds
        answers: dict[Any, Any] = {}
        for _ in looks(seconds, pause=0.1):  # a topic made a moment ago is shown before its partitions are led
            answers = self._ask(lambda: self._admin.list_offsets(asked, isolation_level=level, request_timeout=seconds))
            codes = {_code(one) for one in answers.values()}
            if not codes & _PASSING:
                break
            if _FENCED in codes:
                self._admin = self._connected()  # a client asks for ever with the epoch that it knew before a restart
        for at, one in answers.items():
            yield at, self._result(one, f"tell an offset of {at.topic!r}")

    def create(self, topics: Iterable[NewTopic]) -> None:
        """Returns when the broker shows them; one that somebody else made meanwhile is as good."""
        from confluent_kafka import KafkaError
        from confluent_kafka import admin as kafka

        make: Any = getattr(kafka, "NewTopic")  # noqa: B009  a C type that pyright cannot see
        new = [make(topic.name, topic.partitions, -1, config=topic.settings) for topic in topics]
        if not new:
            return
        asked = self._ask(lambda: self._admin.create_topics(new, request_timeout=self._seconds))
        for name, one in asked.items():
            self._result(one, f"create topic {name!r}", unless=KafkaError.TOPIC_ALREADY_EXISTS)
        self._wait_for(list(asked))

    def remove(self, topics: Iterable[str]) -> None:
        """Returns when the broker shows them no more; one that is not there is as good."""
        from confluent_kafka import KafkaError

        names, seconds = list(topics), self._seconds
        asked = self._ask(lambda: self._admin.delete_topics(names, request_timeout=seconds)) if names else {}
        for name, one in asked.items():
            self._result(one, f"remove topic {name!r}", unless=KafkaError.UNKNOWN_TOPIC_OR_PART)
        self._wait_until(lambda: sorted(self.topics(names)), "removed", "shown")

    def forget(self, group: str) -> None:
        """Removes a consumer group with its offsets; one that is not there is as good."""
        from confluent_kafka import KafkaError

        asked = self._ask(lambda: self._admin.delete_consumer_groups([group], request_timeout=self._seconds))
        self._result(asked[group], f"remove group {group!r}", unless=KafkaError.GROUP_ID_NOT_FOUND)

    def groups(self) -> set[str]:
        """The names of all consumer groups."""
        listed = self._result(
            self._admin.list_consumer_groups(request_timeout=self._seconds), "list the consumer groups"
        )
        return {group.group_id for group in listed.valid}

    def _settings_of(self, names: list[str]) -> dict[str, dict[str, str]]:
        from confluent_kafka import KafkaError
        from confluent_kafka.admin._config import ConfigResource

        topic: Any = ConfigResource.Type.TOPIC
        resources = [ConfigResource(topic, name) for name in names]
        seconds = self._seconds
        asked = self._ask(lambda: self._admin.describe_configs(resources, request_timeout=seconds)) if names else {}
        gone = KafkaError.UNKNOWN_TOPIC_OR_PART  # it was deleted a moment ago, after it was described
        found = {
            one.name: self._result(f, f"read the settings of topic {one.name!r}", gone) for one, f in asked.items()
        }
        return {topic: {name: entry.value for name, entry in kept.items()} for topic, kept in found.items() if kept}

    def _wait_for(self, names: list[str]) -> None:
        self._wait_until(lambda: sorted(set(names) - set(self.topics(names))), "created", "not shown")

    def _wait_until(self, left: Callable[[], list[str]], done: str, seen: str) -> None:
        for again in looks(self._seconds, pause=0.1):
            if not (names := left()):
                return
            if not again:
                raise ServiceUnavailable(
                    f"Kafka at {self._where} {done} {', '.join(names)}, {seen} after {self._seconds:.0f} s.",
                    remedy="Look at the broker's log, then run the command again.",
                )

    def _ask(self, call: Callable[[], dict[Any, Future[Any]]]) -> dict[Any, Future[Any]]:
        from confluent_kafka import KafkaException

        try:
            return call()
        except KafkaException as error:
            raise self._unavailable("answer", error) from error

    def _result(self, one: Future[Any], doing: str, unless: int | None = None) -> Any:
        from confluent_kafka import KafkaException

        try:
            return one.result(self._seconds + 5)
        except KafkaException as error:
            if error.args[0].code() == unless:
                return None
            raise self._unavailable(doing, error) from error

    def _unavailable(self, doing: str, error: Exception) -> ServiceUnavailable:
        return ServiceUnavailable(
            f"Kafka at {self._where} did not {doing}: {error.args[0].str()}.",
            remedy="See `weir status` and `weir logs kafka`, then run the command again.",
        )


def _code(answer: Future[Any]) -> int | None:
    """Of the error; None without one."""
    error: Any = answer.exception()
    return None if error is None else error.args[0].code()


def _facts(described: Any, configured: dict[str, str]) -> TopicFacts:
    return TopicFacts(
        id=str(described.topic_id),
        partitions=len(described.partitions),
        retention_ms=int(configured["retention.ms"]),
        policy=configured["cleanup.policy"],
        timestamps=configured["message.timestamp.type"],
    )
