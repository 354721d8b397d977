"""The declared topics on the broker: created where they are not, compared where they are, known by their ids."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from platform_core.broker import Broker, NewTopic, TopicFacts
from platform_core.declare import Topic
from platform_core.errors import DeclarationError
from platform_core.settings import Settings


@dataclass(frozen=True)
class Ensured:
    ids: dict[str, str]
    created: tuple[str, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class Differences:
    refused: tuple[str, ...]  # results would be wrong
    told: tuple[str, ...]  # results are right, and a person should know


def ensure(settings: Settings, topics: Sequence[Topic]) -> Ensured:
    """Creates what is missing; tells what differs from its declaration, refuses it where results would be wrong."""
    broker = Broker(settings)
    there = broker.topics(topic.name for topic in topics)
    warnings = _compare(topics, there)
    missing = [topic for topic in topics if topic.name not in there]
    broker.create(NewTopic(topic.name, topic.partitions, configuration(topic)) for topic in missing)
    found = {**there, **broker.topics(topic.name for topic in missing)}
    return Ensured(
        ids={topic.name: found[topic.name].id for topic in topics},
        created=tuple(topic.name for topic in missing),
        warnings=warnings,
    )


def ids(settings: Settings, names: Iterable[str]) -> dict[str, str]:
    """The ids of those of the topics that exist."""
    return {name: facts.id for name, facts in Broker(settings).topics(names).items()}


def configuration(topic: Topic) -> dict[str, str]:
    """The settings with which a topic is created. Records with old event times outlive no retention but for ever."""
    return {
        "retention.ms": str(_kept_ms(topic)),
        "cleanup.policy": "compact" if topic.compacted else "delete",
        "message.timestamp.type": "CreateTime",
    }


def differences(topic: Topic, there: TopicFacts) -> Differences:
    """What a declaration and the broker do not agree on."""
    return Differences(tuple(_refused(topic, there)), tuple(_told(topic, there)))


def _refused(topic: Topic, there: TopicFacts) -> Iterable[str]:
    here = f"topic {topic.name!r} on the broker"
    if "compact" in there.policy and not topic.compacted:
        yield f"{here}: cleanup.policy={there.policy} loses events, and it is not declared compacted"
    if topic.compacted and "delete" in there.policy and there.retention_ms != -1:
        kept = _days(there.retention_ms)
        yield f"{here}: it is declared compacted, and cleanup.policy={there.policy} deletes keys after {kept}"
    if topic.event_time is None and there.timestamps != "CreateTime":
        yield f"{here}: message.timestamp.type={there.timestamps} overwrites the event time, its records' timestamp"


def _told(topic: Topic, there: TopicFacts) -> Iterable[str]:
    here, declared, kept = f"topic {topic.name!r}", _kept_ms(topic), there.retention_ms
    if there.partitions != topic.partitions:
        yield f"{here}: declared with {topic.partitions} partitions, the broker has {there.partitions}"
    if not topic.compacted and kept != -1 and (declared == -1 or kept < declared):
        wanted = "for ever" if declared == -1 else _days(declared)
        yield f"{here}: declared kept {wanted}, the broker keeps {_days(kept)}: older records cannot be replayed"


def _compare(topics: Sequence[Topic], there: Mapping[str, TopicFacts]) -> tuple[str, ...]:
    found = [differences(topic, there[topic.name]) for topic in topics if topic.name in there]
    refused = [text for one in found for text in one.refused]
    if refused:
        raise DeclarationError(
            f"{'; '.join(refused)}.", remedy="Change the topic on the broker, or its declaration in ingest/topics.py."
        )
    return tuple(text for one in found for text in one.told)


def _kept_ms(topic: Topic) -> int:
    return -1 if topic.kept_for is None else int(topic.kept_for / timedelta(milliseconds=1))


def _days(milliseconds: int) -> str:
    return f"{milliseconds / 86_400_000:.3g} days"
