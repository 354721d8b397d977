"""Logins of many users, most of which succeed; now and then somebody tries the passwords of one user in a row."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from random import Random

from ingest.generators.records import GeneratedRecord, Generator
from ingest.topics import LOGINS

USERS = 1000
FAILING = 0.05  # of the ordinary logins
ATTACKS = 0.02  # of the logins outside an attack begin one
ATTEMPTS = (8, 30)  # of an attack; every other login is one of them
RATE = 20.0

_LOGIN = b'{"user_id":"user-%d","address":"%s","succeeded":%s}'
_NOT_A_LOGIN = (
    b'{"user_id":"user-7","address":"198.51.1',
    b'{"user_id":"user-7","address":"198.51.100.7","succeeded":"perhaps"}',
    b'{"user_id":"","address":"198.51.100.7","succeeded":true}',
    b'{"user_id":"user-7","address":"198.51.100.7"}',
    b"user-7",
    b"\xff\xfe\x00",
)


def records(seed: int, start_ms: int, rate: float = RATE) -> Iterator[GeneratedRecord]:
    random = Random(f"logins {seed}")
    draw, victim, left = random.random, 0, 0
    for number in count():
        at = start_ms + int(number * 1000 / rate)
        if left and number % 2:
            left -= 1
            yield _login(victim, b"203.0.113.66", b"false", at)
            continue
        user = 1 + int(draw() * USERS)
        yield _login(user, b"198.51.100.%d" % (user % 250), b"false" if draw() < FAILING else b"true", at)
        if not left and draw() < ATTACKS:
            victim, left = user, ATTEMPTS[0] + int(draw() * (ATTEMPTS[1] - ATTEMPTS[0] + 1))


def malformed(random: Random) -> bytes:
    return random.choice(_NOT_A_LOGIN)


def _login(user: int, address: bytes, succeeded: bytes, at: int) -> GeneratedRecord:
    return GeneratedRecord(LOGINS.name, b"user-%d" % user, _LOGIN % (user, address, succeeded), at)


TRIED_LOGINS = Generator("logins", (LOGINS,), RATE, records, malformed, __doc__)
