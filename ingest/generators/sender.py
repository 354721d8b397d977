"""Takes records to a broker: each once and in order, paced by the clock or as fast as it goes."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer

from ingest.generators.faults import Sent
from ingest.generators.records import GeneratedRecord
from platform_core.errors import ServiceUnavailable, UsageError, WeirError

CLUMP_SECONDS = 0.005  # the shortest wait: at 10,000 records a second a wait for each one costs more than the sending
LOOK_EVERY = 1000  # records between looks at failures and at the wish to stop
FLUSH_SECONDS = 30.0
LIVE_LINGER_MS, FAST_LINGER_MS = 5, 50

Wait = Callable[[float], bool]  # waits that many seconds, less when told to stop; True: stop


@dataclass
class Summary:
    """What was sent: records by topic and fault, "" standing for sound ones."""

    counts: Counter[tuple[str, str]] = field(default_factory=lambda: Counter[tuple[str, str]]())
    seconds: float = 0.0
    behind_ms: float = 0.0  # the most that a paced record was sent after it was due

    @property
    def total(self) -> int:
        return self.counts.total()

    def of(self, topic: str) -> dict[str, int]:
        """One topic's records: all of them as `sent`, then those with faults."""
        faults = {fault: n for (name, fault), n in sorted(self.counts.items()) if name == topic and fault}
        return {"sent": sum(n for (name, _), n in self.counts.items() if name == topic), **faults}


def paced(stream: Iterable[Sent], wait: Wait, summary: Summary, now: Callable[[], float] = time.time) -> Iterator[Sent]:
    """Each record when it is due; ends early when told to stop."""
    for sent in stream:
        early = sent.due_ms / 1000 - now()
        while early > 0:
            if wait(max(early, CLUMP_SECONDS)):
                return
            early = sent.due_ms / 1000 - now()
        summary.behind_ms = max(summary.behind_ms, -early * 1000)
        yield sent


class Sender:
    """Blocks while the producer's queue is full. Raises when the broker refuses a record or is away for 5 minutes."""

    def __init__(self, servers: str, client: Mapping[str, str], stopping: Callable[[], bool], *, live: bool) -> None:
        self._servers, self._stopping = servers, stopping
        self._failed: KafkaError | None = None
        self._producer: Any = Producer(
            {
                "bootstrap.servers": servers,
                "enable.idempotence": True,
                "partitioner": "murmur2_random",  # Java's: a key's partition is the same for every writer
                "compression.type": "lz4",
                "linger.ms": LIVE_LINGER_MS if live else FAST_LINGER_MS,
                "batch.size": 1_000_000,
                "queue.buffering.max.messages": 200_000,
                "delivery.report.only.error": True,
                "on_delivery": self._delivered,
                "log_level": 2,  # what goes wrong for good is raised below
                **client,
            }
        )

    def send(self, stream: Iterable[Sent], summary: Summary) -> None:
        """Returns when the stream ends or it is told to stop, and the broker has acknowledged all that was sent."""
        began = time.monotonic()
        try:
            for number, sent in enumerate(stream, 1):
                if not self._put(sent.record):
                    break
                summary.counts[sent.record.topic, sent.fault] += 1
                if number % LOOK_EVERY == 0:
                    self.look()
                    if self._stopping():
                        break
            self._flush()
        finally:
            summary.seconds = time.monotonic() - began

    def look(self, seconds: float = 0) -> None:
        """Raises when the broker has refused a record; waits for answers up to `seconds`."""
        self._producer.poll(seconds)
        if self._failed is not None:
            raise self._explained(self._failed)

    def _put(self, record: GeneratedRecord) -> bool:
        topic, key, value, timestamp = record
        while True:
            try:
                self._producer.produce(topic, value, key, timestamp=timestamp)
                return True
            except BufferError:
                self.look(0.05)
            except KafkaException as error:
                raise self._explained(error.args[0]) from error
            if self._stopping():  # a broker that is away keeps the queue full
                return False

    def _flush(self) -> None:
        left = self._producer.flush(FLUSH_SECONDS)
        self.look()
        if left:
            raise ServiceUnavailable(
                f"Kafka at {self._servers} did not take the last {left} records within {FLUSH_SECONDS:.0f} s.",
                remedy="See `weir status`, then run the command again.",
            )

    def _delivered(self, error: KafkaError | None, _message: object) -> None:
        self._failed = self._failed or error

    def _explained(self, error: KafkaError) -> WeirError:
        if error.code() == KafkaError.INVALID_TIMESTAMP:
            return UsageError(
                f"Kafka at {self._servers} refused a record for its timestamp: {error.str()}.",
                remedy="Raise the topic's message.timestamp.after.max.ms, or send no far-future records.",
            )
        if error.code() in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC):
            return missing_topics(self._servers, [error.str()])
        return ServiceUnavailable(
            f"Kafka at {self._servers} did not take a record: {error.str()}.",
            remedy="See `weir status` and `weir logs kafka`, then run the command again.",
        )


def missing_topics(servers: str, names: Iterable[str]) -> UsageError:
    return UsageError(
        f"Kafka at {servers} has no topic {', '.join(names)}.",
        remedy="Run `weir generate`, which creates topics as they are declared, or add --create-topics.",
    )
