"""Log lines of five services: most of them INFO, one in fifty an ERROR or worse."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from random import Random

from ingest.generators.records import GeneratedRecord, Generator
from ingest.topics import LOGS

SERVICES = ("checkout", "search", "payments", "mail", "stock")
LEVELS = ("INFO", "DEBUG", "WARN", "TRACE", "ERROR", "FATAL")
SHARES = (0.70, 0.18, 0.08, 0.02, 0.018, 0.002)
RATE = 20.0

_LINE = b'{"level":"%s","service":"%s","message":"%s %d"}'
_MESSAGES = ("request served in ms", "retries left", "items in queue", "größe in bytes", "connection lost after ms")
_NOT_A_LINE = (
    b'{"level":"INFO","service":"mail",',
    b'{"service":"mail","message":"no level"}',
    b'{"level":"","service":"mail","message":"empty level"}',
    b"INFO mail started",
    b"\xff\xfe\x00",
)


def records(seed: int, start_ms: int, rate: float = RATE) -> Iterator[GeneratedRecord]:
    random = Random(f"logs {seed}")
    for number in count():
        (level,), service = random.choices(LEVELS, SHARES), random.choice(SERVICES)
        message, amount = random.choice(_MESSAGES), int(random.random() * 1000)
        value = _LINE % (level.encode(), service.encode(), message.encode(), amount)
        yield GeneratedRecord(LOGS.name, service.encode(), value, start_ms + int(number * 1000 / rate))


def malformed(random: Random) -> bytes:
    return random.choice(_NOT_A_LINE)


LOG_LINES = Generator("logs", (LOGS,), RATE, records, malformed, __doc__)
