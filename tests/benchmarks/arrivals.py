"""When each record of an input became readable: in the table by its commits, in the topic by a consumer's clock."""

from __future__ import annotations

import json
import threading
import time
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import Consumer, Message, TopicPartition

from platform_core.control.position import Position
from platform_core.declare import Topic
from platform_core.settings import Settings

Milliseconds = list[float]


class Seen(NamedTuple):
    """A record, as far as it matters here."""

    topic: str
    partition: int
    offset: int
    at_ms: int
    key: bytes
    value: bytes


def records(settings: Settings, topic: Topic) -> Iterator[Seen]:
    """Every record that the topic holds now, each partition in its order."""
    consumer = _consumer(settings)
    try:
        parts = [TopicPartition(topic.name, number) for number in range(topic.partitions)]
        ends = {number: _end(consumer, part) for number, part in enumerate(parts)}
        consumer.assign([TopicPartition(topic.name, number, 0) for number in ends])
        left = {number for number, end in ends.items() if end}
        while left:
            for seen in map(_seen, consumer.consume(20_000, 5)):
                yield seen
                if seen.offset >= ends[seen.partition] - 1:
                    left.discard(seen.partition)
    finally:
        consumer.close()


def _end(consumer: Consumer, part: TopicPartition) -> int:
    return (consumer.get_watermark_offsets(part, timeout=20) or (0, 0))[1]


def _seen(message: Message) -> Seen:
    """A record as the consumer's types leave it open to be none."""
    topic, partition, offset = message.topic(), message.partition(), message.offset()
    if topic is None or partition is None or offset is None:
        raise RuntimeError(f"Not a record: {message.error()}.")
    return Seen(topic, partition, offset, message.timestamp()[1], message.key() or b"", message.value() or b"")


def to_table(table: Path, seen: Iterable[Seen], since_ms: int) -> tuple[Milliseconds, int]:
    """From the timestamp of each record since a moment to the commit that covers it; and how many none covers."""
    commits = _commits(table)
    found: Milliseconds = []
    missing = 0
    for one in seen:
        if one.at_ms < since_ms:
            continue
        ends, times = commits.get((one.topic, one.partition), ([], []))
        place = bisect_left(ends, one.offset + 1)
        missing += place == len(ends)
        found += [times[place] - one.at_ms] if place < len(ends) else []
    return found, missing


def _commits(table: Path) -> dict[tuple[str, int], tuple[list[int], list[float]]]:
    """By partition: the offsets at which commits end, and when each commit's file was there."""
    found: dict[tuple[str, int], tuple[list[int], list[float]]] = defaultdict(lambda: ([], []))
    for file in sorted((table / "_delta_log").glob("*.json")):
        actions = (json.loads(line) for line in file.read_text().splitlines())
        infos = (action.get("commitInfo", {}) for action in actions)
        for position in (Position.from_json(info["userMetadata"]) for info in infos if "userMetadata" in info):
            for topic, parts in position.offsets.items():
                for partition, end in parts.items():
                    ends, times = found[topic, partition]
                    ends.append(end)
                    times.append(file.stat().st_mtime * 1000)
    return found


class StatsReader:
    """A read_committed consumer of stock_stats' topic, as any reader would be; notes when each count was there."""

    def __init__(self, settings: Settings, topic: Topic) -> None:
        self._seen: dict[tuple[str, int], list[tuple[int, float]]] = defaultdict(list)
        self._consumer = _consumer(settings)
        self._consumer.assign([TopicPartition(topic.name, number, 0) for number in range(topic.partitions)])
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)

    def __enter__(self) -> StatsReader:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        self._consumer.close()

    def _read(self) -> None:
        while not self._ended.is_set():
            for one in map(_seen, self._consumer.consume(1000, 0.01)):
                row = json.loads(one.value)
                key = row["ticker"], _second_of(row["window_start"])
                self._seen[key].append((row["trade_count"], time.time() * 1000))

    def lags(self, trades: Iterable[Seen], since_ms: int) -> tuple[Milliseconds, int]:
        """From each ask's timestamp to the first result of its newest window that counts it; and how many have none.

        A ticker's asks are in one partition, so that the n-th of a second is counted by the first result of n or more.
        """
        ranks: Counter[tuple[str, int]] = Counter()
        lags: Milliseconds = []
        missing = 0
        for trade in trades:
            if b'"ASK"' not in trade.value:
                continue
            key = trade.key.decode(), trade.at_ms // 1000
            ranks[key] += 1
            if trade.at_ms < since_ms:
                continue
            seen = next((at for count, at in self._seen[key] if count >= ranks[key]), None)
            missing += seen is None
            lags += [] if seen is None else [seen - trade.at_ms]
        return lags, missing


def _second_of(text: str) -> int:
    return int(datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp())


def _consumer(settings: Settings) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": settings.kafka.servers,
            "group.id": "benchmark",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 20,
        }
    )
