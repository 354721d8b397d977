"""Hosts that call their usual addresses at random, and a few that call one address of their own every minute."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from itertools import count
from random import Random

from ingest.generators.records import GeneratedRecord, Generator
from ingest.topics import CONNECTIONS

HOSTS = 20
ADDRESSES = 8  # that a host usually calls
BEACONS = 5  # at most; at low rates fewer, so that most connections are none of theirs
PERIOD_MS = 60_000
JITTER = 0.02  # of the period, to either side
RATE = 20.0

_CALL = b'{"host":"host-%d","address":"%s","bytes":%d}'
_NOT_A_CALL = (
    b'{"host":"host-3","address":"192.0.',
    b'{"host":"host-3","address":"192.0.2.3","bytes":"many"}',
    b'{"host":"","address":"192.0.2.3","bytes":300}',
    b'{"host":"host-3","bytes":300}',
    b"host-3",
    b"\xff\xfe\x00",
)


def records(seed: int, start_ms: int, rate: float = RATE) -> Iterator[GeneratedRecord]:
    beacons = max(1, min(BEACONS, int(rate * 15)))
    period_ms = max(float(PERIOD_MS), 2000 / rate)
    kinds = [_usual(seed, start_ms, rate - beacons * 1000 / period_ms)]
    kinds += [_beacon(seed, number, start_ms, period_ms) for number in range(1, beacons + 1)]
    yield from heapq.merge(*kinds, key=lambda record: record.timestamp_ms)


def _usual(seed: int, start_ms: int, rate: float) -> Iterator[GeneratedRecord]:
    draw = Random(f"connections {seed}").random
    for number in count():
        host = 1 + int(draw() * HOSTS)
        address = b"192.0.2.%d" % ((host * 7 + int(draw() * ADDRESSES)) % 250)
        yield _call(host, address, int(draw() * 100_000), start_ms + int(number * 1000 / rate))


def _beacon(seed: int, number: int, start_ms: int, period_ms: float) -> Iterator[GeneratedRecord]:
    draw = Random(f"beacon {seed} {number}").random
    begins = start_ms + draw() * period_ms
    for call in count(1):
        at = begins + period_ms * (call + JITTER * (2 * draw() - 1))
        yield _call(number, b"203.0.113.%d" % number, 64, int(at))


def malformed(random: Random) -> bytes:
    return random.choice(_NOT_A_CALL)


def _call(host: int, address: bytes, size: int, at: int) -> GeneratedRecord:
    return GeneratedRecord(CONNECTIONS.name, b"host-%d" % host, _CALL % (host, address, size), at)


HOST_CONNECTIONS = Generator("connections", (CONNECTIONS,), RATE, records, malformed, __doc__)
