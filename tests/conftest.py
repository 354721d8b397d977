"""Real services for the tests marked `stack`: started once a session, on free ports, in a folder of their own."""

from __future__ import annotations

import itertools
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.cimpl import NewTopic

from platform_core.control.owners import Owner
from platform_core.control.store import ControlStore
from platform_core.services import kafka, ports, process
from platform_core.services import postgres as postgres_service
from platform_core.services.service import Service, start
from platform_core.settings import Settings, load
from platform_core.testing.plugin import kit as kit

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytest_plugins = ("tests.budgets", "tests.properties")


@pytest.fixture(autouse=True)
def ctrl_c_is_heard() -> Iterator[None]:
    """Whoever catches it gives it back, or the run could not be stopped any more. Spark's own handler ends it, too."""
    before = signal.getsignal(signal.SIGINT)
    yield
    after = signal.getsignal(signal.SIGINT)
    assert after is before or getattr(after, "__module__", "") == "pyspark.core.context", after


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where all state of this session's platform lives."""
    return tmp_path_factory.mktemp("weir")


@pytest.fixture(scope="session")
def platform_settings(home: Path) -> Settings:
    broker, _, database, dagster = (str(port) for port in ports.free(4))
    return load(
        environment={
            "WEIR_HOME": str(home),
            "WEIR_KAFKA__PORT": broker,
            "WEIR_POSTGRES__PORT": database,
            "WEIR_DAGSTER__PORT": dagster,
        }
    )


@dataclass(frozen=True)
class Broker:
    settings: Settings

    @property
    def servers(self) -> str:
        return self.settings.kafka.servers

    @cached_property
    def admin(self) -> AdminClient:  # kept: a client that is let go of cancels what it was asked for
        return AdminClient({"bootstrap.servers": self.servers})

    def create(self, topic: str, partitions: int = 1, **config: str) -> str:
        """A topic; `cleanup_policy="compact"` sets cleanup.policy."""
        named = {name.replace("_", "."): text for name, text in config.items()}
        self.admin.create_topics([NewTopic(topic, partitions, 1, config=named)])[topic].result(20)
        return topic

    def set(self, topic: str, **config: str) -> None:
        entries = [
            ConfigEntry(name.replace("_", "."), text, incremental_operation=AlterConfigOpType.SET)
            for name, text in config.items()
        ]
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=entries)
        self.admin.incremental_alter_configs([resource])[resource].result(20)

    def delete(self, topic: str) -> None:
        """Returns when the broker, which learns of it from the controller, does not list it any more."""
        self.admin.delete_topics([topic])[topic].result(20)
        assert process.until(lambda: topic not in self.admin.list_topics(timeout=10).topics, 60), topic

    def produce(self, topic: str, *records: tuple[bytes | None, bytes | None], partition: int = 0, at: int = 0) -> None:
        """Records as (key, value), with a timestamp in milliseconds when `at` is given."""
        producer = Producer({"bootstrap.servers": self.servers, "acks": "all"})
        for key, value in records:
            producer.produce(topic, key=key, value=value, partition=partition, timestamp=at)
        assert producer.flush(20) == 0

    def consume(self, topic: str, count: int, seconds: float = 20) -> list[Message]:
        """The first committed records of partition 0."""
        consumer = Consumer(
            {"bootstrap.servers": self.servers, "group.id": "tests", "isolation.level": "read_committed"}
        )
        try:
            consumer.assign([TopicPartition(topic, 0, 0)])
            return consumer.consume(count, seconds)
        finally:
            consumer.close()


_numbers = itertools.count(1)


@dataclass(frozen=True)
class Database:
    settings: Settings

    def connect(self) -> psycopg.Connection:
        return postgres_service.connect(self.settings)

    def another(self, home: Path, **environment: str) -> Settings:
        """A platform that shares nothing with other tests but the server: a database and a home of its own."""
        name = f"of_its_own_{next(_numbers)}"
        with postgres_service.connect(self.settings, "postgres") as link:
            link.execute(f"create database {name}".encode())
        where = {
            "WEIR_HOME": str(home),
            "WEIR_POSTGRES__PORT": str(self.settings.postgres.port),
            "WEIR_POSTGRES__DATABASE": name,
            "WEIR_POSTGRES__PASSWORD_FILE": str(self.settings.home / "postgres.password"),
            "WEIR_KAFKA__PORT": str(self.settings.kafka.port),
            "WEIR_DAGSTER__PORT": str(self.settings.dagster.port),
        }
        return load(environment={**where, **environment})


@pytest.fixture(scope="session")
def broker(platform_settings: Settings) -> Iterator[Broker]:
    with_service = _running(kafka.broker(platform_settings))
    next(with_service)
    yield Broker(platform_settings)
    next(with_service, None)


@pytest.fixture(scope="session")
def postgres(platform_settings: Settings) -> Iterator[Database]:
    with_service = _running(postgres_service.server(platform_settings))
    next(with_service)
    yield Database(platform_settings)
    next(with_service, None)


@pytest.fixture
def store(postgres: Database) -> Iterator[ControlStore]:
    """The control store of this session's Postgres."""
    opened = ControlStore.open(postgres.settings)
    opened.migrate()
    yield opened
    opened.close()


def _running(service: Service) -> Iterator[None]:
    child = start(service)
    try:
        yield
    finally:
        process.stop(Owner.of(child.pid), service.stop_with, service.stop_seconds, child.poll)


@pytest.fixture(scope="session")
def spark(platform_settings: Settings) -> Iterator[SparkSession]:
    """One small session for all tests of this process, set as a driver's is, but for its Java.

    What tests run, they run a few times: the second compiler would take a third of all, and give less back.
    """
    from platform_core.streaming.driver.session import JAVA_OPTIONS, session, session_conf

    java = session_conf(platform_settings, "tests")[JAVA_OPTIONS].replace("-XX:+UseParallelGC", "-XX:+UseSerialGC")
    running = session(platform_settings, "tests", **{JAVA_OPTIONS: f"{java} -XX:TieredStopAtLevel=1"})
    yield running
    running.stop()
