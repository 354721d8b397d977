from __future__ import annotations

from typing import Any

from ingest.topics import MACHINE_READINGS
from platform_core.testing import BATCH, CRASH_AFTER_WRITE, END, QUIET, Kit, Record, at, clock, record
from streaming_jobs.machine_health.job import machine_health

HOUR = 3600
COLUMNS = ("machine", "raised_at", "first_failure")


def reading(machine: str, *, hour: float, failed: bool = True, temperature: float = 60, **place: Any) -> Record:
    value = {"machine": machine, "temperature": temperature, "failed": failed}
    return record(MACHINE_READINGS, key=machine, value=value, second=hour * HOUR, **place)


CASES: dict[str, list[float]] = {  # machines of one run, and the hours of their failures
    "four in six hours": [0, 2, 4, 6],
    "five in six hours, both ends in": [0, 1, 2, 4, 6],
    "five in a little more": [0, 1, 2, 4, 6.001],
    "five at once": [3, 3, 3, 3, 3],
    "a duplicate is a second failure": [0, 1, 2, 3, 3],
    "a failure every hour is one alert": [float(hour) for hour in range(30)],
    "fallen to three": [0, 1, 2, 3, 4, 8, 9, 9.5, 9.7],
    "fallen to two": [0, 1, 2, 3, 4, 9, 9.5, 9.7, 9.8],
    "fallen to none": [0, 0, 0, 0, 0, 20, 20, 20, 20, 20],
}
ALERTS = [
    ("a duplicate is a second failure", at(3 * HOUR), at(0)),
    ("a failure every hour is one alert", at(4 * HOUR), at(0)),
    ("fallen to none", at(0), at(0)),
    ("fallen to none", at(20 * HOUR), at(20 * HOUR)),
    ("fallen to three", at(4 * HOUR), at(0)),
    ("fallen to two", at(4 * HOUR), at(0)),
    ("fallen to two", at(9.8 * HOUR), at(4 * HOUR)),
    ("five at once", at(3 * HOUR), at(3 * HOUR)),
    ("five in six hours, both ends in", at(6 * HOUR), at(0)),
]


def readings_in_order_of_time() -> list[Record]:
    """Between the failures each machine has readings without one."""
    made = [(hour, machine, True) for machine, hours in CASES.items() for hour in hours]
    made += [(hour + 0.25, machine, False) for machine, hours in CASES.items() for hour in hours]
    return [reading(machine, hour=hour, failed=failed) for hour, machine, failed in sorted(made)]


def test_one_alert_when_the_count_passes_the_limit_and_none_until_it_has_fallen_to_half(kit: Kit) -> None:
    assert kit.run_as_batch(machine_health, readings_in_order_of_time()).columns(*COLUMNS) == ALERTS


def test_the_stream_raises_the_same_alerts_out_of_order_and_with_a_crash(kit: Kit) -> None:
    readings = readings_in_order_of_time()
    readings = [one for place in range(0, len(readings), 4) for one in reversed(readings[place : place + 4])]
    script = [
        *readings[:40],
        QUIET,
        *readings[40:80],
        CRASH_AFTER_WRITE,
        *readings[80:100],
        BATCH,
        *readings[100:],
        END,
    ]
    result = kit.run(machine_health, script)
    assert (result.late, result.rejects) == (0, [])
    assert result.columns(*COLUMNS) == ALERTS


def test_out_of_order_readings_count_late_ones_do_not_and_what_is_no_reading_is_rejected(kit: Kit) -> None:
    script = [
        reading("a", hour=1, temperature=81),
        reading("a", hour=1.01, temperature=82, failed=False),
        reading("b", hour=1.1),
        BATCH,
        *[reading("a", hour=1.1 - number / 100, temperature=70 + number) for number in range(4)],
        QUIET,
        *[reading("b", hour=hour) for hour in (1.2, 1.21, 1.22)],
        reading("b", hour=0.9),  # 12 minutes behind
        reading("", hour=1.2, partition=0, offset=100),
        record(MACHINE_READINGS, key="a", value=b'{"machine":"a"}', second=HOUR, partition=0, offset=101),
        clock(1.26 * HOUR),
    ]
    waiting = kit.run(machine_health, script)
    assert (waiting.rows, waiting.late) == ([], 1)
    result = kit.run(machine_health, [*script, clock(1.27 * HOUR)])
    assert result.columns(*COLUMNS, "hottest") == [("a", at(1.1 * HOUR), at(HOUR), 81.0)]
    assert [str(reject) for reject in result.rejects] == [
        "machine.readings[0]@100: rule machine is given",
        "machine.readings[0]@101: missing field: temperature",
    ]
