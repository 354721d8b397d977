"""A job's output topics, exactly once: one transactional producer on the driver.

The rows, and the group's offsets with the batch in their metadata, are one transaction. So a repeated batch is known
and skipped, `read_committed` readers see each result once, and every Kafka tool shows the release's lag.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from platform_core.control.position import Offsets
from platform_core.errors import PositionError, ServiceUnavailable, Superseded
from platform_core.settings import Settings
from platform_core.streaming.driver.timeouts import call_with_timeout
from platform_core.streaming.sink.encoding import Records
from platform_core.telemetry import event

_PATIENCE = 60.0
_LOOKING = (KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_NOT_AVAILABLE, KafkaError.COORDINATOR_LOAD_IN_PROGRESS)
_ABANDONED_MS = 60_000  # a transaction that is open for longer is ended by the broker, which fences whoever began it
_HANGS = 20.0  # a call of milliseconds; librdkafka 2.16 ignores its timeout (its issues 5456 and 5511)
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Marker:
    """What the group's metadata says: the newest published batch, of which checkpoint, by which owner."""

    batch: int
    checkpoint: str
    epoch: int
    handover: int = 0  # the cutover whose difference was written last


class TransactionalPublisher:
    """Holds the topics' transactional id from its start on: whoever held it before can write no more."""

    def __init__(
        self,
        settings: Settings,
        topics: Iterable[str],
        identity: str,
        group: str,
        checkpoint: str,
        epoch: int,
        mine: Callable[[], bool] = lambda: False,
    ) -> None:
        """`mine` is asked once the producer is fenced: whether the topics are still this driver's to write. A broker
        that was away ends by itself what it takes for abandoned, and fences whoever had begun it."""
        self._topic, self._group, self._checkpoint, self._epoch = ", ".join(topics), group, checkpoint, epoch
        self._mine = mine
        common: dict[str, Any] = {**settings.kafka.client, "bootstrap.servers": settings.kafka.servers}
        self._reading = {**common, "group.id": group, "enable.auto.commit": False}
        self._writing = {
            **common,
            "transactional.id": identity,
            "transaction.timeout.ms": _ABANDONED_MS,
            "partitioner": "murmur2_random",  # as Java's clients place keys
            "linger.ms": 2,
            "compression.type": "lz4",
            "batch.size": 1_000_000,
            "queue.buffering.max.messages": 2_000_000,
            "queue.buffering.max.kbytes": 1_048_576,
        }
        self._left: list[tuple[Producer, Consumer]] = []
        self._connect()

    def _connect(self) -> None:
        self._consumer, self._producer = Consumer(self._reading), Producer(self._writing)
        self._call(self._producer.init_transactions, _PATIENCE)  # fences, and ends what a dead owner left open
        self._done: Marker | None = None

    @property
    def committed(self) -> int:
        """The newest batch that is published; -1 also before the first one asks for it."""
        return -1 if self._done is None else self._done.batch

    def publish(self, records: Records, batch: int, end: Offsets) -> int:
        """Writes the batch unless it is published already; returns how many records."""

        def once() -> int:
            done = self._known(end)
            if done.batch > batch:
                raise PositionError(
                    f"Topic {self._topic} has batch {done.batch} of group {self._group}, the checkpoint runs {batch}.",
                    remedy="Table and checkpoint were restored to another time. Restore them from after that batch, or "
                    "`weir release JOB --again` replays beside the table.",
                )
            return 0 if done.batch == batch else self._transaction(records, replace(done, batch=batch), end)

        return self._outliving(once)

    def hand_over(self, records: Records, cutover: int, batch: int, end: Offsets) -> int:
        """Writes what makes the topics this release's, once a cutover, before anything of a later batch."""

        def once() -> int:
            done = self._known(end)
            if done.handover >= cutover:
                return 0
            return self._transaction(records, replace(done, batch=max(done.batch, batch), handover=cutover), end)

        return self._outliving(once)

    def _outliving(self, once: Callable[[], int]) -> int:
        """A client that hangs after its broker was away, or was fenced by it, is left behind; a new one ends its
        transaction, and repeats."""
        try:
            try:
                return once()
            except TimeoutError as error:
                self._replace(f"it hangs: {error}")
            except KafkaException as error:
                if not _fenced(error.args[0]) or not self._mine():
                    raise
                self._replace(f"the broker fenced it, and nobody has taken over: {error.args[0].str()}")
            return once()
        except KafkaException as error:
            raise self._translated(error) from error
        except TimeoutError as error:
            raise ServiceUnavailable(
                f"Topic {self._topic}: {error}.", remedy="The batch is repeated; see the broker's log if it stays."
            ) from error

    def _replace(self, why: str) -> None:
        event(logger, "producer replaced", level=logging.WARNING, topic=self._topic, why=why)
        self._left.append((self._producer, self._consumer))  # closing one that hangs would hang
        self._connect()

    def _known(self, end: Offsets) -> Marker:
        if self._done is None:
            self._done = self._published(end)
        return self._done

    def _transaction(self, records: Records, now: Marker, end: Offsets) -> int:
        self._producer.begin_transaction()
        for topic, messages in records.items():
            for key, value in messages:
                self._produce(topic, key, value)
        # everything out before the offsets: else the coordinator answers CONCURRENT_TRANSACTIONS, 97 ms instead of 7
        self._producer.flush(_PATIENCE)
        marker = json.dumps(asdict(now))
        offsets = [TopicPartition(t, p, o, marker) for t, parts in end.items() for p, o in parts.items()]
        producer, group = self._producer, self._consumer.consumer_group_metadata()
        call_with_timeout(
            _HANGS, "the group's offsets", lambda: producer.send_offsets_to_transaction(offsets, group, _HANGS)
        )
        self._producer.commit_transaction(_PATIENCE)
        self._done = now
        return sum(map(len, records.values()))

    def _produce(self, topic: str, key: bytes | None, value: bytes | None) -> None:
        while True:
            try:
                self._producer.produce(topic, value, key)
                return
            except BufferError:
                self._producer.poll(0.05)

    def _published(self, end: Offsets) -> Marker:
        marker = newest_marker(self._consumer, end)
        nothing = Marker(-1, self._checkpoint, self._epoch)
        if marker is None:
            return nothing
        if marker.epoch > self._epoch:
            raise Superseded(
                f"Group {self._group}: epoch {marker.epoch} has published batch {marker.batch}, ours is {self._epoch}.",
                remedy="A newer driver runs this release; nothing is to be done here.",
            )
        return replace(marker, epoch=self._epoch) if marker.checkpoint == self._checkpoint else nothing

    def _translated(self, error: KafkaException) -> Exception:
        cause: KafkaError = error.args[0]
        if _fenced(cause):
            return Superseded(
                f"Topic {self._topic}: another producer has taken over ({cause.str()}).",
                remedy="A newer driver publishes this job; nothing is to be done here.",
            )
        return ServiceUnavailable(
            f"Topic {self._topic}: the transaction did not commit ({cause.str()}).",
            remedy="The batch is repeated; see the broker's log if it stays.",
        )

    def _call(self, call: Any, *args: Any) -> Any:
        try:
            return call(*args)
        except KafkaException as error:
            raise self._translated(error) from error

    def close(self) -> None:
        self._consumer.close()


def _fenced(error: KafkaError) -> bool:
    return error.code() in (KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH)


def published_by(settings: Settings, group: str, positions: Offsets) -> Marker | None:
    """How far another release has published; None where its group says nothing of it."""
    common: dict[str, Any] = {**settings.kafka.client, "bootstrap.servers": settings.kafka.servers}
    consumer = Consumer({**common, "group.id": group, "enable.auto.commit": False})
    try:
        return newest_marker(consumer, positions)
    except KafkaException as error:
        raise ServiceUnavailable(
            f"Group {group}: its offsets cannot be read ({error.args[0].str()}).", remedy="See the broker's log."
        ) from error
    finally:
        consumer.close()


def newest_marker(consumer: Consumer, positions: Offsets) -> Marker | None:
    asked = [TopicPartition(topic, partition) for topic, parts in positions.items() for partition in parts]
    answers = _committed(consumer, asked)
    found = [_marker(part.metadata) for part in answers if part.metadata]
    return max((marker for marker in found if marker), key=lambda marker: (marker.epoch, marker.batch), default=None)


def _committed(consumer: Consumer, asked: list[TopicPartition]) -> list[TopicPartition]:
    """A broker that has begun a moment ago is still looking for the group's coordinator: it is asked again."""
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            answers = consumer.committed(asked, timeout=30)
            for part in answers:
                if part.error:  # taken for "nothing published", it would publish a batch twice
                    raise KafkaException(part.error)
            return answers
        except KafkaException as error:
            if error.args[0].code() == KafkaError._TIMED_OUT:
                raise ServiceUnavailable(
                    "Kafka does not tell the group's offsets: out of reach, or held back by a transaction left open.",
                    remedy='If the broker answers otherwise: infra/runbooks/driver-stopped.md, "offsets held back".',
                ) from error
            if error.args[0].code() not in _LOOKING or time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def _marker(metadata: str) -> Marker | None:
    try:
        raw = json.loads(metadata)
        return Marker(raw["batch"], raw["checkpoint"], raw["epoch"], raw.get("handover", 0))
    except (ValueError, KeyError, TypeError):
        return None  # somebody else's: an operator may have set the group's offsets by hand


class Mirror:
    """The progress of a release without an output topic, in its consumer group, so that Kafka's tools show the lag."""

    def __init__(self, settings: Settings, group: str) -> None:
        common: dict[str, Any] = {**settings.kafka.client, "bootstrap.servers": settings.kafka.servers}
        self._consumer = Consumer({**common, "group.id": group, "enable.auto.commit": False})

    def show(self, end: Offsets) -> None:
        offsets = [TopicPartition(t, p, o) for t, parts in end.items() for p, o in parts.items()]
        self._consumer.commit(offsets=offsets, asynchronous=True)

    def close(self) -> None:
        self._consumer.close()
