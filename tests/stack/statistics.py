"""What readers of stock_stats know, from its table and from its output topic."""

from __future__ import annotations

import json
from datetime import datetime

from confluent_kafka import Consumer, TopicPartition

from platform_core.names import ReleaseId
from platform_core.read import open_tables
from tests.stack.landing import at_end
from tests.stack.running import Platform, until

Trades = dict[tuple[str, float], int]  # how many there are, by ticker and start of the window


def read_all(platform: Platform, release: ReleaseId, topic: str) -> None:
    """Returns when the release has read all of the topic, to which nobody sends any more."""
    until(lambda: at_end(platform, release, [topic]), f"{release} has read all")


def trades_of(platform: Platform) -> Trades:
    """In the live table."""
    rows = open_tables(platform.settings).table("stock_stats").arrow().to_pylist()
    return {(row["ticker"], row["window_start"].timestamp()): row["trade_count"] for row in rows}


def published(platform: Platform, topic: str) -> Trades:
    """As a reader of the topic's committed records knows by now."""
    consumer = Consumer(
        {
            "bootstrap.servers": platform.settings.kafka.servers,
            "group.id": "reader",
            "isolation.level": "read_committed",
        }
    )
    parts = consumer.list_topics(topic, 10).topics[topic].partitions
    consumer.assign([TopicPartition(topic, number, 0) for number in parts])
    known: Trades = {}
    while messages := consumer.consume(5000, 5):
        for message in messages:
            key = json.loads(message.key() or b"")
            window = key["ticker"], datetime.fromisoformat(key["window_start"]).timestamp()
            if message.value() is None:
                known.pop(window, None)
            else:
                known[window] = json.loads(message.value() or b"")["trade_count"]
    consumer.close()
    return known
