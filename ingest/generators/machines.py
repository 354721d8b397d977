"""Readings of five machines in turn; each wears out for twelve hours, is hot and fails often then, and is mended."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from random import Random

from ingest.generators.records import GeneratedRecord, Generator
from ingest.topics import MACHINE_READINGS

MACHINES = 5
WORN_MS = 12 * 3_600_000  # one machine after the other
FAILURES_AN_HOUR, WORN_FAILURES_AN_HOUR = 0.05, 2.0  # of a machine
MOST_FAILING = 0.9  # of the readings of a worn machine, where they are rare
WARM, HOT = 60.0, 85.0
RATE = 5.0

_READING = b'{"machine":"machine-%d","temperature":%.1f,"failed":%s}'
_NOT_A_READING = (
    b'{"machine":"machine-2","temper',
    b'{"machine":"machine-2","temperature":"warm","failed":false}',
    b'{"machine":"","temperature":61.5,"failed":false}',
    b'{"machine":"machine-2","temperature":61.5}',
    b"61.5",
    b"\xff\xfe\x00",
)


def records(seed: int, start_ms: int, rate: float = RATE) -> Iterator[GeneratedRecord]:
    draw = Random(f"machines {seed}").random
    readings_an_hour = rate * 3600 / MACHINES
    for number in count():
        after = int(number * 1000 / rate)
        machine = number % MACHINES
        worn = after // WORN_MS % MACHINES == machine
        failures = WORN_FAILURES_AN_HOUR if worn else FAILURES_AN_HOUR
        failed = draw() < min(MOST_FAILING, failures / readings_an_hour)
        temperature = (HOT if worn else WARM) + 5 * draw()
        yield _reading(machine, temperature, failed, start_ms + after)


def malformed(random: Random) -> bytes:
    return random.choice(_NOT_A_READING)


def _reading(machine: int, temperature: float, failed: bool, at: int) -> GeneratedRecord:
    value = _READING % (machine, temperature, b"true" if failed else b"false")
    return GeneratedRecord(MACHINE_READINGS.name, b"machine-%d" % machine, value, at)


READINGS = Generator("machines", (MACHINE_READINGS,), RATE, records, malformed, __doc__)
