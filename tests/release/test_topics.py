"""A topic that is otherwise than declared: what is refused, what is told, what is neither."""

from __future__ import annotations

from dataclasses import replace

import pytest

from platform_core.broker import TopicFacts
from platform_core.declare import Topic
from platform_core.release.topics import configuration, differences

DAY = 86_400_000
EVENTS = Topic(name="events", value="at TIMESTAMP")
TABLE = Topic(name="table", value="x STRING", key="x", compacted=True)
THERE = TopicFacts(id="x", partitions=4, retention_ms=-1, policy="delete", timestamps="CreateTime")
KEYED = replace(THERE, policy="compact")


@pytest.mark.parametrize(
    ("topic", "there", "says"),
    [
        (EVENTS, KEYED, "cleanup.policy=compact loses events"),
        (TABLE, replace(THERE, retention_ms=DAY), "deletes keys after 1 days"),
        (EVENTS, replace(THERE, timestamps="LogAppendTime"), "overwrites the event time"),
    ],
)
def test_what_makes_results_wrong_is_refused(topic: Topic, there: TopicFacts, says: str) -> None:
    found = differences(topic, there)
    assert len(found.refused) == 1
    assert says in found.refused[0]


@pytest.mark.parametrize(
    ("topic", "there", "says"),
    [
        (EVENTS, replace(THERE, partitions=8), "declared with 4 partitions, the broker has 8"),
        (EVENTS, replace(THERE, retention_ms=7 * DAY), "declared kept for ever, the broker keeps 7 days"),
        (
            Topic(name="week", value="x STRING", retention="1 week"),
            replace(THERE, retention_ms=DAY),
            "declared kept 7 days, the broker keeps 1 days",
        ),
    ],
)
def test_what_a_person_should_know_is_told(topic: Topic, there: TopicFacts, says: str) -> None:
    found = differences(topic, there)
    assert found.refused == ()
    assert says in found.told[0]


@pytest.mark.parametrize(
    ("topic", "there"),
    [
        (EVENTS, THERE),
        (TABLE, KEYED),
        (TABLE, THERE),  # nothing is deleted either
        (Topic(name="day", value="x STRING", retention="1 day"), replace(THERE, retention_ms=7 * DAY)),
        (Topic(name="field", value="at TIMESTAMP", event_time="at"), replace(THERE, timestamps="LogAppendTime")),
    ],
)
def test_what_harms_nobody_is_silent(topic: Topic, there: TopicFacts) -> None:
    found = differences(topic, there)
    assert (found.refused, found.told) == ((), ())


def test_a_topic_is_created_to_outlive_old_event_times() -> None:
    assert configuration(EVENTS)["retention.ms"] == "-1"
    assert configuration(Topic(name="day", value="x STRING", retention="1 day"))["retention.ms"] == str(DAY)
    assert configuration(TABLE)["cleanup.policy"] == "compact"
