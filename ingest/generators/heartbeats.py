"""Heartbeats of devices that are down at times: one in 20 arrives up to two hours late, one in 1,000 later still.

A record is stamped when it arrives; when it was made, its field `at` says.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import count
from random import Random

from ingest.generators.records import GeneratedRecord, Generator
from ingest.topics import HEARTBEATS

DEVICES = 20
CHANGING = 0.05  # of the heartbeats say another status than the one before
DELAYED = 0.05  # of the heartbeats arrive up to two hours after they were made, the others within two seconds
SOON_MS, DELAYED_MS = 2000, 2 * 3_600_000
OVERDUE_EVERY = 1000  # records: one that was made four hours to three weeks before
OVERDUE_MS = (4 * 3_600_000, 21 * 24 * 3_600_000)
RATE = 10.0

_HEARTBEAT = b'{"device_id":"%s","status":"%s","at":"%s"}'
_NO_HEARTBEAT = (
    b'{"device_id":"pump-01","sta',
    b'{"device_id":"pump-01","status":"UP","at":"yesterday"}',
    b'{"device_id":"pump-01","status":"UP"}',
    b'{"device_id":"pump-01","status":"SLEEPY","at":"2025-03-01T12:00:00.000Z"}',
    b'{"status":"UP","at":"2025-03-01T12:00:00.000Z"}',
    b"UP",
    b"\xff\xfe\x00",
)


def records(seed: int, start_ms: int, rate: float = RATE) -> Iterator[GeneratedRecord]:
    """One device after the other; delays are as long at any rate."""
    random = Random(f"heartbeats {seed}")
    up = [random.random() < 0.8 for _ in range(DEVICES)]
    for number in count():
        device, arrives = number % DEVICES, start_ms + int(number * 1000 / rate)
        up[device] = up[device] != (random.random() < CHANGING)
        made = _iso(arrives - _delay_ms(random, number))
        name = b"pump-%02d" % (device + 1)
        value = _HEARTBEAT % (name, b"UP" if up[device] else b"DOWN", made)
        yield GeneratedRecord(HEARTBEATS.name, name, value, arrives)


def _delay_ms(random: Random, number: int) -> int:
    delayed, drawn = random.random() < DELAYED, random.random()
    if number % OVERDUE_EVERY == OVERDUE_EVERY - 1:
        least, most = OVERDUE_MS
        return least + int(drawn * (most - least))
    return int(drawn * (DELAYED_MS if delayed else SOON_MS))


def _iso(ms: int) -> bytes:
    seconds, rest = divmod(ms, 1000)
    return b"%s.%03dZ" % (datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S").encode(), rest)


def malformed(random: Random) -> bytes:
    return random.choice(_NO_HEARTBEAT)


DEVICE_HEARTBEATS = Generator("heartbeats", (HEARTBEATS,), RATE, records, malformed, __doc__)
