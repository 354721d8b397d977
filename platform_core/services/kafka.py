"""The embedded broker: one node, KRaft, from jars, on loopback."""

from __future__ import annotations

import base64
import shutil
import subprocess
import uuid
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from platform_core.errors import ServiceUnavailable, SetupError
from platform_core.services import java, ports
from platform_core.services.service import Service, tail
from platform_core.settings import Settings

# Retention: replays read old event times, so nothing is deleted unless a topic says so. A marker in an idle group must
# not expire either. Timestamps: a record dated years ahead is the job's to reject, not the broker's to refuse.
# Session: after kill -9 the restart waits until the old registration lapses, 12.8 s by default.
PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
log.dirs={data}
num.partitions=1
auto.create.topics.enable=false
log.retention.ms=-1
offsets.retention.minutes=5256000
log.message.timestamp.after.max.ms=9223372036854775807
message.max.bytes=16777216
broker.session.timeout.ms=3000
broker.heartbeat.interval.ms=500
default.replication.factor=1
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=4
transaction.abort.timed.out.transaction.cleanup.interval.ms=2000
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
log.cleaner.dedupe.buffer.size=8388608
num.network.threads=2
num.io.threads=4
background.threads=2
"""

LOGGING = """\
Configuration:
  status: WARN
  Appenders:
    Console: {name: STDOUT, target: SYSTEM_OUT, PatternLayout: {pattern: "%d{ISO8601} %p %c{1} %m%n"}}
  Loggers:
    Root: {level: INFO, AppenderRef: [{ref: STDOUT}]}
    Logger:
      - {name: org.reflections, level: ERROR}
      - {name: org.apache.kafka.clients, level: WARN}
      - {name: org.apache.kafka.common.config.AbstractConfig, level: ERROR}
"""


def broker(settings: Settings) -> Service:
    port = settings.kafka.port
    memory = (f"-Xmx{settings.kafka.heap}", "-XX:+UseSerialGC", "-XX:MaxMetaspaceSize=160m")
    config = _folder(settings) / "server.properties"
    return Service(
        name="kafka",
        command=(*_java(settings, *memory), "kafka.Kafka", str(config)),
        environment=settings.child_environment,
        log=settings.storage.logs / "kafka.log",
        cwd=settings.home,
        prepare=lambda: _prepare(settings),
        ready=lambda: _answers(settings),
        ports=(port, port + 1),
        port_setting="WEIR_KAFKA__PORT",
        memory_mb=1500,
    )


def _folder(settings: Settings) -> Path:
    return settings.home / "kafka"


def _java(settings: Settings, *flags: str) -> tuple[str, ...]:
    jars = settings.jars / "kafka"
    if not any(jars.glob("*.jar")):
        raise SetupError(f"There are no jars of Kafka in {jars}.", remedy="Run `make setup`.")
    logging = f"-Dlog4j2.configurationFile={_folder(settings) / 'log4j2.yaml'}"
    return (str(java.find().command), *flags, logging, "-cp", f"{jars}/*")


def _prepare(settings: Settings) -> None:
    _folder(settings).mkdir(parents=True, exist_ok=True)
    (_folder(settings) / "log4j2.yaml").write_text(LOGGING)
    data = _folder(settings) / "data"
    if not data.is_dir():
        _format(settings, data)
    _configure(settings, data)


def _format(settings: Settings, data: Path) -> None:
    """Into a folder beside it, renamed when whole: a crash in the middle leaves nothing that looks like a log."""
    fresh = data.with_name("data.new")
    shutil.rmtree(fresh, ignore_errors=True)
    config = _configure(settings, fresh)
    cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=").replace("-", "A")
    command = (*_java(settings, "-Xmx128m"), "kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(config))
    log = settings.storage.logs / "kafka.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as out:
        done = subprocess.run(command, stdout=out, stderr=out, check=False, timeout=120)
    if done.returncode != 0:
        raise ServiceUnavailable(f"kafka's storage in {fresh} was not formatted.{tail(log)}", remedy=f"Read {log}.")
    fresh.rename(data)


def _configure(settings: Settings, data: Path) -> Path:
    port = settings.kafka.port
    path = _folder(settings) / "server.properties"
    path.write_text(PROPERTIES.format(port=port, controller=port + 1, data=data))
    return path


def _answers(settings: Settings) -> bool:
    return ports.answers(settings.kafka.port) and reachable(settings)


def reachable(settings: Settings, seconds: float = 2.0) -> bool:
    """Whether a broker of this platform, own or not, answers a client."""
    try:
        client = AdminClient({"bootstrap.servers": settings.kafka.servers, **settings.kafka.client, "log_level": 0})
        return bool(client.list_topics(timeout=seconds).brokers)
    except KafkaException:
        return False
