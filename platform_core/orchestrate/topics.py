"""Looks at the broker: what it has of declared topics. Bounded in time, as a sensor must be."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from platform_core.broker import Broker, Offsets
from platform_core.errors import ServiceUnavailable, UsageError
from platform_core.orchestrate import observed_state
from platform_core.settings import Settings

ANSWER_SECONDS = 5.0  # a broker that stays silent for longer is no use to a sensor, whose tick ends at 60 s


def ask(settings: Settings, names: Iterable[str]) -> observed_state.ObservedBroker:
    """What the broker has of these topics; one that does not answer is an observation, too."""
    broker = Broker(settings, ANSWER_SECONDS)
    try:
        known = broker.topics(sorted(set(names)))
        parts = {name: range(facts.partitions) for name, facts in known.items()}
        begin, end = broker.starts(parts), broker.ends(parts)
    except ServiceUnavailable as error:
        return observed_state.ObservedBroker(trouble=str(error))
    return observed_state.ObservedBroker(
        {name: observed_state.ObservedTopic(facts, begin[name], end[name]) for name, facts in known.items()}
    )


def offsets_from(settings: Settings, topic: str, since: datetime) -> tuple[Offsets, Offsets]:
    """The first offsets at or after `since` by record time, and the ends, of every partition."""
    broker = Broker(settings)
    known = broker.topics([topic])
    if topic not in known:
        raise UsageError(
            f"Topic {topic!r} is not on {settings.kafka.servers}.", remedy="Start a job that reads it; that creates it."
        )
    parts = {topic: range(known[topic].partitions)}
    return broker.since(parts, int(since.timestamp() * 1000)), broker.ends(parts)
